"""Pacts that route updates.

Rows are routed by their contents, so rows of kinds that do not go together, such as the keys 1 and 2.5, may never meet
on one worker. Still each worker must learn all kinds, to refuse such rows: the first batch of each kind goes to every
worker, empty where it has no rows. It costs each worker a message to each peer, once for each input with such a pact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from differential.data.updates import Updates, updates_of
from timely.lowlevel import Batch, Typed, code_floats, hash_columns

Array = NDArray[Any]


def hash_of_keys(columns: tuple[Array, ...]) -> NDArray[np.uint64]:
    """Return the hash of each row by which it is sent to a worker.

    A value has the same one whether its column may have nulls or not, because a join matches the two.

    >>> from timely.lowlevel import typed
    >>> plain, nulls = np.array([0.5, 7.0]), typed([0.5, None], "float64?")
    >>> bool(hash_of_keys((plain,))[0] == hash_of_keys((nulls,))[0])
    True
    """
    return hash_columns(tuple([_stored(column) if isinstance(column, Typed) else column for column in columns]))


def _stored(column: Typed) -> Any:
    name = column.type.name
    if name in _STORED_AS_THEY_ARE:
        return column.storage
    return code_floats(column.storage) if name.startswith("float") else column


_STORED_AS_THEY_ARE = {"int64?", "bool?", "text?"}
_TYPED = {"O", "M", "m"}
"""The one-letter codes of dtypes that typed columns have, and columns of bytes."""

Parts = Iterator[tuple[int, Batch]]


class OfUpdates:
    """A pact for updates alone: it admits no other batches, and no times of other scopes.

    >>> updates = Updates.at((7,), (np.array([1, 2]),))
    >>> OfUpdates().admits(updates, 1), OfUpdates().admits(updates, 2), OfUpdates().admits([1, 2], 1)
    (True, False, False)
    """

    def admits(self, batch: Batch, coordinates: int) -> bool:
        """Return whether a batch is one of updates, at times of this many coordinates (see `pact.Selective`)."""
        return type(batch) is Updates and batch.times.shape[1] == coordinates


class Spreading(OfUpdates):
    """A pact that sends each update where its record belongs, and the kinds of columns to every worker.

    >>> class Last(Spreading):
    ...     name = "at the last worker"
    ...     def spread(self, updates, peers):
    ...         return iter([(peers - 1, updates)])
    >>> last, updates = Last(), Updates.at((7,), (np.array([1, 2]),))
    >>> [[(worker, len(part)) for worker, part in last.split(updates, 3)] for _ in range(2)]
    [[(2, 2), (0, 0), (1, 0)], [(2, 2)]]
    """

    name: str

    def __init__(self) -> None:
        self._announced: set[tuple[str, ...]] = set()

    def spread(self, updates: Updates, peers: int) -> Parts:
        """Yield (worker, its updates) for every worker that has any."""
        raise NotImplementedError

    def split(self, batch: Batch, peers: int) -> Parts:
        """Yield what `spread` does and, for kinds of columns that are new, an empty batch for every other worker."""
        updates = updates_of(batch)
        # The one-letter code of a type does not contain a length, so there are few.
        kinds: tuple[str, ...] = tuple([column.dtype.char for column in updates.columns])
        if not _TYPED.isdisjoint(kinds):
            kinds = tuple([each.type.name if isinstance(each, Typed) else each.dtype.char for each in updates.columns])
        if kinds in self._announced:
            return self.spread(updates, peers)
        self._announced.add(kinds)  # this worker's: each worker has an instance of its own, and announces for itself
        return self._spread_and_announce(updates, peers)

    def _spread_and_announce(self, updates: Updates, peers: int) -> Parts:
        others = set(range(peers))
        for worker, part in self.spread(updates, peers):
            others.discard(worker)
            yield worker, part
        for worker in sorted(others):
            yield worker, Updates(tuple([column[:0] for column in updates.columns]), updates.times[:1])
