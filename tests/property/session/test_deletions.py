"""Rows of few keys, deleted in random statements, leave what they leave in a multiset: for all types of columns."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from differential import Session
from differential.errors import SessionError
from differential.session import transaction
from differential.trace import cursor
from tests.oracle.database import Database, Row, Rows
from tests.thorough import examples
from timely.lowlevel import typed


class Shape(NamedTuple):
    """The types of the columns of a table, how many of them are its key, and some values of each column."""

    types: tuple[Any, ...]
    keys: int
    values: tuple[list[Any], ...]


FLOATS = [0.0, -0.0, math.nan, 1.5, -math.inf]
TEXTS = ["", "a", "a\0", "ö", "longer than a word of the processor"]
SHAPES = {
    "integers": Shape((int, int), 1, ([0, 1], [*range(-20, 20), -(1 << 63), (1 << 63) - 1])),
    "zeros": Shape((int, int), 1, ([0, 1], [0])),
    "floats": Shape((float, float), 1, ([0.0, math.nan], FLOATS)),
    "texts and bytes": Shape((str, bytes), 1, (["", "a"], [b"", b"x", b"x\0", b"y"])),
    "nulls": Shape((int | None, str | None, float | None), 1, ([0, None], [*TEXTS[:2], None], [*FLOATS[:3], None])),
    "decimals": Shape((int, typed([], "decimal(18, 2)")), 1, ([0], [Decimal("1.50"), Decimal(-2), None])),
    "lists": Shape((int, list), 1, ([0], [(), (1,), (1, 2), None])),
    "two columns of a key": Shape((str, int, str), 2, (["a", "b"], [0, -1], TEXTS)),
    "key alone": Shape((int, str), 2, ([0, 1], ["a", "b"])),
}
KINDS = ["insert", "insert", "insert", "delete", "delete", "delete one", "upsert", "delete by key"]


def plain(row: Row) -> Row:
    """Return a row whose values are equal where those of a table are."""
    return tuple("NaN" if value != value else tuple(value) if isinstance(value, list) else value for value in row)


class Pair:
    """A table of a session, and its twin."""

    def __init__(self, db: Session, shape: Shape) -> None:
        self.db, self.shape = db, shape
        self.names = [f"c{place}" for place in range(len(shape.types))]
        self.table = db.table("t", dict(zip(self.names, shape.types)), key=self.names[: shape.keys])
        self.twin = Database({"t": tuple(range(shape.keys))})
        self.twin.tables["t"] = Rows()

    def state(self, kind: str, rows: list[Row]) -> None:
        names = self.names[: self.shape.keys] if kind == "delete by key" else self.names
        rows = [row[: len(names)] for row in rows[: 1 if kind == "delete one" else None]]
        columns = {name: list(column) for name, column in zip(names, zip(*rows))}
        getattr(self.table, kind.split()[0])(columns)
        if kind == "delete one" or len(names) == len(self.names):
            kind = kind.split()[0]  # of rows, not of keys
        self.twin.pending.append(("t", kind, [plain(row) for row in rows]))

    def commit(self) -> None:
        refused = ""
        try:
            self.db.commit()
        except SessionError as error:
            refused = str(error)
        assert self.twin.commit() == (not refused)
        assert not refused or "does not have the row" in refused
        assert Counter(map(plain, self.table.records())) == self.twin.tables["t"]


@pytest.mark.parametrize(("short", "few", "many"), [(16, 64, 1024), (1, 1, 2)])
@pytest.mark.parametrize("name", SHAPES)
def test_rows_are_deleted_as_from_a_multiset(
    name: str, short: int, few: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "SHORT", short)
    monkeypatch.setattr(cursor, "MANY", many)
    monkeypatch.setattr(transaction, "SHORT", few)
    shape = SHAPES[name]
    row = st.tuples(*map(st.sampled_from, shape.values))
    statements = st.tuples(st.sampled_from(KINDS), st.lists(row, min_size=1, max_size=5))

    @settings(max_examples=examples(30), deadline=None)
    @given(
        st.lists(row, min_size=1, max_size=40),
        st.lists(st.lists(statements, max_size=4), max_size=5),
        st.integers(1, 2),
    )
    def check(loaded: list[Row], commits: list[Any], workers: int) -> None:
        with Session(workers=workers, progress=False) as db:
            pair = Pair(db, shape)
            pair.state("insert", loaded)
            pair.commit()
            for made in commits:
                for statement in made:
                    pair.state(*statement)
                pair.commit()

    check()
