"""Numbering the different texts of a long column in the order in which they appear.

This is the table of `differential.kernels.strings` for a column that is read once: nothing is removed, no text is read
back, and a text of up to `INLINE` bytes is in its slot, so that a lookup touches one line of the cache. Rows are looked
up `AHEAD` at a time. The slots of all of them are touched before the first is compared: a table of millions of texts is
in main memory, which answers many requests at once in little more time than one.

The table is a hash table with linear probing, of which at most half is taken. A slot has four items:

- `LOW`, `HIGH`: the bytes of the text, filled up with zeros; of a longer one its hash, and where in `long` its words
  start;
- `BYTES`: its length;
- `NUMBER`: its number plus one, or 0 where the slot is free.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, bare, kernel
from differential.kernels.memory import empty, item
from differential.kernels.route import mix

LOW, HIGH, BYTES, NUMBER, SLOT = range(5)
"""The items of a slot, and their number."""
COUNT, TOP, TOUCHED, STATE = range(4)
"""The items of a state: how many texts there are, how many items of `long` they take, and nothing of meaning."""

INLINE = 16
AHEAD = 64


@bare
def _word(address: int, size: int) -> int:
    """Return up to eight bytes at an address, filled up with zeros."""
    word = item(address)
    return word if size >= 8 else word & ((1 << (8 * size)) - 1)


@bare
def _hash(low: int, high: int, size: int) -> int:
    """Return the hash of a text of up to `INLINE` bytes."""
    product = (np.uint64(high) + np.uint64(size)) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mix(np.int64(np.uint64(low) ^ product)))  # type: ignore[arg-type,return-value]


@bare
def _hash_of_long(address: int, size: int) -> int:
    """Return the hash of a text of any length."""
    result = np.uint64(size)
    for place in range(0, size, 8):
        result = np.uint64(mix(np.int64(result ^ np.uint64(_word(address + place, size - place)))))  # type: ignore[arg-type]
    return np.int64(result)  # type: ignore[return-value]


@bare
def _is_same(long: Ints, start: int, address: int, size: int) -> bool:
    """Return whether the words from `start` on are those of the text at an address."""
    place = 0
    while place < size and long[start + (place >> 3)] == _word(address + place, size - place):
        place += 8
    return place >= size


@kernel
def number_names(table: Ints, long: Ints, state: Ints, offsets: Ints, data: int) -> tuple[Ints, Ints]:
    """Return the number of each text, and the rows of those texts that had no number before, in the order of numbers.

    Row `i` has the bytes from address `data + offsets[i]` to before `data + offsets[i + 1]`. Eight bytes after the last
    one are readable, too. There must be room in `table` and `long` for as many more texts.
    """
    rows = len(offsets) - 1
    mask = len(table) // SLOT - 1
    numbers, fresh, used = empty(rows), empty(rows), 0
    keys = np.empty(3 * AHEAD, np.int64)
    for begin in range(0, rows, AHEAD):
        end = min(begin + AHEAD, rows)
        touched = np.int64(0)
        for row in range(begin, end):
            at, size, key = data + offsets[row], offsets[row + 1] - offsets[row], 3 * (row - begin)
            if size <= INLINE:
                low = _word(at, size)
                high = _word(at + 8, size - 8) if size > 8 else 0
                keys[key], keys[key + 1], keys[key + 2] = low, high, _hash(low, high, size)
            else:
                hash = _hash_of_long(at, size)
                keys[key], keys[key + 1], keys[key + 2] = hash, 0, hash
            touched ^= table[(keys[key + 2] & mask) * SLOT]
        state[TOUCHED] ^= touched
        for row in range(begin, end):
            at, size, key = data + offsets[row], offsets[row + 1] - offsets[row], 3 * (row - begin)
            low, high = keys[key], keys[key + 1]
            slot = keys[key + 2] & mask
            while table[slot * SLOT + NUMBER] != 0:
                place = slot * SLOT
                if table[place] == low and table[place + BYTES] == size:
                    if size <= INLINE:
                        if table[place + HIGH] == high:
                            break
                    elif _is_same(long, table[place + HIGH], at, size):
                        break
                slot = (slot + 1) & mask
            place = slot * SLOT
            if table[place + NUMBER] == 0:
                if size > INLINE:
                    high = state[TOP]
                    for word in range(0, size, 8):
                        long[high + (word >> 3)] = _word(at + word, size - word)
                    state[TOP] += (size + 7) >> 3
                state[COUNT] += 1
                table[place], table[place + HIGH], table[place + BYTES] = low, high, size
                table[place + NUMBER] = state[COUNT]
                fresh[used] = row
                used += 1
            numbers[row] = table[place + NUMBER] - 1
    return numbers, fresh[:used].copy()


@kernel
def with_more_slots(table: Ints, slots: int) -> Ints:
    """Return a table with the same texts and more slots, a power of two."""
    larger = empty(slots * SLOT)
    larger[:] = 0
    mask = slots - 1
    for place in range(0, len(table), SLOT):
        if table[place + NUMBER] != 0:
            low, high, size = table[place], table[place + HIGH], table[place + BYTES]
            slot = (_hash(low, high, size) if size <= INLINE else low) & mask
            while larger[slot * SLOT + NUMBER] != 0:
                slot = (slot + 1) & mask
            larger[slot * SLOT : slot * SLOT + SLOT] = table[place : place + SLOT]
    return larger
