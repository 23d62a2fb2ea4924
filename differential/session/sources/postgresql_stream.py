"""A connection to PostgreSQL that streams changes, and the queries that a source needs beside it.

The stream uses the replication protocol over the functions of libpq that psycopg exposes, because psycopg itself has no
cursor for it. Nothing here waits for changes: `received` returns what has arrived.
"""

from __future__ import annotations

import struct
import time as clock
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from secrets import token_hex
from typing import Any, NamedTuple, TypeVar

from differential.extra import needed_for
from differential.session.sources.pgoutput import Keepalive, place, status, unwrapped
from timely.errors import SessionError, StoreError

with needed_for("PostgreSQL", "postgresql"):
    import psycopg
    from psycopg import pq, sql

T = TypeVar("T")

_ENCODING = "-c client_encoding=UTF8 -c datestyle=ISO -c timezone=UTC -c extra_float_digits=1 -c bytea_output=hex"
_AWAY = ("55006", "57P01", "57P02", "57P03", "08006", "08001", "08003", "53300")
"""SQLSTATEs of errors that may pass: an ending process still uses the slot, the server starts, ends or is full."""

VIA_ROOT, GENERATED = 130000, 180000
"""The first versions of PostgreSQL that publish partitioned tables, and can publish generated columns."""


class TableColumn(NamedTuple):
    """A column of a table of PostgreSQL."""

    name: str
    type: str
    number: int
    """The OID of the type."""
    is_key: bool
    """Whether it belongs to the replica identity."""
    is_unsent: bool = False
    """Whether it is generated, so that a stream of changes does not have it, although a snapshot does."""


class TableInfo(NamedTuple):
    """A table of PostgreSQL. `identity` has the values of `Relation.identity`."""

    schema: str
    table: str
    identity: str
    columns: tuple[TableColumn, ...]
    is_partitioned: bool = False

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@contextmanager
def connected(dsn: str, **options: Any) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection whose texts have the forms that sources read. Raises the errors of `passing`."""
    with passing(), psycopg.connect(dsn, options=_ENCODING, connect_timeout=10, **options) as connection:
        yield connection


@contextmanager
def passing() -> Iterator[None]:
    """Raise StoreError for an error of PostgreSQL that may pass, and SessionError for any other one."""
    try:
        yield
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        is_away = error.sqlstate in _AWAY or (error.sqlstate is None and isinstance(error, psycopg.OperationalError))
        raise StoreError(text) if is_away else SessionError(f"PostgreSQL refuses it: {text}") from error


def patiently(attempt: Callable[[], T], seconds: float) -> T:
    """Return the result of `attempt`, which is repeated for some seconds while it raises StoreError."""
    end, pause = clock.monotonic() + seconds, 0.05
    while True:
        try:
            return attempt()
        except StoreError:
            if clock.monotonic() + pause > end:
                raise
        clock.sleep(pause)
        pause = min(2 * pause, 1.0)


def table_info(connection: psycopg.Connection[Any], name: str) -> TableInfo:
    """Return the columns and the replica identity of a table. Raises SessionError if there is no such table."""
    found = connection.execute(
        "SELECT c.oid, n.nspname, c.relname, c.relreplident::text, c.relkind = 'p' FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s) AND c.relkind IN ('r', 'p')",
        [name],
    ).fetchone()
    if found is None:
        raise SessionError(f"there is no table {name} in the database {connection.info.dbname}")
    number, schema, table, identity, is_partitioned = found
    if is_partitioned and connection.info.server_version < VIA_ROOT:
        raise SessionError(f"table {name} is partitioned, which PostgreSQL cannot publish before version 13")
    rows = connection.execute(
        # Columns of catalogs that versions before 12 lack are read as JSON. An index may include columns after its key.
        "SELECT a.attname, t.typname, t.oid::bigint, EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid "
        "AND a.attnum = ANY ((i.indkey::int2[])[0:coalesce((to_jsonb(i) ->> 'indnkeyatts')::int, i.indnatts) - 1]) "
        "AND CASE %s WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END), "
        "%s AND to_jsonb(a) ->> 'attgenerated' <> '' FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
        "WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        [identity, connection.info.server_version < GENERATED, number],
    ).fetchall()
    return TableInfo(schema, table, identity, tuple(TableColumn(*row) for row in rows), is_partitioned)


def prepare(dsn: str, slot: str, publication: str, tables: Sequence[TableInfo]) -> int:
    """Make the slot and the publication of some tables if they do not exist; return the slot's confirmed place.

    Raises SessionError if the slot belongs to another plugin or database, or if the publication has a table in parts.
    """
    with connected(dsn, autocommit=True) as connection:
        # Before the slot: the log is decoded as of its own time, and from the slot on there must be the publication.
        _publish(connection, publication, tables)
        query = "SELECT plugin, confirmed_flush_lsn::text, database FROM pg_replication_slots WHERE slot_name = %s"
        found = connection.execute(query, [slot]).fetchone()
        if found is None:
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
            found = connection.execute(query, [slot]).fetchone()
        if found is None or found[0] != "pgoutput" or found[2] != connection.info.dbname:
            raise SessionError(
                f"the replication slot {slot!r} is of another kind or database: name another one, or drop it"
            )
        return place(found[1])


def _publish(connection: psycopg.Connection[Any], publication: str, tables: Sequence[TableInfo]) -> None:
    """Add tables to a publication, which is made if it does not exist: changes of partitions as the table's."""

    def missing() -> list[TableInfo]:
        query = "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s"
        listed = set(connection.execute(query, [publication]).fetchall())
        return [each for each in tables if (each.schema, each.table) not in listed]

    named, has_roots = sql.Identifier(publication), connection.info.server_version >= VIA_ROOT
    column = sql.SQL("pubviaroot" if has_roots else "false")
    query = sql.SQL("SELECT {} FROM pg_publication WHERE pubname = %s").format(column)
    found = connection.execute(query, [publication]).fetchone()
    if found is None:
        options = sql.SQL("WITH (publish_via_partition_root = true)" if has_roots else "")
        connection.execute(sql.SQL("CREATE PUBLICATION {} {}").format(named, options))
    elif not found[0] and (parted := [each for each in tables if each.is_partitioned]):
        raise SessionError(
            f"publication {publication!r} has the partitions of table {parted[0]} and not the table as a whole: run "
            f"ALTER PUBLICATION {named.as_string(connection)} SET (publish_via_partition_root = true)"
        )
    for each in missing():
        of = sql.Identifier(each.schema, each.table)
        connection.execute(sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(named, of))
    if absent := missing():
        raise SessionError(
            f"table {absent[0]} is a partition of a table that publication {publication!r} has as a whole: read it "
            "with a slot and a publication of its own"
        )


