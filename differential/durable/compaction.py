"""Which parts of a durable collection to merge next.

Parts have *levels*: one of up to 4,096 rows has level 0, and each further level holds eight times as many. For a level,
take the last parts in a row none of which has a higher one. They are merged if there are at least `RUN`, and the
largest has at most half of their rows; of several levels the lowest is chosen. So the part that a row is in grows at
least twofold each time that the row is written again, and a collection of n rows has some RUN · log8(n / 4096) parts.

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
        if len(rows) >= RUN and 2 * max(rows) <= sum(rows):
            return start, end
    return None


def level(rows: int) -> int:
    """Return the level of a part with this many rows.

    >>> level(4096), level(4097), level(8 * 4096), level(8 * 4096 + 1)
    (0, 1, 1, 2)
    """
    return max(0, -(-((rows - 1).bit_length() - _FIRST_BITS) // _BITS))
