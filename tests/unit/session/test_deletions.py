"""How many rows a deletion reads: those to delete, not those of their keys once for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from differential import Session
from differential.arrangement import reading
from differential.errors import SessionError

ROWS = 2000


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that receives how many rows each lookup in an index returns."""
    counts: list[int] = []

    def lookup(*given: Any) -> Any:
        place, vals, diffs = original(*given)
        counts.append(len(place))
        return place, vals, diffs

    original = reading.lookup
    monkeypatch.setattr(reading, "lookup", lookup)
    return counts


def large(db: Session) -> Any:
    """Return a table in which all rows have one key."""
    table = db.table("t", {"country": ["at"] * ROWS, "id": np.arange(ROWS)}, key="country")
    db.commit()
    return table


@pytest.mark.parametrize("number", [1, 100])
def test_deletions_of_rows_of_one_key_read_these_rows(number: int, found: list[int]) -> None:
    with Session() as db:
        table = large(db)
        table.delete({"country": ["at"] * number, "id": np.arange(number)})
        db.commit()
        assert found == [number]
        assert len(table.records()) == ROWS - number


def test_a_row_that_is_deleted_often_is_read_once(found: list[int]) -> None:
    with Session() as db:
        table = db.table("t", {"country": ["at"] * 100, "id": [7] * 100})
        db.commit()
        table.delete({"country": ["at"] * 100, "id": [7] * 100})
        db.commit()
        assert found == [1]
        assert table.records() == []


def test_a_deletion_of_rows_that_do_not_exist_reads_no_rows(found: list[int]) -> None:
    with Session() as db:
        table = large(db)
        table.delete({"country": ["at"] * 2, "id": [ROWS, ROWS + 1]})
        with pytest.raises(SessionError, match=rf"does not have the row \('at', {ROWS}\)"):
            db.commit()
        assert set(found) == {0}


def test_an_upsert_beside_a_deletion_reads_the_rows_of_its_key_once(found: list[int]) -> None:
    with Session() as db:
        table = large(db)
        table.insert(country=["be", "be"], id=[1, 2])
        db.commit()
        table.delete(country=["be", "at", "at"], id=[1, 3, 4])
        table.upsert(country="at", id=-1)
        db.commit()
        assert found == [ROWS, 1]
        assert table.records() == [("at", -1), ("be", 2)]


def test_the_error_for_a_row_that_is_not_there_follows_no_other() -> None:
    with Session() as db:
        orders = db.table("orders", {"id": [1]})
        db.commit()
        orders.delete(id=2)
        with pytest.raises(SessionError, match=r"does not have the row \(2,\)") as caught:
            db.commit()
        assert caught.value.__context__ is None
