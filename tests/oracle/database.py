"""A database that recomputes every view from scratch: what a session is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

Row = tuple[Any, ...]
Rows = Counter[Row]
Question = Callable[[Mapping[str, Rows]], Rows]


class Database:
    """Tables of rows, and views; each a function of what the database has.

    `keys` are the places of the key's columns in the rows of tables, by default the first.
    """

    def __init__(self, keys: Mapping[str, tuple[int, ...]] | None = None) -> None:
        self.tables: dict[str, Rows] = {}
        self.views: dict[str, Question] = {}
        self.pending: list[tuple[str, str, list[Row]]] = []
        self._keys = keys or {}

    def commit(self) -> bool:
        """Make the pending changes, statement by statement; or none, and return False, where a row does not exist."""
        pending, self.pending = self.pending, []
        tables = {name: Counter(rows) for name, rows in self.tables.items()}
        for name, kind, rows in pending:
            table, places = tables[name], self._keys.get(name, (0,))
            if kind == "delete by key":
                keys = set(rows)
            elif kind == "upsert":
                rows = list({_key(row, places): row for row in rows}.values())
                keys = {_key(row, places) for row in rows}
            if kind in ("upsert", "delete by key"):
                for row in [row for row in table if _key(row, places) in keys]:
                    del table[row]
            if kind in ("insert", "upsert"):
                table.update(rows)
            if kind == "delete":
                table.subtract(rows)
        if any(count < 0 for table in tables.values() for count in table.values()):
            return False
        self.tables = {name: +table for name, table in tables.items()}
        return True

    def contents(self, name: str) -> Rows:
        """Return the rows of a table or view."""
        return self.tables[name] if name in self.tables else self.ask(self.views[name])

    def ask(self, question: Question) -> Rows:
        """Return the answer to a question."""
        return +question(_Lazy(self))


def _key(row: Row, places: tuple[int, ...]) -> Row:
    return tuple(row[place] for place in places)


class _Lazy(dict[str, Rows]):
    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    def __missing__(self, name: str) -> Rows:
        return self._database.contents(name)
