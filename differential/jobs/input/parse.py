"""Blocks of text become columns.

pyarrow parses a block that has the form. If it cannot, the block is cut into pieces, and the pieces that pyarrow cannot
parse are read line by line. The reading of lines defines what a line means: a row, a blank, a comment or a fault.
pyarrow must accept nothing that the definition refuses, so blocks are checked for what it is lenient about: hexadecimal
numbers, carriage returns inside lines, numbers that are not finite and empty names.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from numpy.typing import NDArray

from differential.jobs.input.faults import Fault, Faults
from differential.jobs.input.form import COMMENTS, FLOAT, INTEGER, Form, InputColumn, integer_of, lines, split
from differential.jobs.input.layout import BLANKS

PIECE = 1 << 16
"""The size in bytes of the pieces of a block that cannot be parsed at once."""
SMALL = 1 << 10
"""Blocks of up to this many bytes are read line by line: that is faster."""
MARKED = re.compile(rb"^[ \t]*(?:#|%|//)[^\n]*(?:\n|\Z)", re.MULTILINE)
MARKS = tuple(mark.encode() for mark in COMMENTS)
BEFORE = (b"\n", b" ", b"\t")
SIGN = pa.dictionary(pa.int32(), pa.string())
TYPES = {"integer": pa.int64(), "float": pa.float64(), "name": pa.string(), "sign": SIGN}
KINDS = {"integer": "a 64-bit integer", "float": "a finite number", "sign": "+ or -"}


@dataclass(frozen=True)
class ParsedRows:
    """Rows by column: NumPy arrays of numbers, and Arrow chunked arrays of names, and of dictionary-encoded signs."""

    columns: dict[str, Any]
    lines: NDArray[np.int64] | None
    """The line of each row, counted from 1, if asked for."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


