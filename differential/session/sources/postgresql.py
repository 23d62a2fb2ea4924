"""Tables of PostgreSQL as sources, by logical replication.

The first commit has the rows of the tables as of one snapshot. Later commits have whole transactions from the server's
log. Several tables share a slot, and are read in rounds, so that a transaction that changes several tables is in one
commit:

    a round = the transactions that have arrived, as one batch for each table, all with the same position

A round begins when the previous one is confirmed, so no commit has only a part of a round. The position of a table is a
place in the log: the table has the transactions that end before it. The server keeps the log after the confirmed place,
and a place is confirmed only once all tables have committed it.

A table that is added to a slot begins with a snapshot as of a later place than the position of the others. Its rows
wait until the others have the transactions before that place and none after it, so they are in a commit that has all
tables as of the place of the snapshot.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from differential.session.sources.pgoutput import (
    Begin,
    Commit,
    Keepalive,
    RelationMessage,
    RowMessage,
    Truncate,
    Values,
    decode,
    shown,
)
from differential.session.sources.postgresql_rows import TableRows
from differential.session.sources.postgresql_stream import (
    Replication,
    TableInfo,
    connected,
    patiently,
    prepare,
    snapshot,
    table_info,
)
from differential.session.sources.source import Position, Rejected, SourceBatch, Statement, Target
from differential.session.transaction import Kind
from timely.errors import SessionError, StoreError

__all__ = ["Database", "postgresql"]

ROWS = 1 << 17
"""A round ends after the transaction in which it reaches this many changes."""
ANSWER_SECONDS, IDLE_SECONDS = 10.0, 10.0
"""Seconds between two reports of the confirmed position, and between two commits of a position without changes."""
Change = tuple[str, RowMessage | Truncate]
"""The name of a table, as the program has given it, and a change of the table."""


class Database:
    """Tables of a database of PostgreSQL that share a replication slot: `database["orders"]` is a source.

    >>> database = postgresql("host=localhost dbname=shop", "orders", slot="questions")
    >>> isinstance(database, Database), database.publication
    (True, 'questions')
    """

    def __init__(self, dsn: str, tables: Sequence[str], slot: str, publication: str, patience: float) -> None:
        self.dsn = dsn
        self.tables = tuple(tables)
        self.slot = slot
        self.publication = publication
        self.patience = patience
        self.readers: dict[str, TableReader] = {}
        self._stream: Replication | None = None
        self._relations: dict[int, RelationMessage] = {}
        self._open: list[Change] = []
        """The changes of a transaction that has not ended."""
        self._whole: list[tuple[Commit, list[Change]]] = []
        self._end = 0
        """The place in the log before which the server has sent everything."""
        self.copied: int | None = None
        """The place of the snapshot of tables whose rows wait until the other tables have reached it."""
        self._confirmed = 0
        self._answered = self._moved = 0.0
        self._is_stopped = False
        """Whether a row has stopped a table, so that no round follows."""
        self._failing_since: float | None = None
        self._retry_at = 0.0

    def __getitem__(self, table: str) -> TableSource:
        if table not in self.tables:
            raise SessionError(f"postgresql(...) names the tables {', '.join(self.tables)}, not {table}")
        return TableSource(self, table)

    def begin_round(self, reader: TableReader) -> None:
        """Give each reader its part of what has arrived, if all tables are read and the previous round is confirmed.

        Only the reader that is polled first begins a round, because the others are polled after it for the same commit.
        """
        readers = self.readers
        if self._is_stopped or reader is not next(iter(readers.values()), None):
            return
        if set(readers) != set(self.tables) or any(not reader.is_settled for reader in readers.values()):
            return
        if clock.monotonic() < self._retry_at:
            return
        try:
            if self.copied is None and any(reader.position is None for reader in readers.values()):
                self._copy()
                if self.copied is None:
                    return
            self._receive()
        except StoreError as error:
            self._lose(error)
            return
        self._failing_since = None
        self._give()

    def confirm(self) -> None:
        """Confirm to the server what all tables have committed."""
        if set(self.readers) != set(self.tables):
            return
        positions = [reader.confirmed for reader in self.readers.values()]
        if self._stream is not None and None not in positions:
            # The slowest table decides: the server drops the log before this place.
            self._confirmed = max(self._confirmed, min(each for each in positions if each is not None))
            self._answer()

    def end(self) -> None:
        """Close the connection."""
        stream, self._stream = self._stream, None
        # The next connection sends all of it again: its stream begins at the confirmed place.
        self._open, self._whole, self._relations, self._end = [], [], {}, 0
        if stream is not None:
            stream.close()

    def forget(self) -> None:
        """Forget the readers, so that the tables can be read again from other positions."""
        self.readers.clear()
        self._is_stopped, self._failing_since, self.copied = False, None, None

    def _copy(self) -> None:
        """Read the tables of readers without a position as of one snapshot, and give the rows if no table is ahead."""
        new = [reader for reader in self.readers.values() if reader.position is None]
        # The slot first: it then has all transactions that are not in the snapshot.
        prepare(self.dsn, self.slot, self.publication, [reader.info for reader in self.readers.values()])
        at, found = snapshot(self.dsn, [(reader.info, reader.target.names) for reader in new])
        for reader, rows in zip(new, found):
            self._is_stopped |= reader.convert([(Kind.INSERT, rows)])
        if not self._is_stopped and len(new) < len(self.readers):
            self.copied = at
            return
        for reader in new:
            if not self._is_stopped or reader.is_refusing:
                reader.give(at)

    def _join(self, at: int) -> None:
        """Give the rows of a snapshot: the other readers have the transactions before it, and none after it."""
        self.copied = None
        for reader in self.readers.values():
            if reader.position is not None:
                # It has all transactions before the place, so nothing moves it there.
                reader.convert(())
            reader.give(at)

    def _receive(self) -> None:
        if self._stream is None:
            self._connect()
        assert self._stream is not None
        rows = sum(len(changes) for _, changes in self._whole)
        while rows < ROWS and (message := self._stream.received()) is not None:
            if isinstance(message, Keepalive):
                self._end = max(self._end, message.end)
                if message.wants_answer:
                    self._answer()
                continue
            try:
                rows += self._take(message)
            except (ValueError, IndexError, UnicodeDecodeError) as error:
                raise SessionError(f"PostgreSQL has sent an invalid pgoutput message: {error}") from error
        if clock.monotonic() - self._answered > ANSWER_SECONDS:
            self._answer()

    def _connect(self) -> None:
        confirmed = prepare(self.dsn, self.slot, self.publication, [each.info for each in self.readers.values()])
        for table, reader in self.readers.items():
            if reader.position is not None and confirmed > reader.position:
                raise SessionError(
                    f"the slot {self.slot!r} has confirmed {shown(confirmed)}, but table {table} was read only up to "
                    f"{shown(reader.position)}: the changes in between are lost, because the slot was recreated or "
                    "used by another program; drop the table of the session, and read it again"
                )
        stream = Replication(self.dsn)
        try:
            stream.start(self.slot, self.publication)
        except BaseException:
            stream.close()
            raise
        self._stream, self._confirmed, self._answered = stream, confirmed, clock.monotonic()

    def _take(self, data: bytes) -> int:
        """Process a message of the log; return how many changes it completes."""
        message = decode(data)
        if isinstance(message, RelationMessage):
            self._relations[message.number] = message
            for reader in self._readers_of(message.number):
                reader.rows.check(message)
        elif isinstance(message, Begin):
            self._open = []
        elif isinstance(message, RowMessage):
            self._open += [(each.table, message) for each in self._readers_of(message.relation)]
        elif isinstance(message, Truncate):
            self._open += [(each.table, message) for number in message.relations for each in self._readers_of(number)]
        elif isinstance(message, Commit):
            changes, self._open = self._open, []
            self._end = max(self._end, message.end)
            if changes:
                self._whole.append((message, changes))
            return len(changes)
        return 0

    def _readers_of(self, relation: int) -> Iterator[TableReader]:
        found = self._relations.get(relation)
        if found is not None:
            for reader in self.readers.values():
                if (reader.info.schema, reader.info.table) == (found.schema, found.table):
                    yield reader

    def _give(self) -> None:
        """Divide whole transactions among the readers, up to the first transaction at which a reader stops."""
        transactions = [each for each in self._whole if self.copied is None or each[0].commit < self.copied]
        self._whole = self._whole[len(transactions) :]
        if self.copied is not None and not transactions and self._end >= self.copied:
            self._join(self.copied)
            return
        readers = {table: reader for table, reader in self.readers.items() if reader.position is not None}
        gathered: dict[str, list[tuple[Kind, list[Values]]]] = {table: [] for table in readers}
        position = max(reader.position or 0 for reader in readers.values())
        for commit, changes in transactions:
            for table, change in changes:
                # The stream begins where the slowest table is, so others may have the transaction already.
                if table in readers and commit.commit >= (readers[table].position or 0):
                    readers[table].rows.add(gathered[table], change)
            position = max(position, commit.end)
        if not any(gathered.values()):
            is_due = self._end > position and clock.monotonic() - self._moved > IDLE_SECONDS
            if self._open or self._whole or not is_due:
                return
            position = self._end  # so that the server need not keep a log without changes of the tables
        self._moved = clock.monotonic()
        refusing = [reader for table, reader in readers.items() if reader.convert(gathered[table])]
        if refusing and len(transactions) > 1:
            # One of the transactions stops a reader. The transactions before it are in this round or a later one.
            half, later = len(transactions) // 2, self._whole
            # If the refused row is not in the first half, a later round begins with the other one.
            self._whole = transactions[:half]
            self._give()
            self._whole += transactions[half:] + later
            return
        self._is_stopped = bool(refusing)
        for reader in refusing or readers.values():
            reader.give(position)

    def _answer(self) -> None:
        if self._stream is not None:
            self._answered = clock.monotonic()
            try:
                self._stream.confirm(self._confirmed)
            except StoreError as error:
                self._lose(error)

    def _lose(self, error: StoreError) -> None:
        """Record that the server does not answer. Raises SessionError once the patience is over."""
        self.end()
        now = clock.monotonic()
        self._failing_since = self._failing_since or now
        if now - self._failing_since > self.patience:
            raise SessionError(f"PostgreSQL has not answered for {self.patience:g} s: {error}") from error
        self._retry_at = now + min(1.0, 0.05 + (now - self._failing_since) / 4)


@dataclass(frozen=True)
class TableSource:
    """A table of a `Database` as a source."""

    database: Database
    table: str

    @property
    def name(self) -> str:
        """The names of the slot and the table, as "slot/table"."""
        return f"{self.database.slot}/{self.table}"

    def open(self, target: Target, position: Position | None) -> TableReader:
        """Return a reader, which begins with the rows of the table if there is no position.

        Raises SessionError if the table cannot be read, and DataError if it does not fit the session's table.
        """
        database = self.database
        if self.table in database.readers:
            raise SessionError(f"table {self.table} of the slot {database.slot!r} is already read")

        def look() -> TableInfo:
            with connected(database.dsn) as connection:
                return table_info(connection, self.table)

        try:
            info = patiently(look, min(10.0, database.patience))
        except StoreError as error:
            raise SessionError(f"table {self.table} cannot be read: {error}") from error
        reader = TableReader(database, self.table, info, target, int(position) if position else None)
        database.readers[self.table] = reader
        return reader


class TableReader:
    """Reads one table of a `Database`."""

    def __init__(self, database: Database, table: str, info: TableInfo, target: Target, position: int | None) -> None:
        self.table = table
        self.info = info
        self.target = target
        self.position = position
        """The place in the log at which the last batch ends."""
        self.confirmed = position
        self.is_ended = False
        self._database = database
        self.rows = TableRows(info, target)
        self._batch: SourceBatch | None = None
        self._changes: list[Statement] = []
        self._rejected: list[Rejected] = []
        self._is_closed = False

    @property
    def is_settled(self) -> bool:
        """Whether the last batch is confirmed."""
        return self._batch is None and self.position == self.confirmed and not self._is_closed

    @property
    def note(self) -> str:
        """What the rows of the table wait for, if they do."""
        waits = self.position is None and self._database.copied is not None
        return "waits until the other tables of the slot have reached its snapshot" if waits else ""

    def poll(self) -> SourceBatch | None:
        """Return this table's part of the round, None if there is none. Raises SessionError."""
        if self._batch is None:
            if any(reader._is_closed for reader in self._database.readers.values()):
                raise SessionError(
                    "another table of the same slot is no longer read, and the server keeps its log for that table: "
                    "read this one with a slot of its own"
                )
            self._database.begin_round(self)
        # Now the reader is not settled until this batch is confirmed, since `position` is ahead of `confirmed`.
        batch, self._batch = self._batch, None
        return batch

    def confirm(self, position: Position) -> None:
        """Record what this table has committed; confirm to the server what all tables have."""
        self.confirmed = int(position) if position else None
        self._database.confirm()

    def close(self) -> None:
        """Close the connection, which the tables share."""
        self._is_closed = True
        self._database.end()
        if all(reader._is_closed for reader in self._database.readers.values()):
            self._database.forget()

    def convert(self, gathered: Sequence[tuple[Kind, Sequence[Values]]]) -> bool:
        """Convert this table's changes of a round to statements; return whether one of their rows stops the source."""
        self._changes, self._rejected = self.rows.made(gathered)
        return self.is_refusing

    @property
    def is_refusing(self) -> bool:
        """Whether one of the rows of the round stops the source."""
        return bool(self._rejected) and self.target.stops

    def give(self, position: int) -> None:
        """Make the statements of the round the next batch, or only the first rejected row if that stops the source."""
        if self.is_refusing:
            self._batch = SourceBatch((), self._rejected[:1], "" if self.position is None else self.position)
            return
        self.position = position
        self._batch = SourceBatch(self._changes, self._rejected, position)


def postgresql(dsn: str, *tables: str, slot: str, publication: str | None = None, patience: float = 60.0) -> Database:
    """Return tables of a PostgreSQL database as sources: `database["orders"]`.

    `dsn` is a connection string of libpq. `slot` names a logical replication slot, which belongs to this session alone,
    and is made if it does not exist. The publication, by default of the same name, is made too, and tables are added to
    it. The first commit has the rows of the tables, and each later commit has the whole transactions that have ended
    since. Nothing is read before each of the `tables` has a `read_from`. If the server does not answer, the source
    waits for `patience` seconds.

    Raises SessionError if a table is named twice or not at all, or if the slot's name is not valid.

    >>> database = postgresql("host=localhost dbname=shop", "orders", "public.items", slot="questions")
    >>> database["orders"].name
    'questions/orders'
    """
    if not tables or len(set(tables)) < len(tables):
        raise SessionError("postgresql(dsn, 'table', ...) takes the names of tables, each once")
    if not slot or not all(each.isascii() and (each.isdigit() or each.islower() or each == "_") for each in slot):
        raise SessionError(f"the name of a slot has lower-case letters, digits and '_', not {slot!r:.80}")
    return Database(dsn, tables, slot, publication or slot, patience)
