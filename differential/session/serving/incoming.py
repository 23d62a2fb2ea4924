"""Changes that requests make: all lines of a request are one commit, or none of them are committed.

Each line is a JSON object with one field: `{"insert": {...}}`, `{"upsert": {...}}` or `{"delete": {...}}`, which may
name only the columns of the key. The commit contains nothing else: uncommitted changes of the program stay uncommitted.

A request may have a key that its sender has chosen. A row of the table `http_requests`, in the same commit, has the
key, a digest of the body and the number of the commit. It is as durable as the commit. So a request that is repeated
with its key receives the same answer, and changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from differential.session.catalog import Catalog
from differential.session.item import Item
from differential.session.rows import columns_of_records
from differential.session.sources.convert import Converter, number_of_json, of_json
from differential.session.sources.feed import rejected_columns
from differential.session.sources.source import Rejected
from differential.session.transaction import Kind, RowStatement
from timely.errors import DataError, SessionError
from timely.lowlevel import Origin

TABLE = "http_requests"
REQUESTS = {"key": str, "place": str, "digest": str, "number": int, "rows": int, "rejected": int}
"""The columns of the table of requests."""
KEPT = 10_000
"""The keys of this many requests are kept."""
_KNOWN: WeakKeyDictionary[Item, dict[str, tuple[Any, ...]]] = WeakKeyDictionary()
"""The rows of each table of requests by their keys, the oldest first. All servers of a session share them."""
_KINDS = {kind.value: kind for kind in (Kind.INSERT, Kind.DELETE, Kind.UPSERT)}


class Reply(NamedTuple):
    """The answer to a request: an HTTP status, and the object that the body has as JSON."""

    status: int
    body: dict[str, Any]


class _Line(NamedTuple):
    number: int
    kind: Kind
    row: dict[str, Any]
    text: str


class Incoming:
    """Commits requests. `requests` is the table of their keys, and `rejects` the table of lines that are not rows.

    If it `stops`, a line that is not a row refuses its whole request; otherwise the line is left out.
    """

    def __init__(self, catalog: Catalog, requests: Item, rejects: Item | None, stops: bool) -> None:
        self._catalog = catalog
        self._requests = requests
        self._rejects = rejects
        self._stops = stops
        with catalog.exclusive():
            if requests not in _KNOWN:
                known = sorted(catalog.read(requests).records(), key=lambda row: row[3])
                _KNOWN[requests] = {key: tuple(rest) for key, *rest in known}
            self._known = _KNOWN[requests]

    def commit(self, item: Item, body: bytes, key: str | None) -> Reply:
        """Commit the changes of a request, and return the answer to it. Waits for other commits.

        Raises DataError if the type of a column is not known yet, and SessionError if the session has ended.
        """
        with self._catalog.exclusive():
            digest = hashlib.sha256(body).hexdigest()[:32]
            if key is not None and key in self._known:
                table, known, number, rows, rejected = self._known[key]
                if (table, known) != (item.name, digest):
                    return Reply(422, {"error": f"the key {key!r} belongs to another request, commit {number}"})
                return Reply(200, {"commit": number, "rows": rows, "rejected": rejected, "repeated": True})
            statements, wrong = _statements(item, body)
            if wrong and self._stops:
                lines = [{"line": each.line, "error": each.error, "record": each.record} for each in wrong[:20]]
                return Reply(422, {"error": f"{len(wrong)} line(s) are not changes of {item}", "lines": lines})
            if not statements and not wrong and key is None:
                return Reply(200, {"commit": self._catalog.last, "rows": 0, "rejected": 0})
            rows = sum(len(each.columns[0]) for each in statements)
            number = self._catalog.last + 1  # that of this commit: the lock is held until it is made
            made = [(item, each) for each in statements]
            if wrong and self._rejects is not None:
                made.append((self._rejects, _inserted(rejected_columns(f"http {item.name}", wrong))))
            noted = item.name, digest, number, rows, len(wrong)
            forgotten: list[str] = []
            if key is not None:
                made.append((self._requests, _inserted(columns_of_records(REQUESTS, [(key, *noted)]))))
                if forgotten := list(islice(self._known, max(0, len(self._known) - KEPT + 1))):
                    keys = columns_of_records({"key": str}, [(each,) for each in forgotten])
                    made.append((self._requests, RowStatement(Kind.DELETE_KEYS, keys, Origin("http", 0))))
            found: dict[str, Any] = {"commit": number, "rows": rows, "rejected": len(wrong)}
            try:
                self._catalog.commit_apart(made)
            except (SessionError, DataError) as error:
                if self._catalog.last < number:  # else the commit is made, and the error is one of what followed
                    return Reply(503 if self._catalog.is_over else 409, {"error": str(error)})
                found["notice"] = str(error)  # about a view or a source: the request is committed
            if key is not None:  # only now: `_known` has what the table has
                for each in forgotten:
                    del self._known[each]
                self._known[key] = noted
            return Reply(200, found)


def _inserted(columns: tuple[Any, ...]) -> RowStatement:
    return RowStatement(Kind.INSERT, columns, Origin("http", 0))


def _statements(item: Item, body: bytes) -> tuple[list[RowStatement], list[Rejected]]:
    """Return the statements of a body, in order, and the lines that are not changes."""
    wrong: list[Rejected] = []
    lines = list(_lines(item, body, wrong))
    types, names = item.schema.types(), item.names or ()
    if unknown := [name for name in names if name not in types]:
        raise DataError(f"the type of column {unknown[0]!r} is not known yet: state it in db.table({item.name!r}, ...)")
    statements: list[RowStatement] = []
    shapes = item.schema.shapes()
    for kind, run in groupby(lines, attrgetter("kind")):
        group = list(run)
        wanted = names[: item.keys] if kind is Kind.DELETE_KEYS else names
        converter = Converter(wanted, [types[name] for name in wanted], of_json, item.required)
        columns, faults = converter.convert([[line.row.get(name) for line in group] for name in wanted], len(group))
        wrong += _rejected(item, group, faults)
        group = [line for place, line in enumerate(group) if place not in faults]
        faults = item.schema.unlike_lists(item.name, wanted, columns, shapes)
        wrong += _rejected(item, group, faults)
        kept = [place for place in range(len(group)) if place not in faults]
        if kept:
            made = tuple(columns) if not faults else tuple(column[kept] for column in columns)
            statements.append(RowStatement(kind, made, Origin(f"http {item.name}", group[0].number)))
    return statements, sorted(wrong, key=lambda each: each.line)


def _rejected(item: Item, group: list[_Line], faults: dict[int, str]) -> Iterator[Rejected]:
    """Yield the lines of a group that are not rows, given what is wrong with them by their places."""
    for place, why in sorted(faults.items()):
        yield Rejected(item.name, group[place].number, group[place].text, why)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises ValueError if it has a field twice: one of the values would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the object has {next(name for name in names if names.count(name) > 1)!r} twice")
    return found


def _lines(item: Item, body: bytes, wrong: list[Rejected]) -> Iterator[_Line]:
    names, key = set(item.names or ()), set((item.names or ())[: item.keys])
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        shown = line.decode("utf-8", "replace").strip()
        try:
            found = json.loads(line, parse_float=number_of_json, object_pairs_hook=_object)
            (name, row), *more = found.items() if isinstance(found, dict) and found else [(None, None)]
            if more or name not in _KINDS or not isinstance(row, dict):
                raise ValueError('this is not one of {"insert": {...}}, {"delete": {...}} and {"upsert": {...}}')
            if unknown := sorted(set(row) - names):
                raise ValueError(f"there is no column {unknown[0]!r}: the columns are {', '.join(sorted(names))}")
            if name == "upsert" and not item.has_key:
                raise ValueError(f"{item} was made without a key, by which upsert replaces rows")
        except (ValueError, RecursionError) as error:
            wrong.append(Rejected(item.name, number, shown, str(error)))
            continue
        kind = _KINDS[name]
        if kind is Kind.DELETE and set(row) == key != names:
            kind = Kind.DELETE_KEYS
        yield _Line(number, kind, row, shown)
