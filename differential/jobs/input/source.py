"""What an input is: text or a table, as its first bytes show."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from differential.jobs.access import CODECS, codec_of, label_of, reading
from differential.jobs.input.blocks import (
    DescriptorStream,
    PackedText,
    PlainText,
    StreamText,
    Text,
    Unpacked,
    read_fully,
)
from differential.jobs.input.table import ArrayTable, InputTable, IpcStream, IpcTable, ParquetTable
from timely.errors import DataError

PARQUET, IPC, NPY = SEEKING = (b"PAR1", b"ARROW1\0\0", b"\x93NUMPY")
IPC_STREAM = b"\xff\xff\xff\xff"
TABLES: dict[bytes, Callable[[str], InputTable]] = {
    PARQUET: ParquetTable,
    IPC: IpcTable,
    IPC_STREAM: IpcStream,
    NPY: ArrayTable,
}
ARCHIVES = {b"PK\x03\x04": "a zip archive", b"\xfd7zXZ\0": "compressed with xz", b"7z\xbc\xaf\x27\x1c": "a 7z archive"}
TAR = slice(257, 262)
"""Where an archive of files states that it is one."""
PEEKED = 512
"""How many bytes show the format."""


def is_stream(path: str) -> bool:
    """Return whether an input can be read once only: standard input, or a pipe. Raises DataError for a directory."""
    if path == "-":
        return True
    with reading(path):
        mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise DataError(f"{path} is a directory, not a file")
    return not stat.S_ISREG(mode)


def open_source(path: str) -> Text | InputTable:
    """Return an input. Raises DataError if it cannot be read or has an unknown format."""
    with reading(label_of(path)):
        if is_stream(path):
            return _open_stream(label_of(path), path)
        with open(path, "rb", buffering=0) as file:
            head = read_fully(file, PEEKED)
        for magic, table in TABLES.items():
            if head.startswith(magic):
                return table(path)
        codec = packing_of(path, head)
        return _checked(PlainText(path) if codec is None else PackedText(path, codec))


def packing_of(label: str, head: bytes) -> str | None:
    """Return how a file is compressed, from its first bytes, or None. Raises DataError for an archive of files."""
    for magic, what in ARCHIVES.items():
        if head.startswith(magic):
            raise DataError(f"{label} is {what}; unpack it, and give the path of what is inside, or pipe it to `-`")
    return codec_of(head)


def _open_stream(label: str, path: str) -> Text | InputTable:
    whole = StreamText(label, DescriptorStream(os.dup(0) if path == "-" else os.open(path, os.O_RDONLY)))
    head = whole.head(PEEKED)
    if head.startswith(SEEKING):
        raise DataError(f"{label} has a format that cannot be read from a pipe; give the path of a file")
    if head.startswith(IPC_STREAM):
        return IpcStream(label, whole.rest())
    codec = packing_of(label, head)
    return _checked(whole if codec is None else StreamText(label, Unpacked(label, whole.rest(), codec)))


def _checked(text: Text) -> Text:
    head = text.head(PEEKED)
    if head.startswith((*SEEKING, IPC_STREAM, *CODECS)):
        raise DataError(f"{text.label} is compressed twice, or has a format with compression of its own; unpack it")
    if head[TAR] == b"ustar":
        raise DataError(f"{text.label} is an archive of files (tar); unpack it")
    return text
