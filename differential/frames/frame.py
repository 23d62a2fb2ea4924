"""A frame: columns of one length, each with a name and a type.

A frame is what goes into an input and what comes out of a collection, with names: `session.insert(*frame.columns)`
inserts its rows. The type of a column is in the column itself (see `docs/types.md`), so a frame can be made of whatever
columns an operator received: `Frame(("name", "total"), updates.columns)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from differential.arrangement.reading import Contents
from differential.extra import needs
from differential.frames.python import column_of
from timely.errors import DataError
from timely.lowlevel import Array, Typed, name_of, typed

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_SHOWN = 10


class Frame:
    """Named columns of one length. Nobody may write to them: they may share the memory of what they were read from.

    Raises DataError where names and columns differ in number, a name occurs twice, columns differ in length, or
    something is not a column.

    >>> frame = Frame(("name", "age"), (["ann", "bob"], [41, None]))
    >>> frame
    name  age
    text  int64?
    ann   41
    bob   None
    >>> len(frame), frame["age"].tolist(), frame.to_dict()["name"]
    (2, [41, None], ['ann', 'bob'])
    """

    __slots__ = ("columns", "names")

    def __init__(self, names: Sequence[str], columns: Sequence[Any]) -> None:
        self.names = tuple(names)
        if len(set(self.names)) != len(self.names) or not all(isinstance(name, str) for name in self.names):
            raise DataError(
                f"the names of a frame's columns must be different texts, not {list(self.names)!r:.200}: rename "
                "them first, in pandas with frame.columns = [...]"
            )
        if not columns:
            raise DataError("0 column(s): a frame has at least one")
        if len(columns) != len(self.names):
            raise DataError(f"{len(columns)} column(s) for the names {list(self.names)!r:.200}: give each a name")
        self.columns: tuple[Array, ...] = tuple(map(column_of, columns, self.names))
        lengths = [len(column) for column in self.columns]
        if len(set(lengths)) > 1:
            raise DataError(f"columns of different lengths: {dict(zip(self.names, lengths))!r:.200}")

    @classmethod
    def of_contents(cls, names: Sequence[str], contents: Contents) -> Frame:
        """Return the records of a collection as of a time (`Trace.contents`), each as often as it occurs.

        >>> contents = Contents((np.array([1, 2]),), (np.array(["a", "b"], np.dtypes.StringDType()),), np.array([1, 2]))
        >>> Frame.of_contents(("id", "name"), contents).records()
        [(1, 'a'), (2, 'b'), (2, 'b')]
        """
        rows = np.repeat(np.arange(len(contents.counts)), contents.counts)
        return cls(names, [column[rows] for column in (*contents.keys, *contents.values)])

    @property
    def types(self) -> dict[str, str]:
        """The name of the type of each column."""
        return dict(zip(self.names, map(name_of, self.columns)))

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, name: str) -> Array:
        return self.columns[self._place(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __eq__(self, other: object) -> bool:
        """Return whether names, types and records are the same, in the same order; nulls are equal, and so is NaN."""
        if not isinstance(other, Frame):
            return NotImplemented
        same = self.names == other.names and self.types == other.types
        return same and all(map(_are_equal, self.columns, other.columns))

    __hash__ = None  # type: ignore[assignment]

    def select(self, *names: str) -> Frame:
        """Return the columns with these names, in this order.

        >>> Frame(("a", "b"), ([1], [2])).select("b").records()
        [(2,)]
        """
        return Frame(names, [self[name] for name in names])

    def rename(self, *names: str) -> Frame:
        """Return the same columns under other names."""
        return Frame(names, self.columns)

    def cast(self, types: dict[str, str]) -> Frame:
        """Return the frame with some columns converted to other types, by name; no value changes.

        Raises DataError, which names the column, where a value is not of the other type.

        >>> Frame(("a",), ([1, 2],)).cast({"a": "int64?"}).types
        {'a': 'int64?'}
        """
        columns = list(self.columns)
        for name, of in types.items():
            place = self._place(name)
            try:
                columns[place] = typed(columns[place], of)
            except DataError as error:
                raise DataError(f"column {name!r}: {error}") from None
        return Frame(self.names, columns)

    def take(self, rows: Any) -> Frame:
        """Return some rows: positions, a boolean mask, or a slice."""
        return Frame(self.names, [column[rows] for column in self.columns])

    def records(self) -> list[tuple[Any, ...]]:
        """Return the rows as tuples of Python objects, with None for a null: for answers, not for whole tables."""
        return list(zip(*map(_values, self.columns)))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return a list of Python objects for each column, with None for a null."""
        return dict(zip(self.names, map(_values, self.columns)))

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table. Columns of integers and floats share their memory with it."""
        needs("pyarrow", "to make an Arrow table")
        from differential.frames.arrow_out import table

        return table(self.names, self.columns)

    def to_polars(self) -> polars.DataFrame:
        """Return a Polars frame. Columns of integers and floats share their memory with it."""
        from differential.frames.other import to_polars

        frame: polars.DataFrame = to_polars(self.names, self.columns)
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas frame. Columns of integers and floats share their memory with it.

        Columns that may be null have the nullable types of pandas.
        """
        from differential.frames.other import to_pandas

        return to_pandas(self.names, self.columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the frame as a stream of Arrow's C interface, from which DuckDB, Polars and others read it."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        lines = aligned([list(map(cell, self.names)), list(self.types.values()), *self._cells()])
        return "\n".join([*lines, *self._more()])

    def _repr_html_(self) -> str:
        return as_html(self.names, [list(self.types.values())], self._cells(), self._more())

    def _more(self) -> list[str]:
        left = len(self) - _SHOWN
        return [f"... {left} more rows"] if left > 0 else []

    def _cells(self) -> list[list[str]]:
        """Return the first rows as text."""
        first = zip(*(_values(column[:_SHOWN]) for column in self.columns))
        return [[cell(value) for value in record] for record in first]

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise DataError(f"there is no column {name!r}: the columns are {', '.join(self.names)}")
        return self.names.index(name)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of text as lines in which columns are aligned.

    >>> print(*aligned([("name", "age"), ("ann", "41")]), sep="\\n")
    name  age
    ann   41
    """
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def as_html(
    names: Sequence[str], under: Sequence[Sequence[str]], rows: Sequence[Sequence[str]], notes: Sequence[str]
) -> str:
    """Return rows of text as a table in HTML, with names and further rows in its head, and notes below it.

    >>> as_html(["x"], [], [["<1>"]], [])
    '<table><thead><tr><th>x</th></tr></thead><tbody><tr><td>&lt;1&gt;</td></tr></tbody></table>'
    """

    def row(cells: Sequence[str], tag: str = "td") -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    head, body = row(names, "th") + "".join(map(row, under)), "".join(map(row, rows))
    more = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{more}"


WIDTH = 80
"""How many characters of a value are shown."""


def cell(value: object, width: int | None = WIDTH) -> str:
    """Return a value as text for a cell of a table: on one line, and cut if it is longer than `width`.

    Characters that move what follows them, such as those that control a terminal, are written as Python writes them.

    >>> cell("a\\nb"), cell(None), len(cell("long" * 100))
    ('a\\\\nb', 'None', 80)
    """
    text = str(value)
    cut = text if width is None or len(text) <= width else f"{text[: width - 3]}..."
    return _MOVES.sub(lambda found: found[0].encode("unicode_escape").decode(), cut)


_MOVES = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _values(column: Array) -> list[Any]:
    """Return the values of a column as Python objects, lists and structs as lists and dicts."""
    is_opaque = isinstance(column, Typed) and column.type.name == "value"
    values: list[Any] = (np.asarray(column) if is_opaque else column).tolist()
    return values


def _are_equal(one: Array, other: Array) -> bool:
    one, other = getattr(one, "storage", one), getattr(other, "storage", other)
    return len(one) == len(other) and bool(
        np.array_equal(np.asarray(one), np.asarray(other), equal_nan=one.dtype.kind == "f")
    )