class Parser:
    """Reads blocks of whole lines that have a form; what does not have it is a fault."""

    def __init__(self, label: str, form: Form, faults: Faults, *, with_lines: bool = False) -> None:
        self._label = label
        self._form = form
        self._faults = faults
        self._with_lines = with_lines
        names = [str(place) for place in range(form.width)]
        self._read = csv.ReadOptions(use_threads=False, column_names=names)
        delimiter = " " if form.separator == BLANKS else form.separator
        self._parse = csv.ParseOptions(delimiter=delimiter, quote_char=False)
        self._convert = _conversion(form, pa.int64())
        self._convert_text = _conversion(form, pa.string())
        self._has_integers = any(column.kind == "integer" for column in form.columns)

    def parse(self, block: bytes, line: Callable[[], int]) -> ParsedRows:
        """Return the rows of a block of whole lines; `line` returns the number of its first line."""
        rows = None if len(block) <= SMALL else self._fast(block, line)
        if rows is not None:
            return rows
        if len(block) <= PIECE or block.find(b"\n", PIECE // 2) + 1 in (0, len(block)):
            return self._by_lines(block, line)
        first, start, parts = line(), 0, []
        while start < len(block):
            end = block.find(b"\n", start + PIECE // 2) + 1 or len(block)
            parts.append(self.parse(block[start:end], functools.partial(int, first)))
            first, start = first + block.count(b"\n", start, end), end
        return self._joined(parts)

    def _fast(self, block: bytes, line: Callable[[], int]) -> ParsedRows | None:
        """Return the rows of a block if all its lines are rows, blanks or comments, otherwise None."""
        text = self._plain(block)
        if text is None:
            return None
        if not text or text.isspace():
            return self._joined([])
        self._read.block_size = len(text) + 1
        try:
            convert = self._convert_text if self._has_integers and _may_be_hexadecimal(text) else self._convert
            table = csv.read_csv(pa.BufferReader(text), self._read, self._parse, convert)
            if convert is self._convert_text and not self._are_decimal(table):
                return None
            values_of = [values.cast(TYPES[each.kind]) for each, values in zip(self._form.columns, table.columns)]
        except pa.ArrowInvalid:
            return None
        columns = {}
        has_blanks = any(blank in text for blank in (b" ", b"\t") if blank != self._parse.delimiter.encode())
        for column, given in zip(self._form.columns, values_of):
            values = self._values(column, given, has_blanks)
            if values is None:
                return None
            columns[column.role] = values
        if not self._within_limits(columns):
            return None
        return ParsedRows(columns, _line_numbers(block, line(), len(table)) if self._with_lines else None)

    def _are_decimal(self, table: Any) -> bool:
        """Return whether no integer, read as text, is hexadecimal."""
        columns = [values for each, values in zip(self._form.columns, table.columns) if each.kind == "integer"]
        return not any(pc.any(pc.match_substring(values, "x", ignore_case=True)).as_py() for values in columns)

    def _plain(self, block: bytes) -> bytes | None:
        """Return a block without comments and other blanks than pyarrow expects, or None if pyarrow may misread it."""
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").removesuffix(b"\r")
            if b"\r" in block:
                return None
        block = _without_comments(block)
        if self._form.separator == BLANKS:
            block = _single_blanks(block)
        # pyarrow takes it for the beginning of a file, and leaves it out.
        return None if block.startswith(codecs.BOM_UTF8) else block

    def _values(self, column: InputColumn, values: Any, has_blanks: bool) -> Any:
        """Return a column as `ParsedRows` has it, or None if a value is not legal; `has_blanks` if any may be blank."""
        if column.kind in ("integer", "float"):
            array = values.to_numpy()
            return array if column.kind == "integer" or np.isfinite(array).all() else None
        if column.kind == "sign":
            chunks = [_trimmed(chunk) for chunk in values.chunks]
            are_legal = all(set(chunk.dictionary.to_pylist()) <= {"+", "-"} for chunk in chunks)
            return pa.chunked_array(chunks, SIGN) if are_legal else None
        if has_blanks:
            values = pc.utf8_trim(values, " \t")
        return None if pc.min(pc.binary_length(values)).as_py() == 0 else values

    def _within_limits(self, columns: dict[str, Any]) -> bool:
        if self._form.limits is None:
            return True
        ends = zip((columns["source"], columns["target"]), self._form.limits)
        return all(not len(column) or (column.min() >= 1 and column.max() <= limit) for column, limit in ends)

    def _by_lines(self, block: bytes, line: Callable[[], int]) -> ParsedRows:
        """Return the rows of a block, read line by line; add the faults."""
        roles = self._form.columns
        found: list[list[Any]] = [[] for _ in roles]
        numbers = []
        for each in lines(block):
            values = self._row(each.text)
            if isinstance(values, Fault):
                self._faults.add(values._replace(file=self._label, line=line() + each.number - 1, text=each.shown))
                continue
            for column, value in zip(found, values):
                column.append(value)
            numbers.append(each.number)
        columns = {column.role: _column(column, values) for column, values in zip(roles, found)}
        at = np.array(numbers, np.int64) + (line() - 1) if self._with_lines else None
        return ParsedRows(columns, at)

    def _row(self, text: str) -> list[Any] | Fault:
        """Return the values of a line, or what is wrong with it."""
        if "\r" in text:
            return _fault("has a carriage return before its end")
        fields = split(text, self._form.separator)
        if len(fields) != self._form.width:
            reason = f"has {len(fields)} column{'s' if len(fields) > 1 else ''} instead of {self._form.width}"
            return _fault(reason, "`--separator` states what is between columns")
        values: list[Any] = []
        for column in self._form.columns:
            value = _value(column, fields[column.place])
            if isinstance(value, Fault):
                return value
            values.append(value)
        if self._form.limits is not None:
            for column, value, limit in zip(self._form.columns, values, self._form.limits):
                if not 1 <= value <= limit:
                    return _fault(f"the {column.role} {value} is not from 1 to {limit}")
        return values

    def _joined(self, parts: Sequence[ParsedRows]) -> ParsedRows:
        columns = {}
        for column in self._form.columns:
            values = [part.columns[column.role] for part in parts]
            if column.kind in ("integer", "float"):
                columns[column.role] = np.concatenate([_column(column, []), *values])
            else:
                chunks = [chunk for each in values for chunk in each.chunks]
                columns[column.role] = pa.chunked_array(chunks, TYPES[column.kind])
        none = np.empty(0, np.int64)
        at = np.concatenate([none, *(part.lines for part in parts if part.lines is not None)])
        return ParsedRows(columns, at if self._with_lines else None)


def _conversion(form: Form, integer: Any) -> Any:
    """Return how pyarrow converts columns, with integers as that type."""
    return csv.ConvertOptions(
        column_types={
            str(each.place): integer if each.kind == "integer" else TYPES[each.kind] for each in form.columns
        },
        include_columns=[str(each.place) for each in form.columns],
        null_values=[],
    )


def _may_be_hexadecimal(block: bytes) -> bool:
    # To look for one byte takes a tenth of the time that two bytes take.
    return (b"x" in block and b"0x" in block) or (b"X" in block and b"0X" in block)


def _fault(reason: str, remedy: str = "") -> Fault:
    return Fault("", 0, "", reason, remedy)


def _value(column: InputColumn, text: str) -> Any:
    """Return the value of a field, or what is wrong with it."""
    if not text:
        return _fault(f"the {column.role} is empty")
    if column.kind == "name":
        return text if _is_unicode(text) else _fault(f"the {column.role} is not UTF-8")
    if column.kind == "integer" and INTEGER.fullmatch(text):
        number = integer_of(text)
        return _fault(f"the {column.role} does not fit into 64 bits") if number is None else number
    if column.kind == "float" and FLOAT.fullmatch(text) and np.isfinite(float(text)):
        return float(text)
    if column.kind == "sign" and text in ("+", "-"):
        return text
    remedies = {"source": "`--names` reads nodes as names", "target": "`--names` reads nodes as names"}
    if column.role == "weight" and column.kind == "integer" and FLOAT.fullmatch(text):
        remedies["weight"] = f"`--weight {column.place + 1}:float` reads weights as floats"
    return _fault(f"the {column.role} is not {KINDS[column.kind]}", remedies.get(column.role, ""))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _column(column: InputColumn, values: Sequence[Any]) -> Any:
    """Return values as `ParsedRows` has them."""
    if column.kind in ("integer", "float"):
        return np.array(values, np.int64 if column.kind == "integer" else np.float64)
    texts = pa.array(values, pa.string())
    return pa.chunked_array([texts if column.kind == "name" else texts.dictionary_encode()])


def _trimmed(chunk: Any) -> Any:
    """Return dictionary-encoded signs without blanks around them."""
    trimmed = pc.utf8_trim(chunk.dictionary, " \t")
    return chunk if trimmed.equals(chunk.dictionary) else pa.DictionaryArray.from_arrays(chunk.indices, trimmed)


def _without_comments(block: bytes) -> bytes:
    """Return a block without the lines that are comments."""
    for mark in MARKS:
        if mark[:1] in block and (block.startswith(mark) or any(before + mark in block for before in BEFORE)):
            return MARKED.sub(b"", block)
    return block


def _single_blanks(block: bytes) -> bytes:
    """Return lines whose fields are separated by one space, without blanks around them."""
    if b"\t" in block:
        block = block.replace(b"\t", b" ")
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    return block.replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" ")


def _line_numbers(block: bytes, first: int, count: int) -> NDArray[np.int64]:
    """Return the numbers of the lines of a block that are rows, of which there are `count`."""
    ends = block.count(b"\n") + (not block.endswith(b"\n"))
    if ends == count:
        return np.arange(first, first + count)
    return np.array([line.number for line in lines(block, first)], np.int64)


def plain_lines(block: bytes) -> int:
    """Return how many lines of a block are neither blank nor comments."""
    text = _single_blanks(_without_comments(block).replace(b"\r", b""))
    while b"\n\n" in text:
        text = text.replace(b"\n\n", b"\n")
    text = text.strip(b"\n")
    return text.count(b"\n") + 1 if text else 0
