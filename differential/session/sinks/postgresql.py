"""A table of PostgreSQL as a sink: it has the rows of a view, by key, as of some commit.

The changes of a commit and the mark, which is a row of another table, are in one transaction, so each commit is applied
once. The transaction locks the mark and compares it with the mark that it expects. If a second session writes to the
table, one of them stops with an error, and their rows are not mixed.

A row that the view no longer has is deleted by its key. A row that the view has is inserted, or replaces the row of its
key. Values travel as arrays of texts, which the server converts to the types of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from differential.extra import needed_for
from differential.session.changes import Change
from differential.session.sinks.sink import Mark, Outlet
from differential.session.sinks.values import as_texts, check_names
from differential.session.sources.convert import family
from differential.session.table_data import Column
from timely.errors import DataError, SessionError, StoreError
from timely.lowlevel import name_of

with needed_for("PostgreSQL", "postgresql"):
    import psycopg
    from psycopg import sql

__all__ = ["postgresql"]

ROWS = 10_000
"""At most this many rows are sent in one statement."""
_TYPES = {
    "int64": "bigint",
    "uint64": "numeric(20)",
    "float64": "double precision",
    "float32": "real",
    "float16": "real",
    "bool": "boolean",
    "text": "text",
    "bytes": "bytea",
    "date": "date",
    "time": "time",
    "value": "jsonb",
}
_AWAY = ("08", "40", "53", "55P03", "57P")
"""Beginnings of the SQLSTATEs of errors that may pass: of connections, conflicts, resources and shutdowns."""
Texts = list[str | None]


@dataclass(frozen=True)
class KeyedTable:
    """A sink in a table of PostgreSQL that has one row for each key."""

    dsn: str
    table: str
    key: tuple[str, ...]
    marks: str
    name: str

    def open(self, outlet: Outlet) -> KeyedTableWriter:
        """Return a writer with a connection of its own. Raises DataError if the view has no column of the key."""
        if outlet.columns is not None:
            check_names(outlet.columns, self.key)
        with _passing(self.table):
            return KeyedTableWriter(self)


class KeyedTableWriter:
    """Applies changes to a table."""

    def __init__(self, sink: KeyedTable) -> None:
        self._sink = sink
        self._expected: Mark | None = None
        self._is_cleared = False
        self._columns: dict[str, str] = {}
        """The types of the table's columns, by name."""
        self._table = sql.Identifier(*sink.table.split("."))
        self._marks = sql.Identifier(*sink.marks.split("."))
        options = "-c client_encoding=UTF8 -c timezone=UTC"
        # With `RawCursor`, queries have $1 for a value, and a "%" in the name of a column stays what it is.
        self._connection = psycopg.connect(
            sink.dsn, options=options, connect_timeout=10, autocommit=True, cursor_factory=psycopg.RawCursor
        )

    def mark(self) -> Mark | None:
        """Return the mark, after making the table of marks if it does not exist."""
        with _passing(self._sink.table), self._connection.transaction():
            self._expected = self._mark_there()
            is_first = self._expected is None and self._exists(self._table)
            if is_first and self._execute("SELECT 1 FROM {} LIMIT 1", self._table).fetchone():
                return Mark("", 0)  # rows that no session has written
            if self._expected is not None and not self._exists(self._table):
                return Mark(f"there is no table {self._sink.table}, and its mark is in {self._sink.marks}", 0)
            return self._expected

    def write(self, changes: Sequence[Change], mark: Mark) -> None:
        """Apply changes and the mark in one transaction."""
        with _passing(self._sink.table), self._connection.transaction():
            if self._mark_there() != self._expected:
                raise self._written_by_another()
            is_there = bool(self._columns) or self._exists(self._table)
            if not is_there and self._expected is not None and not self._is_cleared:
                raise SessionError(f"table {self._sink.table} was dropped meanwhile")
            if is_there and self._is_cleared:
                self._execute("DELETE FROM {}", self._table)
            noted = mark if changes or is_there else None  # no mark without a table: a view without rows makes none
            # Before the rows: nothing locks a first mark, so another session may write one until this is inserted.
            self._note(noted)
            for change in changes:
                self._apply(change)
        # After the transaction: if that fails to commit, this writer is closed, and another one reads the mark.
        self._expected, self._is_cleared = noted, False

    def clear(self) -> None:
        """Make the next `write` delete all rows of the table first."""
        self._is_cleared = True

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()

    def _mark_there(self) -> Mark | None:
        """Return the current mark in the table of marks, locked for this transaction."""
        if not self._exists(self._marks):
            # Another session may make the table at the same time, which IF NOT EXISTS does not see.
            with suppress(psycopg.errors.UniqueViolation), self._connection.transaction():
                self._execute(
                    "CREATE TABLE IF NOT EXISTS {} "
                    "(sink text PRIMARY KEY, stream text NOT NULL, commit bigint NOT NULL)",
                    self._marks,
                )
        query = "SELECT stream, commit FROM {} WHERE sink = $1 FOR UPDATE"
        found = self._execute(query, self._marks, values=[self._sink.name]).fetchone()
        return Mark(*found) if found else None

    def _note(self, mark: Mark | None) -> None:
        """Replace the mark in the table of marks. Raises SessionError if another session has written a first one."""
        if mark is None:
            self._execute("DELETE FROM {} WHERE sink = $1", self._marks, values=[self._sink.name])
            return
        conflict = (
            "NOTHING" if self._expected is None else "UPDATE SET stream = excluded.stream, commit = excluded.commit"
        )
        noted = self._execute(
            f"INSERT INTO {{}} (sink, stream, commit) VALUES ($1, $2, $3) ON CONFLICT (sink) DO {conflict}",
            self._marks,
            values=[self._sink.name, mark.stream, mark.commit],
        )
        if not noted.rowcount:
            raise self._written_by_another()

    def _written_by_another(self) -> SessionError:
        return SessionError(f"table {self._sink.table} was written to by another session meanwhile")

    def _exists(self, table: sql.Identifier) -> bool:
        found = self._execute("SELECT to_regclass($1)", values=[table.as_string(self._connection)])
        return found.fetchone() != (None,)

    def _apply(self, change: Change) -> None:
        """Delete the rows of keys that go, and insert or replace those of keys that stay or come."""
        self._learn(change)
        texts = [_texts(name, column) for name, column in zip(change.columns, change.rows)]
        keyed = [texts[change.columns.index(name)] for name in self._sink.key]
        for name, column in zip(self._sink.key, keyed):
            if None in column:  # nulls are not equal in PostgreSQL, so no row could be found by one
                raise DataError(f"column {name!r} has a null, which cannot be in a key: filter such rows, or fill them")
        before: dict[tuple[str | None, ...], int] = {}
        after: dict[tuple[str | None, ...], int] = {}
        for row, (key, diff) in enumerate(zip(zip(*keyed), change.diff.tolist())):
            if diff > 1 or (diff > 0 and key in after):
                raise DataError(
                    f"the view has two rows with the key {self._shown(key)}, but table {self._sink.table} has one row "
                    "for each key: name more columns in key=[...]"
                )
            (after if diff > 0 else before)[key] = row
        # In this order, a value that must be unique may pass from a row that goes to one that comes.
        self._delete(keyed, [row for key, row in before.items() if key not in after])
        self._put(change, texts, [row for key, row in after.items() if key in before], replaces=True)
        self._put(change, texts, [row for key, row in after.items() if key not in before], replaces=False)

    def _delete(self, keyed: list[Texts], rows: list[int]) -> None:
        """Delete the rows of keys, of which each column has a text for each row of a change."""
        key = self._sink.key
        query = sql.SQL("DELETE FROM {} AS old USING {} WHERE {}").format(
            self._table,
            self._given(key),
            sql.SQL(" AND ").join(sql.SQL("old.{0} = given.{0}").format(sql.Identifier(name)) for name in key),
        )
        for start in range(0, len(rows), ROWS):
            part = rows[start : start + ROWS]
            self._connection.execute(query, [[column[row] for row in part] for column in keyed])

    def _put(self, change: Change, texts: list[Texts], rows: list[int], *, replaces: bool) -> None:
        """Insert rows, or replace those of their keys. Without `replaces`, raises DataError if a key has a row."""
        key, names = self._sink.key, change.columns
        others = [name for name in names if name not in key]
        conflict = sql.SQL("ON CONFLICT ({}) DO NOTHING").format(_listed(key))
        if replaces and others:
            each = (sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others)
            conflict = sql.SQL("ON CONFLICT ({}) DO UPDATE SET {}").format(_listed(key), sql.SQL(", ").join(each))
        query = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} {} RETURNING {}").format(
            self._table,
            _listed(names),
            _listed(names),
            self._given(names),
            conflict,
            sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in key),
        )
        for start in range(0, len(rows), ROWS):
            part = rows[start : start + ROWS]
            done = self._connection.execute(query, [[column[row] for row in part] for column in texts])
            if not replaces and done.rowcount < len(part):
                made = set(done.fetchall())
                places = [names.index(name) for name in key]
                given = [tuple(texts[place][row] for place in places) for row in part]
                found = next((each for each in given if each not in made), given[0])
                raise DataError(
                    f"table {self._sink.table} already has a row with the key {self._shown(found)} that this view did "
                    "not write, or the view has two rows with the key"
                )

    def _given(self, names: Sequence[str]) -> sql.Composed:
        """Return a table of parameters, one array of texts for each column, in the types of the table's columns."""
        arrays = sql.SQL(", ".join(f"${place}::text[]" for place in range(1, len(names) + 1)))
        casts = (
            sql.SQL("{0}::{1} AS {0}").format(sql.Identifier(name), sql.SQL(self._columns[name])) for name in names
        )
        return sql.SQL("(SELECT {} FROM unnest({}) AS texts({})) AS given").format(
            sql.SQL(", ").join(casts), arrays, _listed(names)
        )

    def _learn(self, change: Change) -> None:
        """Read the types of the table's columns; make the table if there is none.

        Raises DataError if the view has no column of the key, or the table lacks a column of the view.
        """
        check_names(change.columns, self._sink.key)
        if not self._columns:
            if not self._exists(self._table):
                self._make(change)
            found = self._execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped",
                values=[self._table.as_string(self._connection)],
            )
            self._columns = dict(found.fetchall())
        unknown = [name for name in change.columns if name not in self._columns]
        if unknown:
            raise DataError(f"table {self._sink.table} has no column {unknown[0]!r}: it has {', '.join(self._columns)}")

    def _make(self, change: Change) -> None:
        columns = (
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(_type_of(name, column)))
            for name, column in zip(change.columns, change.rows)
        )
        self._execute(
            "CREATE TABLE {} ({}, PRIMARY KEY ({}))", self._table, sql.SQL(", ").join(columns), _listed(self._sink.key)
        )

    def _shown(self, key: Sequence[str | None]) -> str:
        return ", ".join(f"{name} = {value}" for name, value in zip(self._sink.key, key))

    def _execute(self, query: str, *parts: Any, values: Sequence[Any] | None = None) -> psycopg.Cursor[Any]:
        return self._connection.execute(sql.SQL(query).format(*parts), values)


