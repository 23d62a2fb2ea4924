"""Radix sort of words, alone or with a second word each.

What the cache holds is sorted from its least significant digit on: each digit is one pass over the words, which deals
them out to as many places as it has values. More words than that are first dealt out by their most significant bits,
to so few places that a line of each stays in the nearest cache, and the same is done to each part that is still too
large. (Beyond the cache a pass with 1024 places takes up to 15 ns a word, by processor, one with 64 places 3 to 5.)
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner
from differential.kernels.memory import empty

WORD = 64
IN_CACHE = 1 << 15
"""How many words, with as many to spare, are in the cache together."""

_DIGIT = 9
_SMALL_DIGIT = 7
_SMALL_DIGIT_ROWS = 2000
_LEADING = 6


@bare
def mask_of(bits: int) -> int:
    """Return that many ones."""
    return int((1 << bits) - 1) if bits < WORD else -1


@bare
def deal_out(words: Ints, others: Ints, spare: Ints, other_spare: Ints, shift: int, mask: int, ends: Ints) -> None:
    """Copy the words, and with them the others unless absent, in the order of their digit: `mask` of them at `shift`.

    Those of equal digits stay in order. The first `mask + 1` of `ends` tell afterwards where those of each digit end.
    """
    ends[: mask + 2] = 0
    # What has no sign is not looked at for being negative when it is an index.
    for word in words:
        ends[np.uint64(((word >> shift) & mask) + 1)] += 1
    for value in range(mask):
        ends[value + 1] += ends[value]
    if len(others) != 0:
        for row in range(len(words)):
            digit = np.uint64((words[row] >> shift) & mask)
            place = ends[digit]
            ends[digit] = place + 1
            spare[np.uint64(place)], other_spare[np.uint64(place)] = words[row], others[row]
    else:
        for word in words:
            digit = np.uint64((word >> shift) & mask)
            place = ends[digit]
            ends[digit] = place + 1
            spare[np.uint64(place)] = word


@inner
def sort_parts(
    words: Ints, others: Ints, spares: tuple[Ints, Ints], fields: Table, high: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the words, and with them the others unless absent, sorted by the fields, of the last one up to `high`.

    The arrays given, spares of the same lengths included, change places; the spares are returned last.
    """
    spare, other_spare = spares
    most = _SMALL_DIGIT if len(words) < _SMALL_DIGIT_ROWS else _DIGIT
    ends = np.empty((1 << most) + 1, np.int64)
    for field in range(len(fields)):
        is_other, low, top = fields[field]
        bits = (high if field == len(fields) - 1 else top) - low
        digits = (bits + most - 1) // most
        for digit in range(digits):
            begin, stop = low + bits * digit // digits, low + bits * (digit + 1) // digits
            if is_other != 0:
                deal_out(others, words, other_spare, spare, begin, mask_of(stop - begin), ends)
            else:
                deal_out(words, others, spare, other_spare, begin, mask_of(stop - begin), ends)
            words, spare = spare, words
            others, other_spare = other_spare, others
    return words, others, spare, other_spare


@inner
def sort_words(first: Ints, second: Ints, fields: Table) -> tuple[Ints, Ints, Ints]:
    """Return the words, of which the second may be absent, sorted by the fields; and an array to spare.

    Each field is (whether it is in the second word, its lowest bit, the first bit above it). The last one counts most,
    and is in the first word.
    """
    spare, other_spare = empty(len(first)), empty(len(second))
    _, low, top = fields[len(fields) - 1]
    most = IN_CACHE if len(second) == 0 else IN_CACHE // 2
    if len(first) <= most:
        first, second, spare, other_spare = sort_parts(first, second, (spare, other_spare), fields, top)
        return first, second, spare
    # Parts to be sorted: from where, to where, up to which bit, and whether they are among the spare words.
    parts = np.empty(((1 << _LEADING) * WORD, 4), np.int64)
    parts[0] = 0, len(first), top, 0
    waiting, ends = 1, np.empty((1 << _LEADING) + 1, np.int64)
    while waiting > 0:
        waiting -= 1
        start, stop, high, is_spare = parts[waiting]
        words, others = first[start:stop], second[start:stop]
        other_words, other_others = spare[start:stop], other_spare[start:stop]
        if is_spare != 0:
            words, others, other_words, other_others = other_words, other_others, words, others
        if stop - start <= most or high == low:
            words, others, _, _ = sort_parts(words, others, (other_words, other_others), fields, high)
            if words.ctypes.data != first[start:].ctypes.data:
                first[start:stop] = words
                second[start:stop] = others
            continue
        shift = max(low, high - _LEADING)
        mask = mask_of(high - shift)
        deal_out(words, others, other_words, other_others, shift, mask, ends)
        begin = 0
        for value in range(mask + 1):
            if ends[value] > begin:
                parts[waiting] = start + begin, start + ends[value], shift, 1 - is_spare
                waiting += 1
            begin = ends[value]
    return first, second, spare
