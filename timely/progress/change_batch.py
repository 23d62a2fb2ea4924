"""Net changes per key: what remains after opposite changes have cancelled.

Progress consists of differences, and most of them cancel before anyone needs them: a message that is produced and
consumed within one step leaves nothing. Invariant: no key has a sum of zero. An update costs O(1).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class ChangeBatch(Generic[Key]):
    """The sum of differences per key; `[key]` is 0 for a key that is not there.

    >>> changes = ChangeBatch([("a", 1), ("b", 2)])
    >>> changes.update("a", -1)
    >>> list(changes), changes["a"]
    ([('b', 2)], 0)
    """

    __slots__ = ("_sums",)

    def __init__(self, updates: Iterable[tuple[Key, int]] = ()) -> None:
        self._sums: dict[Key, int] = {}
        for key, diff in updates:
            self.update(key, diff)

    def update(self, key: Key, diff: int) -> None:
        """Add `diff` to the sum of `key`."""
        total = self._sums.get(key, 0) + diff
        if total:
            self._sums[key] = total
        else:
            self._sums.pop(key, None)

    def __getitem__(self, key: Key) -> int:
        return self._sums.get(key, 0)

    def __iter__(self) -> Iterator[tuple[Key, int]]:
        return iter(self._sums.items())

    def __len__(self) -> int:
        return len(self._sums)

    def __repr__(self) -> str:
        return f"ChangeBatch({list(self._sums.items())})"
