"""Columns of integers dressed as columns of other kinds, in the same order, and undressed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

OFFSET = 5 * 10**12
"""In the midst of the numbers of 13 digits, so that texts of numbers are in their order on both sides of 0."""
LETTERS = ("", "a", "ä")


class Kind(NamedTuple):
    """How many columns there are for one, and the ways there and back."""

    width: int
    dress: Callable[[Any], tuple[Any, ...]]
    undress: Callable[..., Any]


def _text(column: Any) -> tuple[Any, ...]:
    return (np.array([f"{OFFSET + number}é" for number in column.tolist()], np.dtypes.StringDType()),)


def _of_text(column: Any) -> Any:
    return np.array([int(text[:-1]) - OFFSET for text in column.tolist()], np.int64)


def _bytes(column: Any) -> tuple[Any, ...]:
    return (np.array([b"%d" % (OFFSET + number) for number in column.tolist()], "S13"),)


def _of_bytes(column: Any) -> Any:
    return np.array([int(text) - OFFSET for text in column.tolist()], np.int64)


def _letter(column: Any) -> tuple[Any, ...]:
    return column // 3, np.array([LETTERS[number] for number in (column % 3).tolist()], np.dtypes.StringDType())


def _of_letter(number: Any, letter: Any) -> Any:
    return number * 3 + np.array([LETTERS.index(text) for text in letter.tolist()], np.int64)


KINDS = {
    "int": Kind(1, lambda column: (column,), lambda column: column),
    "float": Kind(1, lambda column: (column / 4,), lambda column: (column * 4).astype(np.int64)),
    "text": Kind(1, _text, _of_text),
    "bytes": Kind(1, _bytes, _of_bytes),
    "int and bool": Kind(
        2, lambda column: (column // 2, column % 2 == 1), lambda half, odd: half * 2 + odd.astype(np.int64)
    ),
    "int and text": Kind(2, _letter, _of_letter),
    "float, bool and text": Kind(
        3,
        lambda column: ((column // 6) / 2, column // 3 % 2 == 1, _letter(column % 3)[1]),
        lambda number, odd, letter: (
            (number * 2).astype(np.int64) * 6
            + odd.astype(np.int64) * 3
            + _of_letter(np.zeros(len(letter), np.int64), letter)
        ),
    ),
}
