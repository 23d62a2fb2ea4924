"""Write the golden collections: `python -m tests.unit.durable.golden DIR`, for each new format into a new directory."""

from __future__ import annotations

import sys

import numpy as np

from differential import Updates
from differential.durable import Directory, Shard
from differential.durable.keep import Keep
from differential.durable.writer import Writer

TEXT = np.dtypes.StringDType()


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


if __name__ == "__main__":
    write(sys.argv[1])
