"""Merge streams."""

from __future__ import annotations

from collections.abc import Sequence

from timely.dataflow.inline import merged
from timely.dataflow.streams import S
from timely.errors import BuildError
from timely.origin import user_origin


def concat(stream: S, *others: S, name: str = "concat") -> S:
    """Return the stream of everything on `stream` and on `others`.

    >>> sorted(example(lambda scope: scope.to_stream(range(2)).concat(scope.to_stream(range(5, 7)))))
    [0, 1, 5, 6]
    """
    return merged((stream, *others), name=name)


def concatenate(streams: Sequence[S], *, name: str = "concatenate") -> S:
    """Return the stream of everything on all of `streams`, of which there must be one at least.

    Raises BuildError where no stream is given.

    >>> sorted(example(lambda scope: concatenate([scope.to_stream([number]) for number in range(3)])))
    [0, 1, 2]
    """
    if not streams:
        where = f"{name} (at {user_origin()})"
        raise BuildError(f"{where} needs at least one stream: which scope would the result be in? (see Scope.empty)")
    return merged(streams, name=name)
