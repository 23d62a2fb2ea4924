"""Merge streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timely.dataflow.inline import merged

if TYPE_CHECKING:
    from timely.dataflow.stream import Stream


def concat(stream: Stream, *others: Stream, name: str = "concat") -> Stream:
    """Return the stream of everything on `stream` and on `others`.

    >>> sorted(example(lambda scope: scope.to_stream(range(2)).concat(scope.to_stream(range(5, 7)))))
    [0, 1, 5, 6]
    """
    return merged((stream, *others), name=name)
