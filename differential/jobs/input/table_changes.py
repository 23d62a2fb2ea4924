"""Changes in tables: a column of signs, an optional one of epochs, and the columns of an edge."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from differential.jobs.input.cells import Cells
from differential.jobs.input.changes import SIGN_NAMES, ChangeRows, OpenedChanges, Order
from differential.jobs.input.edges import ignore
from differential.jobs.input.faults import Fault, Faults
from differential.jobs.input.form import InputColumn, Kind
from differential.jobs.input.layout import InputLayout, WeightKind, weight_kind
from differential.jobs.input.names import Names
from differential.jobs.input.table import InputTable
from timely.errors import DataError

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
