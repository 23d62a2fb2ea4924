"""Changes: a file in one of several formats, or a text that is followed as it grows.

Changes as text are `[EPOCH] +|- SOURCE TARGET [WEIGHT]`. The head of the text shows its form. The separator may differ
from that of the graph. A first line that names the column of signs is a header. Changes in tables are a column of
signs, an optional one of epochs, and the columns of an edge.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from differential.jobs.access import label_of, reading
from differential.jobs.input.blocks import Block, Text, head_of
from differential.jobs.input.cells import Cells
from differential.jobs.input.changes import SIGN_NAMES, ChangeRows, OpenedChanges, Order
from differential.jobs.input.edges import Ints, ignore
from differential.jobs.input.faults import Fault, Faults
from differential.jobs.input.follow import ArrivedLines, Followed
from differential.jobs.input.form import CANDIDATES, INTEGER, MARK, Form, InputColumn, Kind, lines, split, weight_column
from differential.jobs.input.layout import InputLayout, WeightKind, weight_kind
from differential.jobs.input.names import Names, unified
from differential.jobs.input.parse import ParsedRows, Parser
from differential.jobs.input.source import PEEKED, is_stream, open_source, packing_of
from differential.jobs.input.table import ArrayTable, InputTable
from differential.jobs.input.text import refuse_binary, without_header
from timely.errors import DataError


def open_changes(
    path: str,
    names: Names | None,
    layout: InputLayout,
    faults: Faults,
    *,
    follow: bool = False,
    is_over: Callable[[], bool] = lambda: False,
    weight: WeightKind | None = None,
) -> OpenedChanges:
    """Return the changes in a file, or on standard input (`-`).

    `names` and `weight` are those of the graph. With `follow` the file is read as it grows, until `is_over` returns
    True; it must be a text that is not compressed. Raises DataError if there is no such file, or if it has no changes
    of this form.
    """
    label = label_of(path)
    text = TextChanges(label, names, layout, faults, weight)
    if follow:
        with reading(label):
            return OpenedChanges(label, text.order, text.arriving(_followed(path, is_over)))
    source = open_source(path)
    if isinstance(source, ArrayTable):
        raise DataError(
            f"{label} is an array, which has no signs; changes are a text file, a Parquet file or an Arrow file"
        )
    if isinstance(source, InputTable):
        return table_changes(source, names, layout, faults, weight)
    with reading(label):
        return text.in_file(source)


def _followed(path: str, is_over: Callable[[], bool]) -> Followed:
    if not is_stream(path):
        with open(path, "rb") as file:
            head = file.read(PEEKED)
        if packing_of(path, head) is not None or b"\0" in head:
            raise DataError(f"{path} cannot be followed: only uncompressed text can")
    return Followed(path, os.dup(0) if path == "-" else None, is_over)


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


EPOCH_NAMES = ("epoch", "step", "time")
"""What the column of epochs is named, if the layout has no column of times."""


def table_changes(
    table: InputTable, names: Names | None, layout: InputLayout, faults: Faults, weight: WeightKind | None
) -> OpenedChanges:
    """Return the changes in a table, where nodes have `names` or are integers, and weights have the type `weight`."""
    order = Order()
    cells = Cells(table, _columns(table, names is not None, layout, weight), faults)

    def batches() -> Iterator[ChangeRows]:
        for columns, numbers in cells.read(0, 1, ignore):
            source, target, epoch = columns["source"], columns["target"], columns.get("epoch")
            if names is not None:
                source, target = names.number_ends(source, target)
            batch = ChangeRows(epoch, numbers, source, target, columns.get("weight"), columns["sign"])
            late = np.empty(0, np.int64) if epoch is None else order.late(epoch)
            for place in late.tolist():
                reason, remedy = order.fault(int(columns["epoch"][place]))
                text = f"epoch={columns['epoch'][place]}"
                faults.add(Fault(table.label, int(numbers[place]), text, reason, remedy, "row"))
            yield batch.without(late)

    return OpenedChanges(table.label, order, batches())


def _columns(
    table: InputTable, is_named: bool, layout: InputLayout, weight: WeightKind | None
) -> tuple[InputColumn, ...]:
    """Return the columns of changes. Raises DataError if there is none of signs, or too few for an edge."""
    names = [name.lower() for name in table.schema.names]
    sign = next((names.index(name) for name in SIGN_NAMES if name in names), None)
    if sign is None:
        raise DataError(f"{table.label}: no column is named {' or '.join(map(repr, SIGN_NAMES))}")
    given = EPOCH_NAMES if layout.time is None else (layout.time.lower(), *EPOCH_NAMES)
    epoch = next((names.index(name) for name in given if name in names), None)
    rest = [place for place in range(len(names)) if place not in (sign, epoch)]
    columns = [InputColumn("sign", sign, "sign")] + ([] if epoch is None else [InputColumn("epoch", epoch, "integer")])
    name, stated = weight_kind(layout.weight)
    at = None
    if name is not None:
        named = [place for place in rest if table.schema.names[place] == name]
        at = named[0] if named else next(iter(rest[2:]), None)
        if at is None:
            raise DataError(f"{table.label} has no weights, but the edges do")
        columns.append(InputColumn("weight", at, weight or stated or "integer"))
    nodes = [place for place in rest if place != at]
    if len(nodes) < 2:
        raise DataError(f"{table.label}: a change needs a source and a target besides the other columns")
    kind: Kind = "name" if is_named else "integer"
    return (*columns, InputColumn("source", nodes[0], kind), InputColumn("target", nodes[1], kind))
