"""The search for keys in sorted columns by galloping: from a start in growing steps, then by halving the last step.

The cost is the logarithm of the distance, so a walk over ascending keys costs no more than a scan.
"""

from __future__ import annotations

from differential.kernels.compile import Ints, bare


@bare
def seek(keys: Ints, start: int, key: int) -> int:
    """Return the first row from `start` on whose key is at least `key`."""
    count = len(keys)
    if start >= count or keys[start] >= key:
        return start
    # The key of `low` is less throughout; after the first loop that of `high` is not, or there is none.
    low, step = start, 1
    while low + step < count and keys[low + step] < key:
        low += step
        step *= 4
    high = min(low + step, count)
    while high - low > 1:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle
        else:
            high = middle
    return high


@bare
def after(keys: Ints, start: int) -> int:
    """Return the first row after `start` whose key differs from that of `start`."""
    count, key = len(keys), keys[start]
    if start + 1 >= count or keys[start + 1] != key:
        return start + 1
    return seek(keys, start + 1, key + 1) if key != 9223372036854775807 else count
