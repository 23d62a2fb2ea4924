"""The rows of a table of PostgreSQL, and their changes, as statements about a table of a session.

An update or a deletion identifies a row by its replica identity. If this is the primary key or an index, a new row
replaces the row of its key. If it is the whole row, rows may be equal, and each of them is inserted and deleted.
"""

from __future__ import annotations

from collections.abc import Sequence

from differential.session.sources.convert import Converter, Parse, family, may_be_null, of_text, taking_none
from differential.session.sources.pgoutput import UNCHANGED, RelationMessage, RowMessage, Truncate, Values
from differential.session.sources.postgresql_stream import TableInfo
from differential.session.sources.source import Rejected, Statement, Target
from differential.session.transaction import Kind
from timely.errors import DataError, SessionError

Gathered = list[tuple[Kind, list[Values]]]
"""Statements whose rows are not converted."""
_INTEGERS = ("int2", "int4", "int8", "oid")
FITTING: dict[str, tuple[str, ...]] = {
    "int64": _INTEGERS,
    "uint64": (*_INTEGERS, "numeric"),
    "float64": ("float4", "float8"),
    "float32": ("float4",),
    "bool": ("bool",),
    "decimal": (*_INTEGERS, "numeric"),
    "date": ("date",),
    "time": ("time",),
    "bytes": ("bytea",),
    "value": ("json", "jsonb"),
}
"""The types of PostgreSQL whose values a family of columns can hold. Text columns hold all types, as texts."""


class TableRows:
    """Converts the changes of one table to statements."""

    def __init__(self, info: TableInfo, target: Target) -> None:
        """Raises DataError if the table does not fit the session's table."""
        _check_columns(info, target)
        self.info = info
        self.target = target
        self._types = {column.name: column.number for column in info.columns}
        self._is_whole = info.identity == "f"
        self._is_keyed = any(column.is_key for column in info.columns)
        self._places: tuple[int, ...] = ()
        self._key_places: tuple[int, ...] = ()
        self._converter = Converter(target.names, target.types, of_postgresql, target.required)
        self._key_converter = Converter(target.names[: target.keys], target.types[: target.keys], of_postgresql)

    def check(self, relation: RelationMessage) -> None:
        """Update the positions of the columns. Raises SessionError if the table has changed so that it does not fit."""
        for name in self.target.names:
            if name not in relation.columns:
                raise SessionError(
                    f"table {self.info} no longer has a column {name!r}: it was dropped or renamed, and table "
                    f"{self.target.table!r} of the session needs it"
                )
            if relation.types[relation.columns.index(name)] != self._types[name]:
                raise SessionError(
                    f"column {name!r} of table {self.info} has a different type than when the source was opened: open "
                    "the session again, with a type for the column that fits"
                )
        if (relation.identity == "f") != self._is_whole:
            raise SessionError(f"table {self.info} now has another replica identity: open the session again")
        self._places = tuple(relation.columns.index(name) for name in self.target.names)
        self._key_places = self._places[: self.target.keys]

    def add(self, gathered: Gathered, change: RowMessage | Truncate) -> None:
        """Add a change to the statements of a round."""
        if isinstance(change, Truncate):
            gathered.append((Kind.CLEAR, []))
            return
        # `check` has set the places: a relation message comes before the first change of the table on each connection.
        old, new = change.old, change.new
        if new is not None:
            if old is not None and self._is_whole:
                new = tuple(before if value is UNCHANGED else value for before, value in zip(old, new))
            missing = [name for name, at in zip(self.target.names, self._places) if new[at] is UNCHANGED]
            if missing:
                raise SessionError(
                    f"column {missing[0]!r} of table {self.info} has a large value that an update has left unchanged, "
                    f"which PostgreSQL does not send: run ALTER TABLE {self.info} REPLICA IDENTITY FULL, drop the "
                    "table of the session, and read it again"
                )
        if old is not None:
            if self._is_whole:
                _append(gathered, Kind.DELETE, tuple(old[at] for at in self._places))
            else:
                # Also for an update, which has former values only if it changes the key.
                _append(gathered, Kind.DELETE_KEYS, tuple(old[at] for at in self._key_places))
        if new is not None:
            _append(gathered, Kind.UPSERT if self._is_keyed else Kind.INSERT, tuple(new[at] for at in self._places))

    def made(self, gathered: Sequence[tuple[Kind, Sequence[Values]]]) -> tuple[list[Statement], list[Rejected]]:
        """Return the statements with converted columns, and the rows that do not fit the session's table."""
        changes: list[Statement] = []
        rejected: list[Rejected] = []
        number = 0
        for kind, rows in gathered:
            if kind is Kind.CLEAR:
                changes.append((kind, ()))
                continue
            converter = self._key_converter if kind is Kind.DELETE_KEYS else self._converter
            columns, wrong = converter.convert(list(zip(*rows)) or [()] * len(converter.names), len(rows))
            for row, why in sorted(wrong.items()):
                record = ", ".join("null" if value is None else str(value) for value in rows[row])
                rejected.append(Rejected(str(self.info), number + row + 1, record, why))
            number += len(rows)
            if len(columns[0]):
                changes.append((kind, tuple(columns)))
        return changes, rejected


def _append(gathered: Gathered, kind: Kind, row: Values) -> None:
    """Add a row to the last statement of its kind, if order permits; insertions and deletions of rows commute."""
    for found, rows in reversed(gathered[-2:]):
        if found is kind:
            rows.append(row)
            return
        if {found, kind} != {Kind.INSERT, Kind.DELETE}:
            break
    gathered.append((kind, [row]))


def _check_columns(info: TableInfo, target: Target) -> None:
    """Raise DataError unless a table has the columns of a session's table, its key among them, with types that fit."""
    types = {column.name: column.type for column in info.columns}
    unsent = [column.name for column in info.columns if column.is_unsent]
    for name, of in zip(target.names, target.types):
        if name in unsent:
            raise DataError(
                f"column {name!r} of table {info} is generated, and PostgreSQL does not publish its changes: leave it "
                "out of the table, and compute it in a view"
            )
        if name not in types:
            raise DataError(f"table {info} has no column {name!r}: it has {', '.join(types)}")
        if not fits(of, types[name]):
            raise DataError(f"column {name!r} of table {info} is of type {types[name]}, which does not fit {of}")
    key = tuple(column.name for column in info.columns if column.is_key)
    if info.identity in "di" and key and set(key) != set(target.names[: target.keys]):
        raise DataError(
            f"table {info} identifies rows by {', '.join(key)}, so this must be the key of table {target.table!r}: "
            f"db.table({target.table!r}, ..., key=[{', '.join(map(repr, key))}])"
        )


def fits(of: str, given: str) -> bool:
    """Return whether a column of a type can hold the values of a type of PostgreSQL.

    >>> fits("timestamp[us, UTC]", "timestamptz"), fits("int64", "text"), fits("text?", "uuid")
    (True, False, True)
    """
    kind = family(of)
    if kind == "text":
        return True
    if kind == "timestamp":
        return given == ("timestamptz" if "," in of else "timestamp")
    return given in FITTING.get(kind, ())


def of_postgresql(of: str) -> Parse | None:
    """Return a function that parses a text of PostgreSQL (None for a null) as a value of a type, if there is one.

    >>> of_postgresql("bool")("t"), of_postgresql("int64?")(None), of_postgresql("bytes")("\\\\x6162")
    (True, None, b'ab')
    """
    parse = _bytes if family(of) == "bytes" else of_text(of.removesuffix("?"))
    return None if parse is None else taking_none(parse, may_be_null(of))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("\\x"))
