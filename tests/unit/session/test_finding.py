"""The rows of single keys, which are read from the index."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Session
from differential.session import finding
from timely.errors import DataError, SessionError

DAYS = [dt.date(2026, 1, day) for day in (1, 2, 3)]
Row = tuple[int | None, str, int]
ROWS = st.tuples(st.none() | st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 2))


@settings(max_examples=20)
@given(st.lists(st.lists(ROWS, max_size=5), min_size=1, max_size=3), st.sampled_from([1, 2]), st.data())
def test_found_are_the_rows_with_these_keys_as_of_the_last_commit(
    commits: list[list[Row]], workers: int, data: st.DataObject
) -> None:
    wanted = st.lists(st.tuples(st.none() | st.integers(0, 4), st.sampled_from("abc")), max_size=4)
    with Session(workers) as db:
        table = db.table("rows", {"x": int | None, "y": str, "z": int}, key=["y", "x"])
        view = db.view("sums", lambda t: t.rows.group_by("x").sum("z"))
        held: Counter[Row] = Counter()
        for rows in commits:
            for row in rows:
                (table.delete if held[row] else table.insert)([row])
                held[row] = 1 - held[row]
            db.commit()
            table.insert([(9, "c", 9)])  # not committed
            keys = data.draw(wanted)
            xs, ys = [x for x, _ in keys], [y for _, y in keys]
            expected = [row for row in held.elements() if row[:2] in keys]
            assert Counter(table.find(x=xs, y=ys).records()) == Counter(expected)
            sums: Counter[int | None] = Counter()
            for x, _, z in held.elements():
                sums[x] += z
            there = {x for x, _, _ in held.elements()}
            assert Counter(view.find(x=xs).records()) == Counter((x, sums[x]) for x in set(xs) & there)
            db.rollback()


def test_values_of_the_key_get_the_types_of_its_columns() -> None:
    with Session() as db:
        prices = db.table("prices", {"day": DAYS, "price": [1.5, 2.0, float("nan")]}, key="price")
        days = db.view("days", lambda t: t.prices.keyed_by("day"))
        unnamed = db.view("unnamed", lambda t: t.prices.map(lambda r: (r.day, r.price)))
        db.commit()
        assert prices.find(price=2).records() == [(DAYS[1], 2.0)]
        assert prices.find(price=np.array([1.5, 1.5, 7.0])).records() == [(DAYS[0], 1.5)]
        assert prices.find(price=[np.nan, np.nan]).to_pandas().day.tolist() == [DAYS[2]]
        assert days.find(day=DAYS[0]).records() == [(DAYS[0], 1.5)]
        assert unnamed.find(column_0=DAYS[:2]).records() == [(DAYS[0], 1.5), (DAYS[1], 2.0)]


def test_where_nothing_is_found_the_columns_are_known_all_the_same() -> None:
    with Session() as db:
        stock = db.table("stock", {"item": str, "pieces": int})
        assert stock.find(item="nut").columns == ("item", "pieces")
        db.commit()
        stock.insert(item="cog", pieces=1)
        db.commit()
        assert (stock.find(item=["nut", "bolt"]).records(), stock.find(item=[]).records()) == ([], [])
        assert stock.find(item="nut").to_pandas().pieces.dtype == np.int64


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        ({}, SessionError, r"takes values of the key, 'item', and here are those of no column: db.ask\("),
        (
            {"pieces": 3},
            SessionError,
            r"the key, 'item', and here are those of 'pieces': .*finds rows by other columns",
        ),
        ({"item": "nut", "pieces": 3}, SessionError, "here are those of 'item', 'pieces'"),
        ({"item": 3}, DataError, "column 'item' holds text, not integers such as 3"),
        ({"item": None}, DataError, "column 'item' holds text and no nulls"),
        ({"item": [["nut"]]}, DataError, "column 'item'"),
    ],
)
def test_what_is_not_a_key_is_refused_with_the_line(key: dict[str, Any], error: type[Exception], message: str) -> None:
    with Session() as db:
        stock = db.table("stock", {"item": ["nut"], "pieces": [3]})
        db.commit()
        with pytest.raises(error, match=rf"find on table 'stock' \(at .*test_finding.py:\d+\).*{message}"):
            stock.find(**key)


def test_only_the_rows_of_the_key_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def find(*arguments: Any) -> Any:
        share = finding_on_a_worker(*arguments)
        read.append(len(share[1].counts))
        return share

    finding_on_a_worker = finding.find
    monkeypatch.setattr(finding, "find", find)
    with Session() as db:
        stock = db.table("stock", {"item": np.arange(1000), "pieces": np.arange(1000)})
        db.commit()
        assert stock.find(item=[7, 8]).records() == [(7, 7), (8, 8)]
    assert read == [2]


def test_of_a_view_that_was_dropped_nothing_is_found() -> None:
    with Session() as db:
        db.table("stock", {"item": ["nut"]})
        view = db.view("all", lambda t: t.stock)
        db.commit()
        db.drop("all")
        with pytest.raises(SessionError, match="view 'all' was dropped"):
            view.find(item="nut")
