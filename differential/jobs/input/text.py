"""Lists of edges as text: one edge per line, nodes in two of the columns."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from differential.jobs.access import reading
from differential.jobs.input.blocks import Block, Text, head_of
from differential.jobs.input.distinct import edges_of
from differential.jobs.input.edges import OpenedGraph, Progress
from differential.jobs.input.faults import Faults
from differential.jobs.input.form import Form, edge_form, lines
from differential.jobs.input.layout import InputLayout
from differential.jobs.input.names import Names
from differential.jobs.input.parse import Parser
from timely.errors import DataError

MARKS = {  # that of UTF-16 begins that of UTF-32
    "UTF-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "UTF-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
"""How texts in other encodings begin."""

FORMATS = ("Parquet", "Arrow IPC", "npy", "Matrix Market", "gzip", "zstd", "bzip2")


def open_text(text: Text, layout: InputLayout, faults: Faults) -> OpenedGraph:
    """Return the graph in a text. Raises DataError if the head of the text is not a list of edges."""
    head = head_of(text, lambda data: len(list(itertools.islice(lines(data), 2))) == 2)
    refuse_binary(text.label, head)
    form = edge_form(text.label, head, layout)
    names = Names() if form.has_names else None

    def rows(index: int, peers: int, progress: Progress) -> Iterator[Mapping[str, Any]]:
        parser = Parser(text.label, form, faults)  # each worker has its own
        with reading(text.label):
            for block in text.blocks(index, peers, progress):
                block = without_header(block, form)
                found = parser.parse(block.data, block.line)
                if len(found):
                    yield found.columns

    return OpenedGraph(text.label, text.total, names, form.weight, edges_of(rows, names))


def refuse_binary(label: str, head: bytes) -> None:
    """Raise DataError unless this is the beginning of text in UTF-8."""
    for encoding, marks in MARKS.items():
        if head.startswith(marks):
            raise DataError(f"{label} is text in {encoding}; convert it to UTF-8: `iconv -f {encoding} -t UTF-8`")
    if b"\0" in head:
        raise DataError(f"{label} is neither text nor in one of the formats {', '.join(FORMATS)}")


def without_header(block: Block, form: Form) -> Block:
    """Return a block without what is before the first row."""
    if block.start >= form.body:
        return block
    return Block(block.data[form.body - block.start :], form.body, lambda: form.line)
