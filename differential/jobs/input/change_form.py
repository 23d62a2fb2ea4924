"""The form of a text of changes: `[EPOCH] +|- SOURCE TARGET [WEIGHT]`, as its head shows it.

The separator may differ from that of the graph. A first line that names the column of signs is a header.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from differential.jobs.input.form import CANDIDATES, INTEGER, MARK, Form, InputColumn, Kind, lines, split, weight_column
from differential.jobs.input.layout import InputLayout, WeightKind, weight_kind

SIGNS = ("+", "-")
SIGN_NAMES = ("sign", "diff", "op", "change")
"""What a header names the column of signs."""
USAGE = "[EPOCH] +|- SOURCE TARGET [WEIGHT]"


def change_form(
    label: str, head: bytes, layout: InputLayout, has_names: bool, weight: WeightKind | None
) -> Form | str | None:
    """Return the form of changes from the complete lines at their beginning, or None if there are no lines.

    If no line has the form of a change, the reason is returned. `weight` is the type of the graph's weights.
    """
    mark = len(MARK) if head.startswith(MARK) else 0
    found = list(lines(head[mark:]))
    if not found:
        return None
    given = layout.delimiter
    separators = CANDIDATES if given is None else (given, *CANDIDATES)
    rows = {separator: [split(line.text, separator) for line in found] for separator in separators}
    separator, sign = max(
        ((separator, place) for separator in separators for place in (0, 1)),
        key=lambda each: len(_changes(rows[each[0]], each[1])),
    )
    fields = rows[separator]
    data = _changes(fields, sign)
    if not data:
        return (
            f"{label}, line {found[0].number}: a change is a line {USAGE}, separated like edges, not {found[0].shown!r}"
        )
    header = layout.header is not False and sign < len(fields[0]) and fields[0][sign].lower() in SIGN_NAMES
    least = sign + (3 if layout.weight is None else 4)
    width = Counter([len(row) for row in data if len(row) >= least] or map(len, data)).most_common(1)[0][0]
    kind: Kind = "name" if has_names else "integer"
    columns = [InputColumn("epoch", 0, "integer")] if sign else []
    columns.append(InputColumn("sign", sign, "sign"))
    columns += [InputColumn("source", sign + 1, kind), InputColumn("target", sign + 2, kind)]
    if layout.weight is not None:
        place = _weight_place(fields[0] if header else [], layout, sign, width)
        if place is None:
            return f"{label} has no weights, but the edges do: a change is a line {USAGE}"
        columns.append(InputColumn("weight", place, weight or weight_column(data, place, layout)))
    body, line = (found[0].end, found[0].number + 1) if header else (0, 1)
    return Form(separator, width, tuple(columns), mark + body, line)


def _changes(rows: Sequence[Sequence[str]], sign: int) -> list[Sequence[str]]:
    """Return the rows that are changes with the sign in that column."""
    long = [row for row in rows if len(row) >= sign + 3 and row[sign] in SIGNS]
    return [row for row in long if INTEGER.fullmatch(row[0])] if sign else long


def _weight_place(header: Sequence[str], layout: InputLayout, sign: int, width: int) -> int | None:
    """Return the column of weights, or None if there is none."""
    name, _ = weight_kind(layout.weight)
    if name is not None and name in header:
        return list(header).index(name)
    return None if width < sign + 4 else sign + 3
