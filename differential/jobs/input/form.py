"""The form of a text: separator, header, columns and their types, as the head of the file shows them.

The same head has the same form in every process, so that all workers read a file alike. A line that does not have the
form is a fault, wherever it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Literal, NamedTuple

from differential.jobs.input.layout import BLANKS, InputLayout, Places, WeightKind, least_width, places, weight_kind
from timely.errors import DataError

Kind = Literal["integer", "float", "name", "sign"]
INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
MOST_DIGITS = 4000
"""Python converts no longer text to an integer."""
FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
RUN = re.compile("[ \t]+")
JSON = re.compile(r'\s*\[?\s*\{\s*"[^"]*"\s*:')
"""How a line begins that is an object of JSON, or the first of a list."""
MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, with which some programs begin a text."""
COMMENTS = ("#", "%", "//")
"""What a comment begins with, after blanks."""
CANDIDATES = ("\t", ",", ";", BLANKS)
ENDS = {
    *(("source", "target"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("head", "tail"), ("start", "end")),
    *(("sourceid", "targetid"), ("source_id", "target_id"), ("fromnodeid", "tonodeid"), ("from_id", "to_id")),
    *(("node1", "node2"), ("node_1", "node_2"), ("id_1", "id_2"), ("id1", "id2")),
}
"""What headers usually name the ends of edges, in lower case."""
NO_NUMBERS = {"na", "nan", "null", "none", "inf", "infinity", "missing"}
"""What stands in the place of numbers that are not there."""
SEPARATED = "; `--separator` states what is between columns"


class InputColumn(NamedTuple):
    """A column that is read."""

    role: str
    place: int
    """Counted from 0."""
    kind: Kind


@dataclass(frozen=True)
class Form:
    """How the lines of a text are read."""

    separator: str
    """One character, or `BLANKS`."""
    width: int
    """How many columns each line has."""
    columns: tuple[InputColumn, ...]
    body: int = 0
    """The offset of the first byte after the header."""
    line: int = 1
    """The line at that offset, counted from 1."""
    limits: tuple[int, int] | None = None
    """The largest source and the largest target, if they are bounded; then 1 is the smallest."""

    @property
    def has_names(self) -> bool:
        return any(column.kind == "name" for column in self.columns)

    @property
    def weight(self) -> WeightKind | None:
        """Return the type of the weights, or None if there are none."""
        kind = next((column.kind for column in self.columns if column.role == "weight"), None)
        return kind if kind == "integer" or kind == "float" else None


class DataLine(NamedTuple):
    """A line that is neither blank nor a comment."""

    number: int
    start: int
    """The offset of its first byte."""
    end: int
    """The offset after its end."""
    text: str
    """Without its end; bytes that are not UTF-8 are surrogates."""

    @property
    def shown(self) -> str:
        """Return the text with escapes for bytes that are not UTF-8."""
        return self.text.encode(errors="surrogateescape").decode(errors="backslashreplace")


def integer_of(text: str) -> int | None:
    """Return the integer of 64 bits that a text is, or None."""
    if not INTEGER.fullmatch(text) or len(text) >= MOST_DIGITS:
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def split(line: str, separator: str) -> list[str]:
    """Return the fields of a line, without surrounding blanks."""
    if separator == BLANKS:
        return RUN.split(line.strip(" \t"))
    return [field.strip(" \t") for field in line.split(separator)]


def lines(data: bytes, number: int = 1) -> Iterator[DataLine]:
    """Yield the lines that are neither blank nor comments; the first line of `data` has that number."""
    start = 0
    for raw in BytesIO(data):  # a carriage return alone ends no line
        end = start + len(raw)
        text = raw.removesuffix(b"\n").removesuffix(b"\r").decode(errors="surrogateescape")
        if text.strip(" \t") and not text.lstrip(" \t").startswith(COMMENTS):
            yield DataLine(number, start, end, text)
        start = end
        number += 1


def edge_form(label: str, head: bytes, layout: InputLayout) -> Form:
    """Return the form of a list of edges, from the complete lines at its beginning.

    Raises DataError if there are none, or if no separator makes edges of them.
    """
    mark = len(MARK) if head.startswith(MARK) else 0
    found = list(lines(head[mark:]))
    if not found:
        what = "has comments but no edges" if head.strip() else "is empty"
        raise DataError(f"{label} {what}; an empty graph has a header: `--header`")
    if layout.separator is None and JSON.match(found[0].text):
        raise DataError(
            f"{label}, line {found[0].number}: is JSON, and edges are lines of two fields or more: convert the file to "
            "Parquet, as duckdb and pandas do"
        )
    separator = layout.delimiter or _separator(label, found, layout)
    rows = [split(line.text, separator) for line in found]
    header = _header(label, rows, layout)
    body, line = (found[0].end, found[0].number + 1) if header else (0, 1)
    data = rows[1:] if header else rows
    if separator in (",", ";"):
        _refuse_quotes(label, found[-len(data) :], data)
    width = _width(data or rows, layout)
    where = places(label, layout, width, rows[0] if header else None, _remedy(layout))
    regular = [row for row in data if len(row) == width]  # the other rows are faults
    return Form(separator, width, _columns(regular, where, layout), mark + body, line)


def _remedy(layout: InputLayout) -> str:
    """Return what helps where text has too few columns."""
    return SEPARATED if layout.separator is None else f" with the separator {layout.separator!r}"


def _refuse_quotes(label: str, found: Sequence[DataLine], rows: Sequence[Sequence[str]]) -> None:
    """Raise DataError for fields in quotes, which would become part of the names."""
    for line, row in zip(found, rows):
        quoted = next((field for field in row if len(field) > 1 and field[0] == field[-1] == '"'), None)
        if quoted is not None:
            raise DataError(
                f"{label}, line {line.number}: has a field in quotes: {quoted!r:.80}. Remove the quotes, or convert "
                "the file to Parquet, as duckdb and pandas do"
            )


def _columns(rows: Sequence[Sequence[str]], where: Places, layout: InputLayout) -> tuple[InputColumn, ...]:
    is_named = layout.names
    if is_named is None:
        is_named = bool(rows) and integers(rows, where) <= 0.5
    weight = None if where.weight is None else weight_column(rows, where.weight, layout)
    return edge_columns(where, is_named, weight)


def edge_columns(where: Places, is_named: bool, weight: Kind | None) -> tuple[InputColumn, ...]:
    """Return the columns of an edge whose nodes have names or are integers; `weight` is the type of its weight."""
    kind: Kind = "name" if is_named else "integer"
    columns = [InputColumn("source", where.source, kind), InputColumn("target", where.target, kind)]
    if where.weight is not None and weight is not None:
        columns.append(InputColumn("weight", where.weight, weight))
    if where.time is not None:
        columns.append(InputColumn("time", where.time, "integer"))
    return tuple(columns)


def weight_column(rows: Sequence[Sequence[str]], place: int, layout: InputLayout) -> Kind:
    """Return the type of a column of weights: as stated, or `float` if the head has a fraction."""
    stated = weight_kind(layout.weight)[1]
    if stated is not None:
        return stated
    texts = [row[place] for row in rows if place < len(row)]
    return "float" if any(FLOAT.fullmatch(text) and not INTEGER.fullmatch(text) for text in texts) else "integer"


def integers(rows: Sequence[Sequence[str]], where: Places) -> float:
    """Return the share of rows in which both nodes are integers."""
    places = (where.source, where.target)
    found = [all(place < len(row) and INTEGER.fullmatch(row[place]) for place in places) for row in rows]
    return sum(found) / len(rows)


def _width(rows: Sequence[Sequence[str]], layout: InputLayout) -> int:
    """Return how many columns most rows have that can be edges; of two numbers that equally many have, the larger one.

    If no row has enough columns for an edge, all rows count.
    """
    least = least_width(layout)
    widths = [len(row) for row in rows]
    enough = [width for width in widths if width >= least] or widths
    return max(Counter(enough).items(), key=lambda each: each[::-1])[0]


def _header(label: str, rows: Sequence[Sequence[str]], layout: InputLayout) -> bool:
    """Return whether the first line names the columns: it has no numbers where the lines after it do, or usual names.

    >>> _header("graph", [["from", "to"], ["a", "b"]], InputLayout())
    True
    >>> _header("graph", [["a", "b", "cost"], ["c", "d", "0.5"]], InputLayout())
    True
    >>> _header("graph", [["a", "b"], ["c", "d"]], InputLayout())
    False
    """
    if layout.header is not None:
        return layout.header
    first, others = rows[0], rows[1:]
    given = [column for column in (weight_kind(layout.weight)[0], layout.time) if column and not column.isdecimal()]
    if given and set(given) <= set(first):
        return True
    if given:
        return False
    where = places(label, layout, _width(rows, layout), first, _remedy(layout))
    nodes = [first[place] for place in (where.source, where.target) if place < len(first)]
    if tuple(map(str.lower, nodes)) in ENDS:
        return True
    if not others or any(map(INTEGER.fullmatch, nodes)):
        return False
    if integers(others, where) > 0.5:
        return True
    beside = [place for place in range(len(first)) if place not in (where.source, where.target)]
    return any(_is_name(first[place]) and _numbers(others, place) > 0.5 for place in beside)


def _is_name(text: str) -> bool:
    return text.replace(" ", "").isidentifier() and text.lower() not in NO_NUMBERS


def _numbers(rows: Sequence[Sequence[str]], place: int) -> float:
    """Return the share of rows that have a number in a column."""
    return sum(place < len(row) and FLOAT.fullmatch(row[place]) is not None for row in rows) / len(rows)


def _separator(label: str, found: Sequence[DataLine], layout: InputLayout) -> str:
    """Return the separator with which most lines have two integers, or else equally many columns."""
    best, best_score = BLANKS, (0.0, 0.0)
    for separator in CANDIDATES:
        rows = [split(line.text, separator) for line in found]
        width = _width(rows, layout)
        try:
            where = places(label, layout, width, rows[0])
        except DataError:
            continue
        regular = [len(row) == width and bool(row[where.source] and row[where.target]) for row in rows]
        score = (integers(rows, where), sum(regular) / len(rows))
        if score > best_score:
            best, best_score = separator, score
    return best
