"""Matrix Market files: a sparse matrix is a graph with an edge for each entry.

Row and column are source and target, counted from 1 as in the file. The entry is the weight, if the layout asks for it
as column 3. A symmetric matrix stores half of its entries; the mirrored ones are added. The size line states how many
entries there are, so a file that ends early is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from differential.jobs.access import reading
from differential.jobs.input.blocks import Block, Text, head_of
from differential.jobs.input.edges import EdgeBatch, OpenedGraph, Progress, ignore
from differential.jobs.input.faults import Faults
from differential.jobs.input.form import DataLine, Form, Kind, edge_columns, lines
from differential.jobs.input.layout import BLANKS, InputLayout, Places, weight_kind
from differential.jobs.input.parse import Parser, plain_lines
from differential.jobs.input.text import refuse_binary, without_header
from timely.errors import DataError

BANNER = b"%%MatrixMarket"
FIELDS = ("pattern", "integer", "real")
SYMMETRIES = ("general", "symmetric")


class Size(NamedTuple):
    """What the banner and the size line state."""

    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int
    line: DataLine
    """The size line."""


def _mirrored(edges: EdgeBatch) -> EdgeBatch:
    """Return edges, and those in the other direction of edges between different nodes."""
    differ = edges.source != edges.target
    source = np.concatenate([edges.source, edges.target[differ]])
    target = np.concatenate([edges.target, edges.source[differ]])
    weight = None if edges.weight is None else np.concatenate([edges.weight, edges.weight[differ]])
    return EdgeBatch(source, target, weight)


def open_matrix(text: Text, layout: InputLayout, faults: Faults) -> OpenedGraph:
    """Return the graph of a matrix. Raises DataError if it is dense, complex, or has no such columns."""
    head = head_of(text, lambda data: next(lines(data), None) is not None)
    refuse_binary(text.label, head)
    size = _size(text.label, head)
    if layout.time is not None or layout.names or layout.header or layout.separator is not None:
        raise DataError(f"{text.label} is a Matrix Market file, which has no times, names, header or other separators")
    kind: Kind = "float" if size.field == "real" else "integer"
    weight = None if layout.weight is None else _weight(text.label, layout, size, kind)
    columns = edge_columns(Places(0, 1, 2, None), False, weight)
    width = 2 if size.field == "pattern" else 3
    limits = (size.rows, size.columns)
    form = Form(BLANKS, width, columns, size.line.end, size.line.number + 1, limits)
    return OpenedGraph(text.label, text.total, None, form.weight, partial(_edges, text, size, form, faults))


def _edges(
    text: Text, size: Size, form: Form, faults: Faults, index: int, peers: int, progress: Progress
) -> Iterator[EdgeBatch]:
    """Yield the edges that worker `index` of `peers` reads; raise DataError if the file is not complete."""
    parser = Parser(text.label, form, faults)
    entries = 0
    with reading(text.label):
        for block in _blocks(text, form, index, peers, progress):
            entries += plain_lines(block.data)
            rows = parser.parse(block.data, block.line)
            if len(rows):
                edges = EdgeBatch(**rows.columns)
                yield _mirrored(edges) if size.symmetry == "symmetric" else edges
    reads_all = peers == 1 or (text.is_alone and not index)
    if index == peers - 1 and not reads_all and not text.is_alone:
        reads_all, entries = True, sum(plain_lines(block.data) for block in _blocks(text, form, 0, 1, ignore))
    if reads_all and entries != size.entries:
        raise DataError(
            f"{text.label} has {entries} entries, but line {size.line.number} states {size.entries}; "
            f"the file may be incomplete"
        )


def _blocks(text: Text, form: Form, index: int, peers: int, progress: Progress) -> Iterator[Block]:
    return (without_header(block, form) for block in text.blocks(index, peers, progress))


def _weight(label: str, layout: InputLayout, size: Size, kind: Kind) -> Kind:
    column, stated = weight_kind(layout.weight)
    if size.field == "pattern":
        raise DataError(f"{label} has no weights: it is a pattern matrix")
    if column != "3":
        raise DataError(f"{label}: the weights of a Matrix Market file are in column 3, not {column!r}")
    return stated or kind


def _size(label: str, head: bytes) -> Size:
    banner = head[: head.find(b"\n")].decode(errors="replace").lower().split()
    if len(banner) != 5 or banner[1:3] != ["matrix", "coordinate"]:
        raise DataError(f"{label}: a graph is a `matrix coordinate`, but line 1 states {' '.join(banner[1:3])!r}")
    field, symmetry = banner[3], banner[4]
    if field not in FIELDS or symmetry not in SYMMETRIES:
        raise DataError(
            f"{label}: the matrix is {field!r} and {symmetry!r}, but a graph is one of {', '.join(FIELDS)} and one of "
            f"{', '.join(SYMMETRIES)}"
        )
    line = next(lines(head), None)
    numbers = line.text.split() if line is not None else []
    if line is None or len(numbers) != 3 or not all(each.isascii() and each.isdecimal() for each in numbers):
        where = "" if line is None else f" in line {line.number}"
        raise DataError(f"{label} does not state rows, columns and entries{where}")
    rows, columns, entries = map(int, numbers)
    return Size(field, symmetry, rows, columns, entries, line)
