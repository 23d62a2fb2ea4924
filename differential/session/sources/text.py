"""Records in text: CSV with a header, and one JSON object a line.

A format finds where whole records end in a block of bytes, splits the block, and turns records into columns. What is
wrong with a record is found twice: where the text is not a record (a quote that does not end, broken JSON), and where a
value is not of its column's type.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from differential.session.sources.convert import Converter, decimal_of_json, number_of_json, of_json, of_text
from differential.session.sources.source import Target
from differential.session.table_data import Column
from timely.errors import DataError

MARK = "\ufeff"
"""What some programs write at the beginning of a text in UTF-8."""


class TextRecords(NamedTuple):
    """The records in a piece of text, as the format splits them."""

    records: list[Any]
    starts: list[int]
    """The number of the first line of each record, from 0, and then the number of lines."""
    lines: list[str]
    wrong: dict[int, str]
    """What is wrong with records that are none, by their places among all."""

    def text(self, place: int) -> str:
        """Return a record as it is written."""
        return "".join(self.lines[self.starts[place] : self.starts[place + 1]]).rstrip("\r\n")


class Format(Protocol):
    """How records are written."""

    longest: int
    """A text of more bytes is not taken for a record."""

    def end(self, data: bytes) -> int:
        """Return how many bytes the whole records at the beginning of some data take."""

    def split(self, text: str) -> TextRecords:
        """Return the records of a text."""

    def columns(self, records: Sequence[Any]) -> tuple[list[Column], dict[int, str]]:
        """Return the columns of the records that are rows, and what is wrong with the others, by place."""


class Csv:
    """Records of fields between delimiters, of which some may be in quotes (RFC 4180).

    >>> target = Target("orders", ("id", "note"), ("int64", "text"), 1)
    >>> form = Csv(target, ["note", "id"], ",")
    >>> form.end(b'a,1\\n"b\\n,2'), form.split('x,1\\n"y\\nz",2\\n').records
    (4, [['x', '1'], ['y\\nz', '2']])
    """

    longest = 1 << 20
    """If a quote is not closed, no more than this is taken for one record."""

    def __init__(self, target: Target, header: Sequence[str], delimiter: str, longest: int = longest) -> None:
        """Raises DataError where the header lacks a column, or has one twice."""
        self.longest = longest
        if csv.field_size_limit() < longest:
            csv.field_size_limit(longest)  # one for the whole process
        self._delimiter = delimiter
        self._width = len(header)
        missing = [name for name in target.names if list(header).count(name) != 1]
        if missing:
            others = [each for each in ";\t|," if len(header) == 1 and each != delimiter and each in header[0]]
            hint = f"; delimiter={others[0]!r} separates them" if others else ""
            raise DataError(
                f"the header does not have the column {missing[0]!r} once: it has {', '.join(header)}, and table "
                f"{target.table!r} has {', '.join(target.names)}{hint}"
            )
        self._places = [list(header).index(name) for name in target.names]
        self._converter = Converter(target.names, target.types, of_text, target.required)

    def end(self, data: bytes) -> int:
        return end_of_csv(data, self._delimiter)

    def split(self, text: str) -> TextRecords:
        lines = _lines(text)
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        records: list[Any] = []
        starts: list[int] = []
        wrong: dict[int, str] = {}
        while True:
            # Before the record is read: afterwards it is the line of its end.
            start = reader.line_num
            try:
                record = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                wrong[len(records)] = reason(error)
                record = [""]  # not a blank line: it keeps the place at which `wrong` names it
            if record:
                records.append(record)
                starts.append(start)
        return TextRecords(records, [*starts, len(lines)], lines, wrong)

    def columns(self, records: Sequence[Any]) -> tuple[list[Column], dict[int, str]]:
        width = self._width
        short = {
            row: f"{len(record)} field(s) instead of {width}"
            for row, record in enumerate(records)
            if len(record) != width
        }
        kept = [row for row in range(len(records)) if row not in short] if short else range(len(records))
        fields = list(zip(*[records[row] for row in kept])) or [()] * width
        columns, wrong = self._converter.convert([fields[place] for place in self._places], len(kept))
        return columns, short | {kept[row]: why for row, why in wrong.items()}


class JsonLines:
    """One JSON object a line. Fields that the table does not have are ignored; those that it lacks are null.

    >>> form = JsonLines(Target("orders", ("id",), ("int64",), 1))
    >>> form.columns(form.split('{"id": 1}\\n{"id": "x"}\\n').records)
    ([array([1])], {1: "column 'id' (int64) cannot be 'x'"})
    """

    longest = 1 << 24

    def __init__(self, target: Target) -> None:
        self._names = target.names
        self._converter = Converter(target.names, target.types, of_json, target.required)
        is_exact = any(of.startswith("decimal") for of in target.types) and "value" not in target.types
        self._decoder = json.JSONDecoder(parse_float=decimal_of_json if is_exact else number_of_json)

    def end(self, data: bytes) -> int:
        return data.rfind(b"\n") + 1

    def split(self, text: str) -> TextRecords:
        lines = _lines(text)
        records: list[Any] = []
        starts: list[int] = []
        wrong: dict[int, str] = {}
        decode = self._decoder.decode
        for number, line in enumerate(lines):
            if line.isspace():
                continue
            try:
                record = decode(line.removeprefix(MARK))
                if type(record) is not dict:
                    raise ValueError("this is not an object")
            except (ValueError, RecursionError) as error:
                wrong[len(records)] = f"no JSON object: {error}"
                record = {}
            records.append(record)
            starts.append(number)
        return TextRecords(records, [*starts, len(lines)], lines, wrong)

    def columns(self, records: Sequence[Any]) -> tuple[list[Column], dict[int, str]]:
        return self._converter.convert([[each.get(name) for each in records] for name in self._names], len(records))


def _lines(text: str) -> list[str]:
    return list(io.StringIO(text, newline="\n"))


def end_of_csv(data: bytes, delimiter: str = ",") -> int:
    """Return where the last whole record of some CSV ends: where a line ends outside of quotes.

    A quote inside of a field that does not begin with one means nothing.

    >>> end_of_csv(b'a\\n"b\\nc"\\n"d'), end_of_csv(b'"a\\nb'), end_of_csv(b'5" pipe,"a\\nb')
    (8, 0, 0)
    """
    whole = data[: data.rfind(b"\n") + 1]
    if b'"' not in whole:
        return len(whole)
    # Bytes that are not UTF-8 become the same bytes again below, where they are counted.
    text = whole.decode(errors="surrogateescape")
    lines = _lines(text.removeprefix(MARK))
    is_used_up = False

    def each() -> Iterator[str]:
        nonlocal is_used_up
        yield from lines
        is_used_up = True

    reader, end = csv.reader(each(), delimiter=delimiter, strict=True), 0
    while True:
        try:
            next(reader)
        except StopIteration:
            return len(whole)
        except csv.Error:
            if is_used_up:  # it has asked for more
                break
        end = reader.line_num
    return len(whole) - len("".join(lines[end:]).encode(errors="surrogateescape"))


def reason(error: csv.Error) -> str:
    """Return why a text is not a record of CSV, without the advice of Python on how to open files.

    >>> reason(csv.Error("new-line character seen in unquoted field - do you need to open the file with newline=''?"))
    'the end of a line is in a field without quotes: quote the field, or remove the character'
    """
    if str(error).startswith("new-line character"):
        return "the end of a line is in a field without quotes: quote the field, or remove the character"
    return str(error)
