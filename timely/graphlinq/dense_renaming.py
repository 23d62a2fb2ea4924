"""Numbers for names: 0, 1, 2, ... over the whole graph, whatever the names are.

The number of a name depends neither on the number of workers nor on their speed. A hash assigns each name to one of a
fixed number of buckets, and each bucket is on one worker, which sorts the names that are new at a time. Workers
broadcast the number of new names in each bucket, so that each worker knows where the numbers of its buckets begin.
Names of a later time are numbered after those of all earlier ones.

A name is sent once from each worker and batch that has it. At each time with new names, a worker sends to all others a
pair of numbers for each of its buckets that has new names. A name that is known costs one search, which is logarithmic
in the number of names (`timely.graphlinq.names`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from timely import Broadcast, Exchange, Pipeline, Stream, hash_columns
from timely.errors import DataError
from timely.graphlinq.in_order import Given, by_node, in_order
from timely.graphlinq.index import Ints, check_edges
from timely.graphlinq.names import NodeNumbers
from timely.lowlevel import Array, check_streams, stacked

BUCKETS = 1 << 12


def dense_renaming(names: Stream, *, name: str = "dense_renaming") -> Stream:
    """Return (name, number) for each name (integer or text) in the first column, at the first time it arrives.

    >>> found = example(lambda scope: dense_renaming(scope.to_stream(np.array(["x", "y", "x"]))))
    >>> sorted(number for _, number in found)
    [0, 1]
    """
    check_streams(name, names=names)
    local = names.map_batch(_distinct, name=f"{name} locally")
    known = NodeNumbers()

    def only_new(given: Given) -> Given:
        assert given is not None
        found = np.unique(given[1])
        new = found[known.numbers(found) < 0]
        if not len(new):
            return None
        known.add(new, np.zeros(len(new), np.int64))
        buckets, new = _with_buckets(new)
        order = np.argsort(buckets, kind="stable")
        return buckets[order], new[order]

    taken = 0

    def numbered(given: Given, counted: Given) -> Given:
        nonlocal taken
        assert counted is not None  # the broadcast includes this worker's own counts
        bucket, count = counted
        counts = np.zeros(BUCKETS, np.int64)
        counts[bucket] = count
        firsts = taken + np.cumsum(counts) - counts
        taken += int(counts.sum())
        if given is None:
            return None
        # `only_new` emits one batch at a time, in the order of buckets.
        buckets, names = given
        starts = np.searchsorted(buckets, buckets)
        return names, firsts[buckets] + np.arange(len(names)) - starts

    new = in_order([(local, Exchange(lambda bucket, _: bucket))], only_new, f"{name}: new names")
    counts = new.map(lambda bucket, _: bucket, name="buckets").map_batch(_counted, name="counts")
    return in_order([(new, Pipeline()), (counts, Broadcast())], numbered, name)


def renamed(edges: Stream, *, name: str = "renamed") -> tuple[Stream, Stream]:
    """Return the edges with numbers for nodes, and (number, name) of each node when it first arrives.

    >>> edges = (np.array(["a", "b"]), np.array(["b", "a"]), np.array([0.5, 2.0]))
    >>> len(example(lambda scope: renamed(scope.to_stream(edges))[0]))
    2
    """
    check_streams(name, edges=edges)
    ends = edges.map_batch(_ends, name=f"{name}: ends")
    numbers = dense_renaming(ends, name=f"{name}: numbers")
    half = _looked_up(edges, numbers, f"{name}: sources")
    whole = _looked_up(half.map(_second_first), numbers, f"{name}: targets")
    return whole.map(_second_first), numbers.map(lambda name, number: (number, name))


def _looked_up(stream: Stream, numbers: Stream, name: str) -> Stream:
    """Return records with the number of the name that was in their first column."""
    known = NodeNumbers()

    def compute(given: Given, numbered: Given) -> Given:
        if numbered is not None:
            known.add(*numbered)
        if given is None:
            return None
        return (known.numbers(given[0]), *given[1:])

    return in_order([(stream, by_node()), (numbers, by_node())], compute, name)


def _distinct(names: Array, *_: Array) -> tuple[Ints, Array]:
    if isinstance(names, list):
        raise DataError("names are a column, not records in a list")
    return _with_buckets(np.unique(names))


def _ends(*columns: Array) -> Array:
    check_edges(columns)
    return stacked(columns[:2], "an edge")


def _with_buckets(names: Array) -> tuple[Ints, Array]:
    hashes = hash_columns((names,))
    # The highest bits, as many as number the buckets, of which there are a power of two.
    return (hashes >> np.uint64(64 - BUCKETS.bit_length() + 1)).astype(np.int64), names


def _counted(buckets: Ints) -> tuple[Ints, Ints]:
    counts = np.bincount(buckets)
    found = np.flatnonzero(counts)
    return found, counts[found]


def _second_first(first: Any, second: Any, *others: Any) -> tuple[Any, ...]:
    return (second, first, *others)
