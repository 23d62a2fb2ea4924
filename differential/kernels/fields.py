"""Several small integers in one word, the first the most significant; and back."""

from __future__ import annotations

from differential.kernels.compile import Ints, kernel
from differential.kernels.memory import empty


@kernel
def append_field(words: Ints, column: Ints, bits: int, offset: int, least: int, most: int) -> int:
    """Shift each word by `bits`, add the column's item and `offset`; return how many items are not in `least..most`."""
    outside = 0
    for row in range(len(words)):
        item = column[row]
        words[row] = (words[row] << bits) + item + offset
        outside += int(item < least or item > most)
    return outside


@kernel
def field(words: Ints, shift: int, bits: int, offset: int) -> Ints:
    """Return `bits` bits of each word from `shift` on, less `offset`; all the bits from there, with sign, if 64."""
    column = empty(len(words))
    mask = -1 if bits == 64 else (1 << bits) - 1
    for row in range(len(words)):
        column[row] = ((words[row] >> shift) & mask) - offset
    return column
