"""Several small integers in one word, the first one the most significant; and back."""

from __future__ import annotations

from differential.kernels.compile import Ints, kernel
from differential.kernels.memory import empty


@kernel
def append_field(words: Ints, column: Ints, bits: int, offset: int, least: int, most: int) -> int:
    """Shift each word left by `bits`, and add the column's item and `offset`.

    Returns how many items are outside `least` to `most`.
    """
    outside = 0
    for row in range(len(words)):
        item = column[row]
        words[row] = (words[row] << bits) + item + offset
        outside += int(item < least or item > most)
    return outside


@kernel
def field(words: Ints, shift: int, bits: int, offset: int) -> Ints:
    """Return `bits` bits of each word from `shift` on, less `offset`; if `bits` is 64, all from there, with sign."""
    column = empty(len(words))
    mask = -1 if bits == 64 else (1 << bits) - 1
    for row in range(len(words)):
        column[row] = ((words[row] >> shift) & mask) - offset
    return column
