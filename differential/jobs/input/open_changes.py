"""Open changes: a file in one of several formats, or a text that is followed as it grows."""

from __future__ import annotations

import os
from collections.abc import Callable

from differential.jobs.access import label_of, reading
from differential.jobs.input.changes import OpenedChanges
from differential.jobs.input.faults import Faults
from differential.jobs.input.follow import Followed
from differential.jobs.input.layout import InputLayout, WeightKind
from differential.jobs.input.names import Names
from differential.jobs.input.source import PEEKED, is_stream, open_source, packing_of
from differential.jobs.input.table import ArrayTable, InputTable
from differential.jobs.input.table_changes import table_changes
from differential.jobs.input.text_changes import TextChanges
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
