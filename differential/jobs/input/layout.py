"""What the person who starts a job states about an input; everything else is read off the head of the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from timely.errors import DataError

SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "space": " ", "blanks": "blanks"}
"""Separators that have a name. A run of blanks and tabs is one separator of the kind `blanks`."""
BLANKS = "blanks"
MOST_DIGITS = 18
"""A column is not called by a number of more digits."""

WeightKind = Literal["integer", "float"]


class InputLayout(NamedTuple):
    """Which columns an input has. A column is given by its name in the header or by its number, from 1.

    Nodes are in the first two columns that are neither the weight nor the time.
    """

    weight: str | None = None
    """The column of weights, or None if edges have none. `:float` or `:integer` at the end states their type."""
    time: str | None = None
    """The column of times, integers, or None if edges have none."""
    header: bool | None = None
    """Whether the first line of a text names the columns; None means that the head of the file decides."""
    names: bool | None = None
    """Whether nodes are names (text) rather than integers; None means that the head of the file decides."""
    separator: str | None = None
    """A name among `SEPARATORS`, a character, or None if the head of the file decides."""

    @property
    def is_plain(self) -> bool:
        """Return whether edges have nodes alone."""
        return self.weight is None and self.time is None

    @property
    def delimiter(self) -> str | None:
        """Return the separating character, `BLANKS`, or None. Raises DataError if it is neither name nor character."""
        if self.separator is None:
            return None
        found = SEPARATORS.get(self.separator, self.separator)
        if found != BLANKS and (len(found) != 1 or not found.isascii() or found in '\r\n+-."' or found.isalnum()):
            names = ", ".join(SEPARATORS)
            raise DataError(f"the separator {self.separator!r} is neither one of {names} nor a single character")
        return found


class Places(NamedTuple):
    """The columns of an edge, counted from 0."""

    source: int
    target: int
    weight: int | None
    time: int | None


def weight_kind(weight: str | None) -> tuple[str | None, WeightKind | None]:
    """Return the column of a layout's `weight`, and the type that it states.

    >>> weight_kind("3:float"), weight_kind("cost")
    (('3', 'float'), ('cost', None))
    """
    if weight is not None:
        column, _, kind = weight.rpartition(":")
        if column and kind in ("float", "integer"):
            return column, "float" if kind == "float" else "integer"
    return weight, None


def least_width(layout: InputLayout) -> int:
    """Return the least number of columns that a row of an edge has.

    >>> least_width(InputLayout()), least_width(InputLayout(weight="cost")), least_width(InputLayout(time="7"))
    (2, 3, 7)
    """
    stated = [column for column in (weight_kind(layout.weight)[0], layout.time) if column is not None]
    return max([2 + len(stated), *(int(column) for column in stated if _is_number(column))])


def places(label: str, layout: InputLayout, width: int, header: Sequence[str] | None, remedy: str = "") -> Places:
    """Return the columns of an edge in a table of `width` columns, whose names are `header` if it has any.

    Raises DataError if a column does not exist, or if fewer than two remain for the nodes, for which it has a `remedy`.
    """
    weight = _place(label, weight_kind(layout.weight)[0], "weight", width, header)
    time = _place(label, layout.time, "time", width, header)
    if weight is not None and weight == time:
        raise DataError(f"{label}: column {weight + 1} cannot be both the weight and the time")
    nodes = [place for place in range(width) if place not in (weight, time)]
    if len(nodes) < 2:
        others = [name for name, place in (("the weight", weight), ("the time", time)) if place is not None]
        besides = f" besides {' and '.join(others)}" if others else ""
        raise DataError(f"{label}: an edge needs two columns{besides}, but there {_count(width)}{remedy}")
    return Places(nodes[0], nodes[1], weight, time)


def _place(label: str, column: str | None, role: str, width: int, header: Sequence[str] | None) -> int | None:
    if column is None:
        return None
    is_number = _is_number(column)
    if is_number and 1 <= int(column) <= width:
        return int(column) - 1
    if header is not None and column in header:
        return list(header).index(column)
    if is_number:
        raise DataError(f"{label}: the {role} is to be in column {column}, but there {_count(width)}")
    if header is None:
        raise DataError(
            f"{label}: no header names a column {column!r}; give the column of the {role} by its number, or `--header`"
        )
    raise DataError(f"{label}: no column is named {column!r}; the columns are {', '.join(map(repr, header))}")


def _is_number(column: str) -> bool:
    return column.isascii() and column.isdecimal() and len(column) <= MOST_DIGITS


def _count(width: int) -> str:
    return "is only one column" if width == 1 else f"are {width} columns"