def snapshot(
    dsn: str, queries: Sequence[tuple[TableInfo, Sequence[str]]]
) -> tuple[int, list[list[tuple[str | None, ...]]]]:
    """Return a place in the log, and for each query the rows of a table's columns as of that place.

    A temporary slot exports the snapshot, which has exactly the transactions that are complete before the place. Rows
    are texts, None for nulls.
    """
    with passing():
        exporting = Replication(dsn)
    try:
        name = f"timely_{token_hex(8)}"
        # PostgreSQL keeps the snapshot until the next command on this connection, so there is none before the end.
        made = exporting.execute(f'CREATE_REPLICATION_SLOT "{name}" TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT')
        at, exported = place(_value(made, 1)), _value(made, 2)
        found = []
        with connected(dsn, autocommit=True) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(exported)))
            for info, columns in queries:
                query = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(
                    sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier(info.schema, info.table)
                )
                with connection.cursor() as cursor, cursor.copy(query) as copy:
                    found.append(list(copy.rows()))
            connection.execute("COMMIT")
        return at, found
    finally:
        exporting.close()


class Replication:
    """A connection of the replication protocol. Its methods raise StoreError or SessionError, as `passing` does."""

    def __init__(self, dsn: str) -> None:
        with passing():
            options = psycopg.conninfo.make_conninfo(dsn, replication="database", options=_ENCODING, connect_timeout=10)
            self._connection = pq.PGconn.connect(options.encode())
        if self._connection.status != pq.ConnStatus.OK:
            text = self._connection.error_message.decode(errors="replace").strip()
            self.close()
            raise StoreError(text)

    def execute(self, command: str) -> pq.abc.PGresult:
        """Return the result of a command of the protocol."""
        with passing():
            result = self._connection.exec_(command.encode())
        if result.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE):
            state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
            text = result.error_message.decode(errors="replace").strip()
            if state in _AWAY or not state:
                raise StoreError(text)
            raise SessionError(f"PostgreSQL refuses it: {text}")
        return result

    def start(self, slot: str, publication: str) -> None:
        """Begin the stream at the place that the slot has confirmed."""
        quoted = publication.replace("'", "''").replace('"', '""')
        # 0/0 is before the confirmed place, from which the server begins then.
        self.execute(
            f"START_REPLICATION SLOT \"{slot}\" LOGICAL 0/0 (proto_version '1', publication_names '\"{quoted}\"')"
        )

    def received(self) -> bytes | Keepalive | None:
        """Return the next message that has arrived, one of the plugin as bytes; None if there is none."""
        with passing():
            size, data = self._connection.get_copy_data(1)
            if size == 0:
                self._connection.consume_input()
                size, data = self._connection.get_copy_data(1)
        if size < 0:
            raise StoreError("the server has ended the stream")
        try:
            return unwrapped(bytes(data)) if size else None
        except (ValueError, struct.error) as error:
            raise SessionError(f"PostgreSQL has sent an invalid message of its protocol: {error}") from error

    def confirm(self, confirmed: int) -> None:
        """Confirm to the server that everything before a place in the log is durable here."""
        with passing():
            self._connection.put_copy_data(status(confirmed, clock.time()))
            self._connection.flush()

    def close(self) -> None:
        self._connection.finish()


def _value(result: pq.abc.PGresult, column: int) -> str:
    value = result.get_value(0, column)
    if value is None:
        raise SessionError("PostgreSQL has answered a replication command without a value")
    return value.decode()