@contextmanager
def _passing(table: str) -> Iterator[None]:
    """Raise StoreError for an error of PostgreSQL that may pass, and DataError for any other one."""
    try:
        yield
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        state = error.sqlstate
        if state is None and not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
            raise DataError(f"table {table}: {text}") from error
        if state is None or state.startswith(_AWAY):
            raise StoreError(text) from error
        column = getattr(error.diag, "column_name", None)
        where = f"column {column!r} of table {table}" if column else f"table {table}"
        raise DataError(f"{where}: {text}") from error


def _listed(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _texts(name: str, column: Column) -> Texts:
    """Return a column as texts that PostgreSQL reads. Raises DataError for text with the character 0."""
    if family(name_of(column)) == "bytes":
        return [None if value is None else "\\x" + value.hex() for value in column.tolist()]
    texts = as_texts(name, column)
    if any(text is not None and "\0" in text for text in texts):
        raise DataError(f"column {name!r} contains text with the character 0, which PostgreSQL cannot hold")
    return texts


def _type_of(name: str, column: Column) -> str:
    """Return the type of PostgreSQL for a column. Raises DataError if there is none."""
    of = name_of(column)
    kind = family(of)
    if kind == "decimal":
        return of.removesuffix("?").replace("decimal", "numeric")
    if kind == "timestamp":
        return "timestamptz" if "," in of else "timestamp"
    if kind not in _TYPES:
        raise DataError(f"column {name!r} is of type {of}, which this sink cannot write: map it to another type first")
    return _TYPES[kind]


def postgresql(
    dsn: str, table: str, *, key: str | Sequence[str], marks: str = "timely_commits", name: str | None = None
) -> KeyedTable:
    """Return a sink that keeps a table of PostgreSQL equal to a view.

    `dsn` is a connection string of libpq. The view must have at most one row for each value of the `key` columns. A
    table that does not exist is made, with this primary key. A table that exists needs a unique index on the key, and
    columns with the names of the view's columns. `marks` is the table that has the number of the last commit for each
    sink; it is made if it does not exist. `name` is by default the table.

    >>> postgresql("host=localhost dbname=shop", "components", key="person").name
    'components'
    """
    return KeyedTable(dsn, table, (key,) if isinstance(key, str) else tuple(key), marks, name or table)
