"""Call a function with updates as they pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential.arrangement.core import C
from differential.data.updates import Updates
from differential.operators.linear import linear
from timely.lowlevel import Time, check_functions


def inspect(collection: C, look: Callable[[tuple[Any, ...], Time, int], object], *, name: str = "inspect") -> C:
    """Return the collection unchanged, after `look(record, time, diff)` was called for each of its updates.

    `look` sees updates as they arrive, not consolidated, on the worker that has them; see `output` for final answers.

    >>> _ = example(lambda scope: Collection.of(scope, np.array([7])).inspect(print))
    (7,) (0,) 1
    """
    check_functions(name, look=look)

    def transform(updates: Updates) -> Updates:
        for row in updates.rows():
            look(*row)
        return updates

    return linear(collection, transform, name=name)


def inspect_batch(collection: C, look: Callable[[Updates], object], *, name: str = "inspect_batch") -> C:
    """Return the collection unchanged, after `look(updates)` was called for each batch of its updates.

    The arrays of the batches are read-only.

    >>> _ = example(lambda scope: Collection.of(scope, np.arange(5)).inspect_batch(lambda batch: print(len(batch))))
    5
    """
    check_functions(name, look=look)

    def transform(updates: Updates) -> Updates:
        look(updates.as_read_only())
        return updates

    return linear(collection, transform, name=name)
