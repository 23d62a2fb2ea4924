"""The changes of a table or view of another session as Arrow record batches, encrypted between machines.

A thread requests the commit after the last one that it has received, and reads ahead only up to a bound. So a slow
session needs no more memory than this, on either side. The position is the mark of the last commit. If the other
session no longer has the commits after it, the source stops, like those of `differential.session.sources.remote`.
"""

from __future__ import annotations

from dataclasses import dataclass

from differential.frames.read import needs_arrow
from differential.session.changes import Change
from differential.session.sources.parts import TablePart
from differential.session.sources.remote import ReadAhead, changes_of
from differential.session.sources.source import Position, SourceBatch, Target
from differential.session.sources.tables import chunk
from timely.errors import ConfigError, DataError, SessionError
from timely.services import AskingSocket

AHEAD = 64 << 20
"""The thread requests no more while at least this many bytes wait for a commit."""
ANSWER_SECONDS = 15.0
"""A server that does not answer for this long is asked again, over another connection."""
SNAPSHOT, CHANGES, GONE = b"snapshot", b"changes", b"gone"


@dataclass(frozen=True)
class ArrowSocket:
    """A source that follows a table or view that another session publishes."""

    address: str
    keys: str
    name: str

    def open(self, target: Target, position: Position | None) -> ArrowReader:
        """Return a reader that resumes after a mark. Raises SessionError if the address or the keys cannot be used."""
        needs_arrow("an Arrow socket")
        try:
            connection = AskingSocket(self.address, self.keys)
        except ConfigError as error:
            raise SessionError(str(error)) from None
        return ArrowReader(self.address, connection, target, str(position) if position else "")


class ArrowReader(ReadAhead[tuple[bytes, str, bytes]]):
    """Reads the commits, each a kind, a mark and data, in a thread of its own."""

    def __init__(self, address: str, connection: AskingSocket, target: Target, mark: str) -> None:
        self._address = address
        self._connection = connection
        self._target = target
        self._mark = mark
        super().__init__(address, AHEAD)

    def stop(self) -> None:
        super().stop()
        self._connection.interrupt()

    def close(self) -> None:
        self.stop()
        self._thread.join()
        self._connection.close()

    def _batch(self, entry: tuple[bytes, str, bytes]) -> SourceBatch:
        """Return the rows of a commit. Raises SessionError if those before it are missing, DataError for other data."""
        kind, mark, data = entry
        if kind == SNAPSHOT and self._mark:
            raise SessionError(
                f"{self._address} no longer has the changes after {self._mark}, so this table cannot follow it: "
                "drop the table, and read it again"
            )
        names, given = chunk(_table(data, self._address))
        if not len(given[0]):
            self._mark = mark
            return SourceBatch((), (), mark)
        target = self._target
        # No column of the view has this name: `publish` refuses it.
        both = target._replace(names=(*target.names, "diff"), types=(*target.types, "int64"))
        part = TablePart(lambda row: iter([(names, given)]), self._address, both, 0)
        piece = part.next()
        assert piece is not None
        if piece.rejected and target.stops:
            return SourceBatch((), piece.rejected[:1], self._mark)  # a commit is taken whole, or not at all
        *columns, diffs = piece.columns
        self._mark = mark
        return SourceBatch(changes_of(target, columns, diffs), piece.rejected, mark)

    def _run(self) -> None:
        mark = self._mark
        while not self._is_closed:
            try:
                found = self._connection.ask(mark.encode(), ANSWER_SECONDS)
            except ConfigError as error:
                self._fail(SessionError(str(error)))
                return
            self.note = "" if found is not None else f"is not connected: no answer within {ANSWER_SECONDS:g} s"
            if not found:
                continue
            if len(found) != 3 or found[0] not in (SNAPSHOT, CHANGES):
                why = found[1].decode("utf-8", "replace") if found[0] == GONE and len(found) > 1 else "no commit"
                self._fail(SessionError(f"{self._address} answers: {why:.300}"))
                return
            kind, mark, data = found[0], found[1].decode("utf-8", "replace"), found[2]
            self._add((kind, mark, data), len(data))


def packed(change: Change) -> bytes:
    """Return the rows of a change, with a further column `diff`, as an Arrow IPC stream."""
    import pyarrow as pa

    table = change.to_arrow()
    table = table.remove_column(table.num_columns - 2)  # the time
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _table(data: bytes, address: str) -> object:
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(data) as stream:
            table = stream.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{address} does not send Arrow data: {error}") from None
    return table


def arrow_socket(address: str, *, keys: str, name: str | None = None) -> ArrowSocket:
    """Return a source that follows what another session publishes at an address; see `Readable.publish`.

    `keys` is the directory of the key pair that both sides have, as `timely keys DIRECTORY` writes it. `name` is by
    default the address.

    >>> arrow_socket("tcp://192.0.2.1:5555", keys="keys", name="spent").name
    'spent'
    """
    return ArrowSocket(address, keys, name or address)
