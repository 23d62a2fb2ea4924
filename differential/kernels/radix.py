"""Radix sort of words, alone or with a second word each.

Words that fit into the cache are sorted from the least significant digit on. A digit is one pass over the words, which
deals them out to as many places as the digit has values and keeps the order of equal digits. More words are first dealt
out by their most significant bits, to so few places that a cache line of each stays in the nearest cache; each part
that is still too large is dealt out again. (Beyond the cache, a pass with 1024 places takes up to 15 ns a word,
depending on the processor; one with 64 places takes 3 to 5.)

Words of many bits that fit into the cache mostly differ in their two leading digits. So only these are passes, and
insertion sorts the few words that agree in both; where many agree, the other digits are passes, too.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner
from differential.kernels.memory import empty

WORD = 64
IN_CACHE = 1 << 15
"""This many words, and as many spare ones, are in the cache together."""

_DIGIT = 9
_SMALL_DIGIT = 7
_SMALL_DIGIT_ROWS = 2000
_LEADING = 6
_MANY_BITS = 3 * _DIGIT
"""Up to this many bits, passes by all digits take no longer than two passes and insertion."""
_FEW = 16
"""Words that agree in both leading digits are left to insertion if they are less than twice as many."""


@bare
def mask_of(bits: int) -> int:
    """Return a word whose lowest `bits` bits are ones."""
    return int((1 << bits) - 1) if bits < WORD else -1


@bare
def deal_out(words: Ints, others: Ints, spare: Ints, other_spare: Ints, shift: int, mask: int, ends: Ints) -> None:
    """Copy the words to `spare` in the order of a digit, `mask` of them at `shift`; with them the others unless absent.

    Words of equal digits keep their order. Afterwards the first `mask + 1` of `ends` are where those of each digit end.
    """
    # `ends` is first the count of each digit, one place too high, then the start of each, and finally its end.
    ends[: mask + 2] = 0
    # An unsigned index spares the check for negative indices.
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
    """Return the words sorted by the fields, of the last of which only the bits below `high`; with them the others.

    The words move back and forth between the arrays given and the spares, which are of the same lengths. The arrays
    that are spare in the end are returned last.
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
            # The words were copied to the spares in order of this digit: the two change roles.
            words, spare = spare, words
            others, other_spare = other_spare, others
    return words, others, spare, other_spare


@bare
def insert_sorted(words: Ints, low: int) -> None:
    """Sort the words by the bits from `low` on, by insertion: for words that are nearly in order."""
    shift = np.uint64(low)
    for row in range(1, len(words)):
        word, place = words[row], row
        while place > 0 and np.uint64(word) >> shift < np.uint64(words[place - 1]) >> shift:
            words[place] = words[place - 1]
            place -= 1
        words[place] = word


@inner
def sort_leading(words: Ints, spare: Ints, fields: Table, high: int) -> None:
    """Sort words of which no second ones exist by the bits of the one field that are below `high`, in place.

    Two passes sort them by the two leading digits. Of the words that agree in these, many are sorted by the other
    digits, and few are left to insertion.
    """
    nothing, digit, low = words[:0], _DIGIT if len(words) >= _SMALL_DIGIT_ROWS else _SMALL_DIGIT, fields[0, 1]
    ends, rest = np.empty((1 << digit) + 1, np.int64), high - 2 * digit
    deal_out(words, nothing, spare, nothing, rest, mask_of(digit), ends)
    deal_out(spare, nothing, words, nothing, rest + digit, mask_of(digit), ends)
    row = 0
    while row + _FEW < len(words):
        # If two words agree in the leading digits, so do those between them.
        if (words[row] ^ words[row + _FEW]) >> rest != 0:
            row += _FEW
            continue
        start, stop = row, row + _FEW + 1
        while start > 0 and (words[start - 1] ^ words[row]) >> rest == 0:
            start -= 1
        while stop < len(words) and (words[stop] ^ words[row]) >> rest == 0:
            stop += 1
        run, _, _, _ = sort_parts(words[start:stop], nothing, (spare[start:stop], nothing), fields, rest)
        words[start:stop] = run
        row = stop
    insert_sorted(words, low)


@inner
def sort_words(first: Ints, second: Ints, fields: Table) -> tuple[Ints, Ints, Ints]:
    """Return the words, of which the second may be absent, sorted by the fields; and a spare array.

    A field is (whether it is in the second word, its lowest bit, the first bit above it). The last field is the most
    significant, and is in the first word.
    """
    spare, other_spare = empty(len(first)), empty(len(second))
    _, low, top = fields[len(fields) - 1]
    most = IN_CACHE if len(second) == 0 else IN_CACHE // 2
    # A stack of parts to sort: start, stop, the first bit above those to sort by, and whether it is in the spares. The
    # words of a part agree in the bits above.
    # A part is replaced by at most 2**_LEADING, which have _LEADING bits fewer to sort by: so the stack has room.
    parts = np.empty(((1 << _LEADING) * (WORD // _LEADING + 1), 4), np.int64)
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
            if len(second) == 0 and high - low > _MANY_BITS:
                sort_leading(words, other_words, fields, high)
            else:
                words, others, _, _ = sort_parts(words, others, (other_words, other_others), fields, high)
            # The passes may leave the part in the spares.
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
