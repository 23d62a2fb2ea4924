"""The changes of a table or view of another session as Arrow record batches, encrypted between machines.

A thread requests the commit after the last one that it has received, and reads ahead only up to a bound. So a slow
session needs no more memory than this, on either side. The position is the mark of the last commit. If the other
session no longer has the commits after it, the source stops, like those of `differential.session.sources.remote`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Condition, Thread

import numpy as np

from differential.frames.read import needs_arrow, read
from differential.session.changes import Change
from differential.session.sources.parts import TablePart
from differential.session.sources.remote import changes_of
from differential.session.sources.source import Batch, Position, Target
from differential.session.table_data import Column
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


class ArrowReader:
    """Reads the commits, in a thread of its own."""

    is_ended = False

    def __init__(self, address: str, connection: AskingSocket, target: Target, mark: str) -> None:
        self._address = address
        self._connection = connection
        self._target = target
        self._mark = mark
        self._ready: deque[tuple[bytes, str, bytes]] = deque()
        self._bytes = 0
        self._changed = Condition()
        self._failure: SessionError | None = None
        self._is_closed = False
        self.note = ""
        """Why nothing arrives, empty if the other session answers."""
        self._thread = Thread(target=self._run, args=(mark,), name=f"timely {address}", daemon=True)
        self._thread.start()

    def poll(self) -> Batch | None:
        """Return the next commit of the other session, None if none has arrived. Raises SessionError or DataError."""
        with self._changed:
            if not self._ready:
                if self._failure is not None:
                    raise self._failure
                return None
            kind, mark, data = self._ready.popleft()
            self._bytes -= len(data)
            self._changed.notify_all()
        if kind == SNAPSHOT and self._mark:
            raise SessionError(
                f"{self._address} no longer has the changes after {self._mark}, so this table cannot follow it: "
                "drop the table, and read it again"
            )
        return self._batch(mark, data)

    def confirm(self, position: Position) -> None:
        """Do nothing: the other session needs no confirmation."""

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._connection.interrupt()
        self._thread.join()
        self._connection.close()

    def _batch(self, mark: str, data: bytes) -> Batch:
        """Return the rows of a commit. Raises DataError if the data is not Arrow, or lacks a column of the table."""
        frame = read(_table(data, self._address))
        if not len(frame.columns[0]):
            self._mark = mark
            return Batch((), (), mark)
        target = self._target
        both = target._replace(names=(*target.names, "diff"), types=(*target.types, "int64"))
        part = TablePart(lambda row: iter([(frame.names, frame.columns)]), self._address, both, 0)
        piece = part.next()
        assert piece is not None
        if piece.rejected and target.stops:
            return Batch((), piece.rejected[:1], self._mark)
        *columns, diffs = piece.columns
        self._mark = mark
        return Batch(changes_of(target, columns, diffs), piece.rejected, mark)

    def _run(self, mark: str) -> None:
        while not self._is_closed:
            try:
                found = self._connection.ask(mark.encode(), ANSWER_SECONDS)
            except ConfigError as error:
                with self._changed:
                    self._failure = SessionError(str(error))
                return
            self.note = "" if found is not None else f"is not connected: no answer within {ANSWER_SECONDS:g} s"
            if not found:
                continue
            if len(found) != 3 or found[0] not in (SNAPSHOT, CHANGES):
                with self._changed:
                    why = found[1].decode("utf-8", "replace") if found[0] == GONE and len(found) > 1 else "no commit"
                    self._failure = SessionError(f"{self._address} answers: {why:.300}")
                return
            kind, mark, data = found[0], found[1].decode("utf-8", "replace"), found[2]
            with self._changed:
                self._ready.append((kind, mark, data))
                self._bytes += len(data)
                self._changed.wait_for(lambda: self._is_closed or self._bytes < AHEAD)


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
        raise DataError(f"{address} sends no Arrow: {error}") from None
    return table


def arrow_socket(address: str, *, keys: str, name: str | None = None) -> ArrowSocket:
    """Return a source that follows what another session publishes at an address; see `Readable.publish`.

    `keys` is the directory of the key pair that both sides have, as `timely keys DIRECTORY` writes it. `name` is by
    default the address.

    >>> arrow_socket("tcp://192.0.2.1:5555", keys="keys", name="spent").name
    'spent'
    """
    return ArrowSocket(address, keys, name or address)


def snapshot(names: tuple[str, ...], rows: tuple[Column, ...], commit: int) -> Change:
    """Return rows, each occurring once more, as a change of a commit."""
    return Change(commit, names, rows, np.ones(len(rows[0]) if rows else 0, np.int64))
