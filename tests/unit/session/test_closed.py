"""What a closed session leaves behind."""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from differential import Session
from differential.data.interning import Interner


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Interner]]:
    """The tables of workers that have ended, without the garbage collector."""
    tables: list[Interner] = []
    end = Interner.end

    def noting(interner: Interner) -> None:
        tables.append(interner)
        end(interner)

    monkeypatch.setattr(Interner, "end", noting)
    gc.collect()
    gc.disable()
    yield tables
    gc.enable()


def test_a_closed_session_keeps_no_row_that_it_has_interned(ended: list[Interner]) -> None:
    with Session(workers=2) as db:
        table = db.table("t", {"k": np.arange(1000), "x": np.arange(1000) / 2, "s": [f"text {n}" for n in range(1000)]})
        db.view("v", lambda tables: tables.t.group_by("s").sum("x"))
        db.commit()
        rows = db.ask(lambda tables: tables.t.select("s", "x"))
        table.delete(k=3, x=1.5, s="text 3")
        db.commit()
        assert len(rows) == 1000
    assert [len(each) for each in ended] == [0, 0]
    assert rows.records()[:2] == [("text 0", 0.0), ("text 1", 0.5)]


def test_text_that_the_program_has_in_a_column_stays(ended: list[Interner]) -> None:
    kept: list[Any] = []
    with Session() as db:
        db.table("t", {"s": ["ann", "bob", "a text of more than a few words"], "n": [1, 2, 3]})
        db.commit()
        db.view("v", lambda tables: tables.t.filter(lambda r: kept.append(r.s) or r.n > 1))
    assert len(ended[0]) >= 3
    longest = max(kept, key=len)
    assert sorted(longest.tolist()) == ["a text of more than a few words", "ann", "bob"]
    assert (longest == "bob").sum() == 1
