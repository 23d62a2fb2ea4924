"""What a closed session leaves behind."""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from differential import Session
from differential.data import interning
from differential.data.interning import Interner


@pytest.fixture(autouse=True)
def _without_the_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def tables_of_workers() -> list[Interner]:
    """Return the tables of all workers that this process has."""
    return [*interning._interners.values()]


def test_a_closed_session_keeps_no_row_that_it_has_interned() -> None:
    others = tables_of_workers()
    with Session(workers=2) as db:
        table = db.table("t", {"k": np.arange(1000), "x": np.arange(1000) / 2, "s": [f"text {n}" for n in range(1000)]})
        db.view("v", lambda tables: tables.t.group_by("s").sum("x"))
        db.commit()
        rows = db.ask(lambda tables: tables.t.select("s", "x"))
        table.delete(k=3, x=1.5, s="text 3")
        db.commit()
        assert len(rows) == 1000
        tables = [each for each in tables_of_workers() if each not in others]
        assert min(map(len, tables)) > 400
    assert [len(each) for each in tables] == [0, 0]
    assert rows.records()[:2] == [("text 0", 0.0), ("text 1", 0.5)]


def test_text_that_the_program_has_in_a_column_stays() -> None:
    others = tables_of_workers()
    kept: list[Any] = []
    with Session() as db:
        db.table("t", {"s": ["ann", "bob", "a text of more than a few words"], "n": [1, 2, 3]})
        db.commit()
        db.view("v", lambda tables: tables.t.filter(lambda r: kept.append(r.s) or r.n > 1))
        (table,) = [each for each in tables_of_workers() if each not in others]
    assert len(table) >= 3
    longest = max(kept, key=len)
    assert sorted(longest.tolist()) == ["a text of more than a few words", "ann", "bob"]
    assert (longest == "bob").sum() == 1
