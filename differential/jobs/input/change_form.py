"""The form of a text of changes: `[EPOCH] +|- SOURCE TARGET [WEIGHT]`, as its head shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from differential.jobs.input.form import CANDIDATES, INTEGER, MARK, Column, Form, Kind, lines, split, weight_column
from differential.jobs.input.layout import Layout, WeightKind, weight_kind
from timely.errors import DataError

SIGNS = ("+", "-")
SIGN_NAMES = ("sign", "diff", "op", "change")
"""What a header names the column of signs."""
USAGE = "[EPOCH] +|- SOURCE TARGET [WEIGHT]"


def change_form(label: str, head: bytes, layout: Layout, has_names: bool, weight: WeightKind | None) -> Form | None:
    """Return the form of changes from the complete lines at their beginning, or None if there are no changes.

    `weight` is the type of the graph's weights. Raises DataError if no line has the form of a change.
    """
    mark = len(MARK) if head.startswith(MARK) else 0
    found = list(lines(head[mark:]))
    if not found:
        return None
    given = layout.delimiter
    separators = CANDIDATES if given is None else (given,)
    rows = {separator: [split(line.text, separator) for line in found] for separator in separators}
    score, separator, sign = max(
        ((_score(rows[separator], place), separator, place) for separator in separators for place in (0, 1)),
        key=lambda each: each[0],
    )
    fields = rows[separator]
    if not score:
        raise DataError(
            f"{label}, line {found[0].number}: a change is a line {USAGE}, separated like edges, not {found[0].text!r}"
        )
    header = _header(fields, sign, layout)
    data = fields[1:] if header else fields
    width = Counter(map(len, data or fields)).most_common(1)[0][0]
    kind: Kind = "name" if has_names else "integer"
    columns = [Column("epoch", 0, "integer")] if sign else []
    columns.append(Column("sign", sign, "sign"))
    columns += [Column("source", sign + 1, kind), Column("target", sign + 2, kind)]
    if layout.weight is not None:
        place = _weight_place(label, fields[0] if header else [], layout, sign, width)
        columns.append(Column("weight", place, weight or weight_column(data, place, layout)))
    body, line = (found[0].end, found[0].number + 1) if header else (0, 1)
    return Form(separator, width, tuple(columns), mark + body, line)


def _score(rows: Sequence[Sequence[str]], sign: int) -> float:
    """Return the share of rows that are changes with the sign in that column."""
    such = [
        len(row) >= sign + 3 and row[sign] in SIGNS and (not sign or bool(INTEGER.fullmatch(row[0]))) for row in rows
    ]
    return sum(such) / len(rows)


def _header(rows: Sequence[Sequence[str]], sign: int, layout: Layout) -> bool:
    if layout.header:
        return sign >= len(rows[0]) or rows[0][sign] not in SIGNS
    return layout.header is None and sign < len(rows[0]) and rows[0][sign].lower() in SIGN_NAMES


def _weight_place(label: str, header: Sequence[str], layout: Layout, sign: int, width: int) -> int:
    name, _ = weight_kind(layout.weight)
    if name is not None and name in header:
        return list(header).index(name)
    if width < sign + 4:
        raise DataError(f"{label} has no weights, but the edges do: a change is a line {USAGE}")
    return sign + 3
