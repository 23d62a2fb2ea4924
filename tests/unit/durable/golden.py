"""Write the golden collections: `python -m tests.unit.durable.golden DIR`, for each new format into a new directory."""

from __future__ import annotations

import datetime as dt
import hashlib
import sys
from decimal import Decimal
from typing import Any

import numpy as np

from differential import Updates
from differential.durable import Directory, Shard
from differential.durable.manifest import Keep, Part
from differential.durable.writer import Writer
from timely.lowlevel import typed

TEXT = np.dtypes.StringDType()
TYPED: dict[str, list[Any]] = {
    "int64?": [None, 3],
    "uint64": [(1 << 64) - 1, 0],
    "float16": [0.5, -1.0],
    "bool?": [None, True],
    "text?": ["\u00fc", None],
    "bytes?": [None, b"\0"],
    "date": [dt.date(1969, 12, 31), None],
    "timestamp[us, Europe/Berlin]": [dt.datetime(2026, 10, 25, 1, tzinfo=dt.UTC), None],
    "duration[ms]": [None, dt.timedelta(days=-1)],
    "time[s]": [dt.time(1, 2, 3), None],
    "decimal(9, 2)": [None, Decimal("-0.01")],
    "decimal(30, 1)": [Decimal("-0.1"), None],
    "value": [["a", None, {"x": 1}], None],
}
"""Columns of each kind that format 2 has added."""


def write(directory: str) -> None:
    """Write an input with an offset, of all types of columns, and an output of which the past was given up."""
    place = Directory(directory)
    writer = Writer.claim(Shard("words", place.store("words")), "input")
    writer.names = ("word", "bytes", "weight", "is_short", "number")
    for epoch, word in enumerate(["to", "be", "or", "be"]):
        octets = np.array([word.encode() + b"\0\xff"], np.object_)
        columns = np.array([word], TEXT), octets, np.array([0.5 * epoch]), np.array([len(word) < 3]), np.array([-epoch])
        writer.append(epoch + 1, [Updates.at((epoch,), columns)], {"book": epoch, "place": "page 7"})
    writer = Writer.claim(Shard("counts", place.store("counts")), "output")
    writer.names, writer.keep = ("word", "count"), Keep(1)
    for epoch, (count, diffs) in enumerate([([1], [1]), ([1, 2], [-1, 1]), ([2, 3], [-1, 1])]):
        columns = np.array(["be"] * len(count), TEXT), np.array(count)
        writer.append(epoch + 1, [Updates.at((epoch,), columns, np.array(diffs))])
    _write_typed(place)


def _write_typed(place: Directory) -> None:
    """Write what format 2 has added: typed columns, notes, a field that was added, and a snapshot."""
    writer = Writer.claim(Shard("typed", place.store("typed")), "input", about={"keys": 2})
    columns = tuple(typed(values, kind) for kind, values in TYPED.items())
    writer.append(1, [Updates.at((0,), columns)])
    writer.add_fields({"more": ("decimal(9, 2)", None)})
    writer = Writer.claim(Shard("state", place.store("state")), "snapshot")
    writer.shard.store.put_new("00000001-000000000006-0000-abc.npz", b"state")
    sha256 = hashlib.sha256(b"state").hexdigest()
    writer.keep_states(6, [Part("00000001-000000000006-0000-abc.npz", 5, 6, 0, 5, sha256, 0)])


if __name__ == "__main__":
    write(sys.argv[1])
