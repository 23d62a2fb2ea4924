"""What a source does to its table, statement by statement, is what a plain list of rows gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from differential import Session
from differential.session.sources import SourceBatch, Target
from differential.session.transaction import Kind

RowStatement = tuple[Kind, list[tuple[int, int]]]


class Memory:
    """A source of given batches, and its own reader."""

    name = "memory"

    def __init__(self) -> None:
        self.batches: list[Sequence[RowStatement]] = []
        self.is_ended = False

    def open(self, target: Target, position: Any) -> Memory:
        return self

    def poll(self) -> SourceBatch | None:
        if not self.batches:
            return None
        changes = []
        for kind, rows in self.batches.pop(0):
            columns = tuple(np.array(column, np.int64) for column in zip(*rows))
            changes.append((kind, columns[: {Kind.CLEAR: 0, Kind.DELETE_KEYS: 1}.get(kind, 2)]))
        return SourceBatch(changes, (), 1)

    def confirm(self, position: Any) -> None:
        pass

    def close(self) -> None:
        pass


def applied(rows: list[tuple[int, int]], statement: RowStatement) -> list[tuple[int, int]]:
    """The oracle: the rows after a statement."""
    kind, given_rows = statement
    if kind is Kind.CLEAR:
        return []
    keys = {key for key, _ in given_rows}
    if kind in (Kind.UPSERT, Kind.DELETE_KEYS):
        rows = [row for row in rows if row[0] not in keys]
    if kind is Kind.UPSERT:
        return [*rows, *dict(given_rows).items()]
    if kind is Kind.INSERT:
        return [*rows, *given_rows]
    return rows


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=3)
STATEMENTS = st.tuples(st.sampled_from([Kind.INSERT, Kind.UPSERT, Kind.DELETE_KEYS, Kind.CLEAR]), ROWS)


@settings(max_examples=10, deadline=None)
@given(commits=st.lists(st.lists(STATEMENTS, max_size=4), max_size=4))
def test_statements_of_a_source_happen_in_order(commits: list[list[RowStatement]]) -> None:
    source, rows = Memory(), list[tuple[int, int]]()
    with Session() as db:
        table = db.table("table", {"key": int, "value": int}, key="key")
        table.read_from(source)
        for statements in commits:
            source.batches = [statements[:2], statements[2:]]
            for statement in statements:
                rows = applied(rows, statement)
            db.commit()
            assert table.records() == sorted(rows)
