"""Which parts of a durable collection to merge next.

Parts have *levels*: one of up to 4,096 rows has level 0, and each further level holds eight times as many. For a level,
take the last parts in a row none of which has a higher one. While the largest has more than half of their rows, leave
it out, and those before it. The others are merged if there are at least `RUN`; of several levels the lowest is chosen.
So the part that a row is in grows at least twofold each time that the row is written again, and a collection has some
dozens of parts, however few rows an append has.

A step merges at most `MOST_ROWS` rows, which bounds its time and memory; larger parts stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from differential.durable.manifest import Part

RUN = 8
MOST_ROWS = 1 << 22
_FIRST_BITS, _BITS = 12, 3


def choose(parts: Sequence[Part]) -> tuple[int, int] | None:
    """Return the first and the last position, exclusive, of parts to merge, or None if none are worth it.

    >>> def of(*rows):
    ...     return [Part(str(at), at, at + 1, each, 0, "", 0) for at, each in enumerate(rows)]
    >>> choose(of(*[10] * 7)), choose(of(*[10] * 8)), choose(of(50_000, *[10] * 8)), choose(of(50_000, *[5000] * 7))
    (None, (0, 8), (1, 9), None)
    >>> choose(of(1000, *[10] * 7)), choose(of(1000, *[10] * 8)), choose(of(1000, 80, *[10] * 8))
    (None, (1, 9), (1, 10))
    """
    levels = [level(part.rows) for part in parts]
    for highest in sorted(set(levels)):
        end = len(parts)
        while end and levels[end - 1] > highest:
            end -= 1
        start = end
        while start and levels[start - 1] <= highest:
            start -= 1
        while sum(part.rows for part in parts[start:end]) > MOST_ROWS:
            start += 1
        rows = [part.rows for part in parts[start:end]]
        while len(rows) >= RUN and 2 * max(rows) > sum(rows):
            rows = rows[rows.index(max(rows)) + 1 :]
        if len(rows) >= RUN:
            return end - len(rows), end  # `rows` has lost only a prefix, so it still ends at `end`
    return None


def level(rows: int) -> int:
    """Return the level of a part with this many rows.

    >>> level(4096), level(4097), level(8 * 4096), level(8 * 4096 + 1)
    (0, 1, 1, 2)
    """
    return max(0, -(-((rows - 1).bit_length() - _FIRST_BITS) // _BITS))
