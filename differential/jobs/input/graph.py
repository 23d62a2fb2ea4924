"""Open a graph: a file in one of several formats, standard input, or a generator."""

from __future__ import annotations

import os
import stat
from typing import Any

from differential.jobs.input.blocks import PackedText, PlainText, StreamText, Text, read_fully, unpacked
from differential.jobs.input.edges import Edges, Graph
from differential.jobs.input.faults import Faults
from differential.jobs.input.generate import generated
from differential.jobs.input.layout import Layout
from differential.jobs.input.matrix_market import BANNER, open_matrix
from differential.jobs.input.nothing import Nothing
from differential.jobs.input.rows import open_npy
from differential.jobs.input.table import open_ipc, open_ipc_stream, open_parquet
from differential.jobs.input.text import open_text
from timely.errors import DataError

__all__ = ["STANDARD_INPUT", "Edges", "Graph", "open_graph"]

STANDARD_INPUT = "standard input"
CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
PARQUET, IPC, NPY = TABLES = (b"PAR1", b"ARROW1\0\0", b"\x93NUMPY")
IPC_STREAM = b"\xff\xff\xff\xff"
ARCHIVES = {b"PK\x03\x04": "a zip archive", b"\xfd7zXZ\0": "compressed with xz", b"7z\xbc\xaf\x27\x1c": "a 7z archive"}
TAR = slice(257, 262)
PEEKED = 512


def open_graph(text: str, layout: Layout, faults: Faults, *, is_first: bool = True) -> Graph:
    """Return the graph in a file, on standard input (`-`), or of a generator, such as `random:100,300`.

    The first bytes of a file show its format. Every process opens the graph, before its workers start. `is_first` is
    whether worker 0 is in this process: standard input and pipes are opened there alone, and have no rows elsewhere.
    Raises DataError if there is no such file, or if it is no graph that has the layout.
    """
    if graph := generated(text, layout):
        return graph
    label = STANDARD_INPUT if text == "-" else text
    try:
        if text == "-" or not _is_regular(text):
            return _open_stream(label, text, layout, faults) if is_first else Nothing(label)
        with open(text, "rb", buffering=0) as file:
            head = read_fully(file, PEEKED)
        return _open_file(text, head, layout, faults)
    except OSError as error:
        raise DataError(f"{label} cannot be read: {error.strerror or error}") from None


def standard_input() -> Any:
    """Return standard input, as an unbuffered stream of bytes."""
    return open(os.dup(0), "rb", buffering=0)


def _is_regular(path: str) -> bool:
    """Return whether a path names a file and not a pipe. Raises DataError for a directory."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise DataError(f"{path} is a directory, not a file")
    return stat.S_ISREG(mode)


def _open_file(path: str, head: bytes, layout: Layout, faults: Faults) -> Graph:
    if head.startswith(PARQUET):
        return open_parquet(path, layout, faults)
    if head.startswith(IPC):
        return open_ipc(path, layout, faults)
    if head.startswith(NPY):
        return open_npy(path, layout, faults)
    if head.startswith(IPC_STREAM):
        return open_ipc_stream(path, None, layout, faults)
    codec = codec_of(path, head)
    text: Text = PlainText(path) if codec is None else PackedText(path, codec)
    return _open_lines(text, layout, faults)


def _open_stream(label: str, text: str, layout: Layout, faults: Faults) -> Graph:
    stream = standard_input() if text == "-" else open(text, "rb", buffering=0)  # noqa: SIM115, shares read it
    whole = StreamText(label, stream)
    head = whole.head(PEEKED)
    if any(head.startswith(magic) for magic in TABLES):
        raise DataError(f"{label} has a format that cannot be read from a pipe; give the path of a file")
    if head.startswith(IPC_STREAM):
        return open_ipc_stream(label, whole.rest(), layout, faults)
    codec = codec_of(label, head)
    if codec is not None:
        whole = StreamText(label, unpacked(label, whole.rest(), codec))
    return _open_lines(whole, layout, faults)


def _open_lines(text: Text, layout: Layout, faults: Faults) -> Graph:
    head = text.head(PEEKED)
    if any(head.startswith(magic) for magic in (*TABLES, IPC_STREAM, *CODECS)):
        raise DataError(f"{text.label} is compressed twice, or has a format with compression of its own; unpack it")
    if head[TAR] == b"ustar":
        raise DataError(f"{text.label} is an archive of files (tar); unpack it")
    if head.startswith(BANNER):
        return open_matrix(text, layout, faults)
    return open_text(text, layout, faults)


def codec_of(label: str, head: bytes) -> str | None:
    """Return how a file is compressed, from its first bytes, or None. Raises DataError if it cannot be read."""
    for magic, what in ARCHIVES.items():
        if head.startswith(magic):
            raise DataError(f"{label} is {what}; unpack it, and give the path of what is inside, or `-` to pipe it")
    return next((codec for magic, codec in CODECS.items() if head.startswith(magic)), None)
