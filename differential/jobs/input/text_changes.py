"""Changes as text, `[EPOCH] +|- SOURCE TARGET [WEIGHT]`, from a file as it is or while it grows.

The head of the text shows its form. The separator may differ from that of the graph. A first line that names the
column of signs is a header.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from differential.jobs.access import reading
from differential.jobs.input.blocks import Block, Text, head_of
from differential.jobs.input.changes import SIGN_NAMES, ChangeRows, OpenedChanges, Order
from differential.jobs.input.edges import Ints, ignore
from differential.jobs.input.faults import Fault, Faults
from differential.jobs.input.follow import ArrivedLines, Followed
from differential.jobs.input.form import CANDIDATES, INTEGER, MARK, Form, InputColumn, Kind, lines, split, weight_column
from differential.jobs.input.layout import InputLayout, WeightKind, weight_kind
from differential.jobs.input.names import Names, unified
from differential.jobs.input.parse import ParsedRows, Parser
from differential.jobs.input.text import refuse_binary, without_header
from timely.errors import DataError

SIGNS = ("+", "-")
USAGE = "[EPOCH] +|- SOURCE TARGET [WEIGHT]"


@dataclass
class TextChanges:
    """Rows of changes from blocks of text; the first block that has any shows the form."""

    label: str
    names: Names | None
    layout: InputLayout
    faults: Faults
    weight: WeightKind | None
    order: Order = field(default_factory=Order)

    def parser(self, head: bytes) -> tuple[Form, Parser] | None:
        """Return the form that whole lines show and a parser for it, or None if they have no changes.

        Raises DataError for lines that are not changes, if faults stop the run.
        """
        refuse_binary(self.label, head)
        form = _form(self.label, head, self.layout, self.names is not None, self.weight)
        if isinstance(form, str):
            if self.faults.policy == "stop":
                raise DataError(form)
            return None
        return None if form is None else (form, Parser(self.label, form, self.faults, with_lines=True))

    def parser_of_some(self, piece: ArrivedLines) -> tuple[Form, Parser] | None:
        """Return the same for some lines of a text; without a change among them, each is a fault."""
        try:
            found = self.parser(piece.data)
        except DataError:
            if self.faults.policy == "stop":
                raise
            found = None
        if found is not None:
            return found
        for line in lines(piece.data, piece.line):
            self.faults.add(Fault(self.label, line.number, line.shown, f"is not a change, which is {USAGE}"))
        return None

    def batch(self, parser: Parser, block: Block) -> ChangeRows:
        """Return the rows of a block."""
        rows = parser.parse(block.data, block.line)
        assert rows.lines is not None
        columns = rows.columns
        distinct, (signs,) = unified([columns["sign"]])
        diff = np.where(np.array([sign == "+" for sign in distinct.to_pylist()], bool)[signs], 1, -1)
        source, target = columns["source"], columns["target"]
        if self.names is not None:
            source, target = self.names.number_ends(source, target)
        batch = ChangeRows(columns.get("epoch"), rows.lines, source, target, columns.get("weight"), diff)
        return batch if batch.epoch is None else batch.without(self._late(rows, block))

    def _late(self, rows: ParsedRows, block: Block) -> Ints:
        """Return the places of rows whose epoch is less than one before, which are faults."""
        epoch = rows.columns["epoch"]
        late = self.order.late(epoch)
        if len(late):
            assert rows.lines is not None
            texts = {line.number: line.shown for line in lines(block.data, block.line())}
            for place in late.tolist():
                number = int(rows.lines[place])
                self.faults.add(Fault(self.label, number, texts[number], *self.order.fault(int(epoch[place]))))
        return late

    def in_file(self, text: Text) -> OpenedChanges:
        """Return the changes in a text that has an end."""
        found = self.parser(head_of(text, lambda data: next(lines(data), None) is not None))
        return OpenedChanges(self.label, self.order, self._all(text, found))

    def _all(self, text: Text, found: tuple[Form, Parser] | None) -> Iterator[ChangeRows]:
        with reading(self.label):
            for block in text.blocks(0, 1, ignore):
                if found is not None:
                    yield self.batch(found[1], without_header(block, found[0]))
                    continue
                piece = ArrivedLines(block.data, block.line())
                found = self.parser_of_some(piece)
                if found is not None:
                    yield self.batch(found[1], _body(piece, found[0]))

    def arriving(self, followed: Followed) -> Iterator[ChangeRows | None]:
        """Yield rows as they arrive in a text that grows, and None if there are none; end if standard input ends."""
        found: tuple[Form, Parser] | None = None
        try:
            while not followed.is_ended:
                piece = followed.poll()
                if piece is None:
                    if not followed.is_ended:
                        yield None
                    continue
                block = Block(piece.data, 0, functools.partial(int, piece.line))
                # A file that was replaced has a header, too.
                if found is None or (piece.line == 1 and found[0].line > 1):
                    found = self.parser_of_some(piece)
                    if found is None:
                        continue
                    block = _body(piece, found[0])
                yield self.batch(found[1], block)
        finally:
            followed.close()


def _body(piece: ArrivedLines, form: Form) -> Block:
    """Return lines without what is before the first row, where they begin with the form's header."""
    return Block(piece.data[form.body :], form.body, functools.partial(int, piece.line + form.line - 1))


def _form(
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
