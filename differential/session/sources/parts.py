"""One file as a source reads it, piece by piece: text by blocks of bytes, tables by groups of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol

from differential.session.sources.bytes_of import CHECKED, Bytes, Overwritten, PipeBytes, digest
from differential.session.sources.fitting import fitted
from differential.session.sources.source import Rejected, Target
from differential.session.sources.tables import Chunks
from differential.session.sources.text import MARK, Format, TextRecords
from differential.session.table_data import Column
from timely.errors import DataError

BLOCK = 1 << 20
"""How many bytes of text are read at a time."""

Place = dict[str, Any]
"""Where a part is, in values of JSON."""


class PartRows(NamedTuple):
    """What a part has next: rows in columns, and records that are none."""

    columns: tuple[Column, ...]
    rejected: list[Rejected]


class FilePart(Protocol):
    """A file that is being read."""

    is_ended: bool
    """Whether nothing is left of it."""

    @property
    def place(self) -> Place:
        """Where to go on."""

    @property
    def mark(self) -> str:
        """A digest of what is just before the place, so that another file is recognised."""

    def is_over(self) -> bool:
        """Return whether nothing is left of it as it is now, although it has not ended yet."""

    def next(self) -> PartRows | None:
        """Return the next rows, None if there are none now. Raises DataError if the whole file has no rows."""

    def close(self) -> None:
        """Close the file."""


class TextPart:
    """A file, or a pipe, of records in text.

    `format_of` makes the format, given the first record if there is a header. `grows` means that the file may get
    longer, so its last line counts only once it has an end.
    """

    def __init__(
        self,
        bytes_of: Callable[[int], Bytes],
        label: str,
        target: Target,
        format_of: Callable[[str | None], Format],
        has_header: bool,
        place: Place,
        grows: bool,
    ) -> None:
        self.is_ended = False
        self.grows = grows
        self.held_back = 0
        """How many bytes wait for the end of a record, although they have the ends of lines."""
        self._label = label
        self._target = target
        self._format_of = format_of
        self._format: Format | None = None if has_header else format_of(None)
        self._line = int(place.get("line", 1))
        self._skip = int(place.get("skip", 0))
        self._is_in_long_line = bool(place.get("is_in_long_line"))
        """Whether the next bytes are of a line that was rejected because it is too long."""
        at = int(place.get("at", 0))
        if at and has_header:  # the place is after the header, which names the columns
            # The line of the header is in the place already, so it is not counted again.
            with closing(bytes_of(0)) as first:
                self._begin(first)
        self.bytes = bytes_of(at)

    @property
    def place(self) -> Place:
        """The bytes and lines before the next block, and how many of its records count already."""
        place = {"at": self.bytes.at, "line": self._line, "skip": self._skip}
        return place | {"is_in_long_line": True} if self._is_in_long_line else place

    @property
    def mark(self) -> str:
        """A digest of the bytes just before the next block."""
        return self.bytes.mark()

    def is_over(self) -> bool:
        try:
            return not self.bytes.peek(1)[0]
        except (OSError, Overwritten):  # which `next` raises, too
            return False

    def next(self) -> PartRows | None:
        if self._format is None:
            if not self._begin(self.bytes):
                return None
            self._line += 1
        form = self._format
        assert form is not None
        if self._is_in_long_line and not self._pass_line():
            return None
        data = self._block(form)
        if not data:
            return None
        if len(data) >= form.longest and not data.endswith(b"\n"):
            return self._long_line(form, data)
        text, bad = _decoded(data)
        if self.bytes.at == 0:
            text = text.removeprefix(MARK)
        return self._piece(form, form.split(text), data, bad)

    def close(self) -> None:
        self.bytes.close()

    def _may_grow(self) -> bool:
        return not self.bytes.is_ended if isinstance(self.bytes, PipeBytes) else self.grows

    def _begin(self, source: Bytes) -> bool:
        """Take the header; return whether it is there. Raises DataError if the first line is longer than a block."""
        data, is_all = source.peek(BLOCK)
        end = data.find(b"\n") + 1
        if not end:
            if not is_all:
                raise DataError(f"no line ends in the first {BLOCK:,} bytes: is it CSV whose lines end with LF?")
            if self._may_grow():
                return False
            if not data:
                self.is_ended = True
                return False
            end = len(data)
        text = _decoded(data[:end])[0]
        self._format = self._format_of(text.removeprefix(MARK).rstrip("\r\n"))
        source.advance(end)
        return True

    def _block(self, form: Format) -> bytes:
        """Return the bytes of the next whole records; none if there are none now.

        If a record is longer than the format allows, or does not end before the file does, its first line is returned,
        which is then no record.
        """
        count, self.held_back = BLOCK, 0
        while True:
            data, is_all = self.bytes.peek(count)
            end = form.end(data)
            if end:
                return data[:end]
            if is_all and self._may_grow() and len(data) < form.longest:
                self.held_back = len(data) if b"\n" in data else 0
                return b""
            # If not even another line end ends the record, a quote is open.
            if len(data) >= form.longest or (is_all and form.end(data + b"\n") <= len(data)):
                return data[: data.find(b"\n") + 1] or data
            if is_all:
                self.is_ended = not data
                return data
            count *= 4  # so all attempts together read little more than the last

    def _long_line(self, form: Format, data: bytes) -> PartRows:
        """Reject a line of which these are the first bytes, and leave out the rest."""
        if not self._target.stops:
            self.bytes.advance(len(data))
            self._is_in_long_line = True
        record = f"{data[:1000].decode(errors='replace')}..."
        rejected = Rejected(self._label, self._line, record, f"the line does not end in {form.longest:,} bytes")
        return PartRows(tuple(form.columns([])[0]), [rejected])

    def _pass_line(self) -> bool:
        """Go on to the beginning of the next line; return False if it is not there yet."""
        while True:
            data, is_all = self.bytes.peek(BLOCK)
            end = data.find(b"\n") + 1
            self.bytes.advance(end or len(data))
            if end or (is_all and not self._may_grow()):
                self._is_in_long_line = False
                self._line += 1
                return True
            if is_all:
                return False

    @property
    def note(self) -> str:
        """What a person should know of the file now, or an empty text."""
        if not self.held_back:
            return ""
        begins = f"the record that begins in line {self._line}"
        return f"{self.held_back:,} bytes wait for the end of {begins}: is a quote open?"

    def _piece(self, form: Format, block: TextRecords, data: bytes, bad: bool) -> PartRows:
        # The place is the beginning of this block: a session before this one has taken its first records.
        skipped = min(self._skip, len(block.records))
        wrong = {row: why for row, why in block.wrong.items() if row >= skipped}
        if bad:
            for row in range(skipped, len(block.records)):
                text = block.text(row)
                # What stands for a byte that is not UTF-8 is not printable, so most texts need no closer look.
                if not text.isprintable() and any("\udc80" <= character <= "\udcff" for character in text):
                    wrong.setdefault(row, "the text is not UTF-8")
        rows = [row for row in range(skipped, len(block.records)) if row not in wrong]
        columns, more = form.columns([block.records[row] for row in rows])
        wrong |= {rows[row]: why for row, why in more.items()}
        if wrong and self._target.stops:
            first = min(wrong)
            before = [block.records[row] for row in rows if row < first]
            columns, _ = form.columns(before)
            self._skip = first  # the bytes stay: the place is the beginning of this block, without its first records
            return PartRows(tuple(columns), [self._rejected(block, first, wrong[first])])
        rejected = [self._rejected(block, row, wrong[row]) for row in sorted(wrong)]
        self._line += len(block.lines)
        self._skip -= skipped  # 0, unless the block had fewer records than are to be skipped
        self.bytes.advance(len(data))
        return PartRows(tuple(columns), rejected)

    def _rejected(self, block: TextRecords, row: int, why: str) -> Rejected:
        record = block.text(row).encode(errors="surrogateescape").decode(errors="replace")
        return Rejected(self._label, self._line + block.starts[row], record, why)


def _decoded(data: bytes) -> tuple[str, bool]:
    """Return a text, and whether some of it is not UTF-8."""
    try:
        return data.decode(), False
    except UnicodeDecodeError:
        return data.decode(errors="surrogateescape"), True


class TablePart:
    """A file of typed columns. `chunks` yields pieces of it from a row on, as columns by name."""

    def __init__(self, chunks: Chunks, label: str, target: Target, row: int, mark: str = "") -> None:
        self.is_ended = False
        self._mark = mark
        self._last: tuple[Sequence[str], list[Column]] | None = None
        """The last rows that were returned, of which `mark` makes a digest."""
        self._chunks = chunks(row)
        self._ahead: list[Any] = []
        """The next columns, None at the end, or an error, if that is known already."""
        self._label = label
        self._target = target
        self._row = row

    @property
    def place(self) -> Place:
        """The number of rows before the next one."""
        return {"row": self._row}

    @property
    def mark(self) -> str:
        """How many rows before the next one were looked at, and a digest of them."""
        if self._last is not None:
            names, columns = self._last
            self._mark, self._last = _mark(names, _rows(columns)), None
        return self._mark

    def is_over(self) -> bool:
        if not self._ahead:
            try:
                self._ahead.append(next(self._chunks, None))
            except Exception as error:
                self._ahead.append(error)
        return self._ahead[0] is None

    def next(self) -> PartRows | None:
        # `is_over` may have looked at the next piece, or found its error.
        found = self._ahead.pop() if self._ahead else next(self._chunks, None)
        if isinstance(found, Exception):
            raise found
        if found is None:
            self.is_ended = True
            return None
        names, given = found
        columns = [_named(names, given, name, self._target) for name in self._target.names]
        made, wrong = fitted(self._target, columns)
        first = self._row + 1
        rejected = [
            Rejected(self._label, first + row, repr(tuple(column[[row]].tolist()[0] for column in columns)), why)
            for row, why in sorted(wrong.items())
        ]
        end = len(columns[0])
        if wrong and self._target.stops:
            end = min(wrong)
            made, rejected = tuple(column[:end] for column in made), rejected[:1]
        self._row += end
        if end:
            start = max(0, end - CHECKED)
            # Kept as columns: only the last position of a commit needs a digest.
            self._last = names, [column[start:end] for column in given]
        return PartRows(made, rejected)

    def close(self) -> None:
        self._chunks.close()  # type: ignore[attr-defined]


def is_marked(chunks: Chunks, row: int, mark: str) -> bool:
    """Return whether the rows before a row of a table are those of which a `TablePart` has made a mark."""
    count = int(mark.partition(" ")[0] or 0)
    names: Sequence[str] = ()
    rows: list[tuple[Any, ...]] = []
    pieces = chunks(row - count)
    while len(rows) < count and (found := next(pieces, None)) is not None:
        names, given = found
        rows += _rows([column[: count - len(rows)] for column in given])
    pieces.close()  # type: ignore[attr-defined]
    return not count or _mark(names, rows) == mark


def _mark(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> str:
    return f"{len(rows)} {digest(repr((tuple(names), list(rows))).encode())}"


def _rows(columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in columns)))


def _named(names: Sequence[str], columns: Sequence[Column], name: str, target: Target) -> Column:
    if list(names).count(name) != 1:
        raise DataError(
            f"there is no column {name!r}, or two: the source has {', '.join(names)}, and table {target.table!r} has "
            f"{', '.join(target.names)}"
        )
    return columns[list(names).index(name)]
