"""A table of strings: distinct byte strings have numbers, and a number has its bytes.

Strings are in words: the bytes of each, eight to a word, the last word filled up with zeros. The table consists of

- `slots`, a hash table with linear probing. A slot is 0 where it is free. Otherwise its upper half is the lower half of
  the hash, which shows most other strings to be different, and its lower half the number plus one. At most half of the
  slots are taken;
- `meta`, a row for each number: where in `arena` its words start, its size, its hash;
- `arena`, the words of all strings, with gaps where strings were removed;
- `state`: how many strings there are, the words of `arena` in use, and how many of these are of strings that exist.

A size is the number of bytes times `TAGS`, plus a tag that distinguishes text from bytes; 0 stands for no string. The
hash of up to 64 bytes is the one that `timely.dataflow.routing` gives. A lookup costs a hash of each word, and the
comparison of the words with those of the string found.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, bare, kernel
from differential.kernels.memory import empty, fetch, item
from differential.kernels.route import mix

START, SIZE, HASH, META_WIDTH = range(4)
COUNT, TOP, LIVE, STATE_WIDTH = range(4)
TAGS = 4
"""A size is the number of bytes times this, plus a tag."""

ABREAST = 32
"""How many lookups wait for memory at the same time."""

_LARGE = 1 << 10
"""A table of fewer numbers is assumed to be in the cache."""

_HALF = 32
_LOWER_HALF = (1 << _HALF) - 1


@bare
def words_of(size: int) -> int:
    """Return how many words a string of this size takes."""
    return (size // TAGS + 7) >> 3


@bare
def hashed(words: Ints, start: int, size: int) -> int:
    """Return the hash of the string that starts at a word."""
    result = np.uint64(size // TAGS) * np.uint64(0x9E3779B97F4A7C15)
    if size < TAGS:
        return np.int64(mix(0))  # type: ignore[return-value]
    for place in range(start, start + words_of(size)):
        result = np.uint64(mix(np.int64(result ^ np.uint64(words[place]))))  # type: ignore[arg-type]
    return np.int64(result)  # type: ignore[return-value]


@bare
def _probe(slots: Ints, meta: Table, arena: Ints, words: Ints, start: int, size: int, hash: int) -> int:
    """Return the slot of a string, or the free one where it would be."""
    mask = len(slots) - 1
    slot = hash & mask
    while slots[slot] != 0:
        if (slots[slot] ^ (hash << _HALF)) >> _HALF == 0:
            number = (slots[slot] & _LOWER_HALF) - 1
            if meta[number, SIZE] == size:
                at, place = meta[number, START], 0
                count = words_of(size)
                while place < count and arena[at + place] == words[start + place]:
                    place += 1
                if place == count:
                    return slot
        slot = (slot + 1) & mask
    return slot


@bare
def _hash_abreast(
    slots: Ints, meta: Table, arena: Ints, words: Ints, starts: Ints, sizes: Ints, first: int, hashes: Ints
) -> int:
    """Hash up to `ABREAST` strings from one on; return how many.

    What their lookups read is brought into the cache, so that they wait for memory together.
    """
    count, mask = min(ABREAST, len(starts) - first), len(slots) - 1
    for place in range(count):
        hashes[place] = hashed(words, starts[first + place], sizes[first + place])
    if len(meta) < _LARGE:
        return count
    for place in range(count):
        fetch(slots.ctypes.data + 8 * (hashes[place] & mask))
    for place in range(count):
        number = max((slots[hashes[place] & mask] & _LOWER_HALF) - 1, 0)
        fetch(meta.ctypes.data + 8 * META_WIDTH * number)
    for place in range(count):
        number = max((slots[hashes[place] & mask] & _LOWER_HALF) - 1, 0)
        fetch(arena.ctypes.data + 8 * meta[number, START])
    return count


@kernel
def find_strings(
    slots: Ints, meta: Table, arena: Ints, words: Ints, starts: Ints, sizes: Ints, absent: int
) -> tuple[Ints, int]:
    """Return the number of each string, `absent` where it has none, and how many have none."""
    numbers, hashes = empty(len(starts)), empty(ABREAST)
    missing = 0
    for first in range(0, len(starts), ABREAST):
        count = _hash_abreast(slots, meta, arena, words, starts, sizes, first, hashes)
        for row in range(first, first + count):
            slot = _probe(slots, meta, arena, words, starts[row], sizes[row], hashes[row - first])
            if slots[slot] == 0:
                numbers[row] = absent
                missing += 1
            else:
                numbers[row] = (slots[slot] & _LOWER_HALF) - 1
    return numbers, missing


@kernel
def add_strings(
    slots: Ints, meta: Table, arena: Ints, state: Ints, words: Ints, starts: Ints, sizes: Ints, unused: Ints
) -> tuple[Ints, int]:
    """Return the number of each string, and how many from `unused` strings without one have received.

    There must be room in `slots` and `arena` for as many strings, and rows in `meta` for the unused numbers.
    """
    numbers, hashes, used = empty(len(starts)), empty(ABREAST), 0
    for first in range(0, len(starts), ABREAST):
        many = _hash_abreast(slots, meta, arena, words, starts, sizes, first, hashes)
        for row in range(first, first + many):
            start, size, hash = starts[row], sizes[row], hashes[row - first]
            slot = _probe(slots, meta, arena, words, start, size, hash)
            if slots[slot] == 0:
                number = unused[used]
                used += 1
                top, count = state[TOP], words_of(size)
                for place in range(count):
                    arena[top + place] = words[start + place]
                meta[number, START], meta[number, SIZE], meta[number, HASH] = top, size, hash
                slots[slot] = (hash << _HALF) | (number + 1)
                state[TOP] += count
                state[LIVE] += count
                state[COUNT] += 1
            numbers[row] = (slots[slot] & _LOWER_HALF) - 1
    return numbers, used


@kernel
def remove_strings(slots: Ints, meta: Table, state: Ints, numbers: Ints) -> Ints:
    """Remove the strings with these numbers; return the numbers of those that there were."""
    mask = len(slots) - 1
    removed, count = empty(len(numbers)), 0
    for number in numbers:
        if meta[number, SIZE] == 0:
            continue
        slot = meta[number, HASH] & mask
        while slots[slot] & _LOWER_HALF != number + 1:
            slot = (slot + 1) & mask
        # What was put further on because this slot was taken moves up, so that no probe ends at a gap.
        hole, slot = slot, (slot + 1) & mask
        while slots[slot] != 0:
            home = (slots[slot] >> _HALF) & mask
            if (slot - home) & mask >= (slot - hole) & mask:
                slots[hole] = slots[slot]
                hole = slot
            slot = (slot + 1) & mask
        slots[hole] = 0
        state[LIVE] -= words_of(meta[number, SIZE])
        state[COUNT] -= 1
        meta[number, SIZE] = 0
        removed[count] = number
        count += 1
    return removed[:count]


@kernel
def rehash(slots: Ints, larger: Ints) -> None:
    """Enter what is in `slots` into `larger`, whose slots are free."""
    mask = len(larger) - 1
    for entry in slots:
        if entry != 0:
            slot = (entry >> _HALF) & mask
            while larger[slot] != 0:
                slot = (slot + 1) & mask
            larger[slot] = entry


@kernel
def compact(meta: Table, arena: Ints, larger: Ints, numbers: int) -> int:
    """Copy the words of all strings to `larger`, without gaps; return how many words these are."""
    top = 0
    for number in range(numbers):
        if meta[number, SIZE] != 0:
            start = meta[number, START]
            meta[number, START] = top
            for place in range(words_of(meta[number, SIZE])):
                larger[top] = arena[start + place]
                top += 1
    return top


@kernel
def widest(meta: Table, numbers: Ints) -> int:
    """Return the number of bytes of the longest of these strings."""
    longest = 0
    for number in numbers:
        longest = max(longest, meta[number, SIZE] // TAGS)
    return longest


@kernel
def gather_strings(meta: Table, arena: Ints, numbers: Ints, width: int) -> Ints:
    """Return the words of strings, `width` for each: no string has more, and zeros follow the end of each."""
    words = empty(len(numbers) * width)
    to = 0
    for number in numbers:
        start, count = meta[number, START], words_of(meta[number, SIZE])
        for place in range(count):
            words[to + place] = arena[start + place]
        for place in range(count, width):
            words[to + place] = 0
        to += width
    return words


@bare
def _big_endian(word: int) -> int:
    """Return a word whose unsigned order, with the highest bit inverted the signed order, is that of its bytes."""
    bits = np.uint64(word)
    bits = (bits >> np.uint64(32)) | (bits << np.uint64(32))
    bits = ((bits >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)) | (
        (bits & np.uint64(0x0000FFFF0000FFFF)) << np.uint64(16)
    )
    bits = ((bits >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)) | (
        (bits & np.uint64(0x00FF00FF00FF00FF)) << np.uint64(8)
    )
    return np.int64(bits ^ np.uint64(1 << 63))  # type: ignore[return-value]


@bare
def start_of(table: int, number: int) -> int:
    """Return the address of the first word of the string of a number (see `is_less` for `table`)."""
    return item(table + 8) + 8 * item(item(table) + 8 * META_WIDTH * number)


@bare
def first_word(table: int, number: int) -> int:
    """Return an integer that orders as the first eight bytes of the string of a number, padded with zeros."""
    size = item(item(table) + 8 * (META_WIDTH * number + SIZE))
    return _big_endian(item(start_of(table, number)) if words_of(size) > 0 else 0)


@bare
def is_less(table: int, one: int, other: int) -> bool:
    """Return whether the string of one number comes before that of another: by their bytes, which orders text, too.

    `table` is the address of the addresses of `meta` and `arena`.
    """
    if one == other:
        return False
    first, second = item(table) + 8 * META_WIDTH * one, item(table) + 8 * META_WIDTH * other
    size, other_size = item(first + 8 * SIZE), item(second + 8 * SIZE)
    start, other_start = start_of(table, one), start_of(table, other)
    for place in range(0, 8 * min(words_of(size), words_of(other_size)), 8):
        word, other_word = item(start + place), item(other_start + place)
        if word != other_word:
            return _big_endian(word) < _big_endian(other_word)
    return size < other_size


@kernel
def in_order(table: int, numbers: Ints) -> Ints:
    """Return the numbers in the order of their strings, by a merge sort (see `is_less` for `table`)."""
    source, target = numbers.copy(), empty(len(numbers))
    width = 1
    while width < len(source):
        for low in range(0, len(source), 2 * width):
            middle, high = min(low + width, len(source)), min(low + 2 * width, len(source))
            i, j = low, middle
            for place in range(low, high):
                if j == high or (i < middle and not is_less(table, source[j], source[i])):
                    target[place] = source[i]
                    i += 1
                else:
                    target[place] = source[j]
                    j += 1
        source, target = target, source
        width *= 2
    return source
