"""Groups of named columns: by columns, and all records as one group."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from operator import itemgetter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Session, example
from differential.errors import BuildError
from differential.frames import typed
from differential.operators.groups import CodeGroups, CodeRows, InPython
from differential.session import Relation, tumbling
from differential.session.group_by import ALL
from timely import Scope
from timely.errors import SessionError

ROWS = st.tuples(st.integers(0, 5), st.sampled_from("abc"), st.integers(-3, 3), st.sampled_from([None, 1, 2]))


def orders(scope: Scope) -> Relation:
    made = Relation.of(scope, np.array([1, 2, 1]), np.array([30, 5, 20]), np.array(["a", "b", "b"]))
    return made.named("customer", "total", "item")  # type: ignore[no-any-return, attr-defined]


def people(scope: Scope) -> Relation:
    return Relation.of(scope, np.array(["Rome", "Oslo"]), np.array([1, 2])).named("city", "id")  # type: ignore[no-any-return, attr-defined]


def aggregates_of(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return by definition what `AGGREGATES` make of a group."""
    totals, kinds = [row[2] for row in rows], [row[3] for row in rows if row[3] is not None]
    mean = float(Fraction(sum(totals), len(totals)))
    plain = len(rows), len({row[3] for row in rows}), sum(totals), min(totals), max(totals), mean
    mean_kind = float(Fraction(sum(kinds), len(kinds))) if kinds else np.nan
    return (*plain, sum(kinds), min(kinds, default=None), max(kinds, default=None), mean_kind)


AGGREGATES: dict[str, Any] = {
    "n": "count",
    "kinds": ("kind", "count_distinct"),
    "spent": ("total", "sum"),
    "least": ("total", "min"),
    "most": ("total", "max"),
    "average": ("total", "mean"),
    "sum of kinds": ("kind", "sum"),
    "least kind": ("kind", "min"),
    "greatest kind": ("kind", "max"),
    "mean kind": ("kind", "mean"),
}


@settings(max_examples=15)
@given(st.lists(st.lists(ROWS, max_size=6), min_size=1, max_size=4))
def test_aggregates_of_groups_are_those_of_their_rows_at_each_commit(commits: list[list[tuple[Any, ...]]]) -> None:
    columns = {"id": int, "customer": str, "total": int, "kind": int | None}
    with Session() as db:
        table = db.table("orders", columns, key="id")
        by_customer = db.view("by_customer", lambda t: t.orders.group_by("customer").aggregate(**AGGREGATES))
        of_all = db.view("of_all", lambda t: t.orders.group_by().aggregate(**AGGREGATES))
        kinds = db.view("kinds", lambda t: t.orders.window(tumbling(2), at="id").count_distinct("kind"))
        held: dict[int, tuple[Any, ...]] = {}
        for rows in commits:
            for row in rows:
                if held.get(row[0]) == row:
                    del held[row[0]]
                    table.delete(id=row[0])
                else:
                    held[row[0]] = row
                    table.upsert(**dict(zip(columns, row)))
            db.commit()
            groups: dict[str, list[tuple[Any, ...]]] = {}
            windows: dict[int, set[Any]] = {}
            for row in held.values():
                groups.setdefault(row[1], []).append(row)
                windows.setdefault(row[0] // 2 * 2, set()).add(row[3])
            expected = sorted(((name, *aggregates_of(each)) for name, each in groups.items()), key=itemgetter(0))
            assert repr(by_customer.records()) == repr(expected)  # NaN differs from itself
            assert repr(of_all.records()) == repr([aggregates_of(list(held.values()))] if held else [])
            assert kinds.records() == sorted((start, start + 2, len(found)) for start, found in windows.items())


def test_a_group_of_all_records_has_no_column_of_its_own() -> None:
    def made(scope: Scope) -> Relation:
        groups = orders(scope).group_by()
        assert groups.count("n").names == ("n",)
        assert groups.mean("total").names == ("total",)
        assert groups.aggregate(n="count", items=("item", "count_distinct")).names == ("n", "items")
        return groups.aggregate(n="count", items=("item", "count_distinct"))

    assert example(made) == [((3, 2), 1)]
    with pytest.raises(BuildError, match=r"keyed_by \(at .*\) needs a column"):
        example(lambda scope: orders(scope).keyed_by())


def test_to_count_all_pairs_makes_one_join_of_the_needed_columns() -> None:
    def made(scope: Scope) -> Relation:
        pairs = orders(scope).join(people(scope), on={"customer": "id"})
        counted = pairs.group_by().count("pairs")
        names = [operator.name for operator in scope.dataflow.operators]  # type: ignore[attr-defined]
        assert names.count("join") == 1, "of the needed columns alone"
        return counted

    assert example(made) == [((3,), 1)]


def test_different_values_are_counted_in_the_index_of_the_column() -> None:
    def made(scope: Scope) -> Relation:
        groups = orders(scope).group_by("customer")
        both = groups.sum("total").join(groups.count_distinct("total").named("customer", "n"))
        names = [operator.name for operator in scope.dataflow.operators]  # type: ignore[attr-defined]
        assert names.count("arrange") == 1, "of the group and the column, for both"
        return both

    assert example(made) == [((1, 50, 2), 1), ((2, 5, 1), 1)]


def test_a_column_may_have_the_name_of_the_column_that_is_equal_in_all_records() -> None:
    def made(scope: Scope) -> Relation:
        return orders(scope).named("customer", ALL, "item").group_by().aggregate(n="count", most=(ALL, "max"))

    assert example(made) == [((3, 30), 1)]


NULLABLE: dict[str, tuple[Any, list[Any], Any, Any]] = {
    "int64?": (int | None, [-(2**63), 5], 5 - 2**63, float(Fraction(5 - 2**63, 2))),
    "uint64?": (typed([], "uint64?"), [0, 2**63], 2**63, float(2**62)),
    "float64?": (float | None, [0.5, float("-inf")], float("-inf"), float("-inf")),
    "bool?": (bool | None, [False, True], 1, 0.5),
    "decimal": (typed([], "decimal(9, 2)"), [Decimal("1.50"), Decimal("-2.00")], Decimal("-0.50"), -0.25),
    "long decimal": (typed([], "decimal(38, 2)"), [Decimal("1.50"), Decimal("-2.00")], Decimal("-0.50"), -0.25),
    "duration": (dt.timedelta, [dt.timedelta(1), dt.timedelta(2)], dt.timedelta(3), dt.timedelta(1, 43200)),
    "date": (dt.date, [dt.date(2026, 1, 2), dt.date(1, 1, 1)], None, None),
    "text?": (str | None, ["", "\U0010fffe"], None, None),
    "bytes?": (bytes | None, [b"", b"\xff"], None, None),
}
"""For each type, two values, their sum and their mean."""


@pytest.mark.parametrize("name", NULLABLE)
def test_aggregates_leave_out_the_nulls_of_a_column_of_any_type(name: str) -> None:
    of, values, total, mean = NULLABLE[name]
    aggregates: dict[str, Any] = {"n": "count", "least": ("x", "min"), "most": ("x", "max")}
    with Session() as db:
        table = db.table("records", {"g": str, "x": of}, key="g")
        ends = db.view("ends", lambda t: t.records.group_by("g").aggregate(**aggregates))
        sums = None
        if total is not None:
            of_all: dict[str, Any] = {"total": ("x", "sum"), "mean": ("x", "mean")}
            sums = db.view("sums", lambda t: t.records.group_by("g").aggregate(**of_all))
        table.insert([("a", values[0]), ("a", None), ("a", values[1]), ("b", None), ("b", None)])
        db.commit()
        assert ends.records() == [("a", 3, min(values), max(values)), ("b", 2, None, None)]
        if sums is not None:
            none = type(total)(0)
            assert repr(sums.records()[0]) == repr(("a", total, mean))
            assert sums.records()[1][:2] == ("b", none)
            assert sums.records()[1][2] is None if name == "duration" else np.isnan(sums.records()[1][2])
        table.delete(g="a", x=max(values))
        table.insert(g="b", x=values[0])
        db.commit()
        assert ends.records() == [("a", 2, min(values), min(values)), ("b", 3, values[0], values[0])]
        if sums is not None:
            assert [record[:2] for record in sums.records()] == [("a", none + min(values)), ("b", none + values[0])]


MOST = Decimal(10**18 - 1) / 100


@pytest.mark.parametrize("aggregate", ["sum", "mean"])
def test_a_change_of_a_sum_of_decimals_reads_no_other_values_of_the_group(
    aggregate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    reduce = InPython._reduce

    def counted(self: InPython, groups: CodeGroups) -> CodeRows:
        read.append(len(groups.vals))
        return reduce(self, groups)

    with Session() as db:
        prices = [Decimal(number) / 4 for number in range(1000)]
        table = db.table("prices", {"id": range(1000), "price": typed(prices, "decimal(18, 2)")}, key="id")
        view = db.view("view", lambda t: getattr(t.prices.group_by(), aggregate)("price"))
        db.commit()
        monkeypatch.setattr(InPython, "_reduce", counted)
        table.delete(id=999)
        db.commit()
        total = sum(prices[:-1])
        assert view.records() == [(total if aggregate == "sum" else float(total / 999),)]
    assert 0 < max(read) <= 3


def test_sums_of_decimals_are_those_of_the_values_while_rows_come_and_go() -> None:
    random = Random(7)
    values = [None, MOST, -MOST, Decimal("0.01"), Decimal("-0.01"), Decimal(2**32) / 100, Decimal(-(2**32)) / 100]
    rows: dict[int, tuple[int, Decimal | None]] = {}
    with Session() as db:
        table = db.table("rows", {"id": int, "group": int, "x": typed([], "decimal(18, 2)")}, key="id")
        view = db.view("sums", lambda t: t.rows.group_by("group").aggregate(n="count", total=("x", "sum")))
        for _ in range(40):
            for number in random.sample(range(12), 3):
                table.delete(id=number)
                rows.pop(number, None)
                if random.random() < 0.7:
                    rows[number] = random.randrange(3), random.choice(values)
                    table.insert([(number, *rows[number])])
            db.commit()
            expected = []
            for group in sorted({group for group, _ in rows.values()}):
                of_group = [value for at, value in rows.values() if at == group]
                expected.append((group, len(of_group), sum((value or 0 for value in of_group), Decimal("0.00"))))
            assert view.records() == expected


def test_a_sum_of_decimals_of_two_scales_is_refused() -> None:
    def both(t: Any) -> Any:
        known = t.rows.filter(lambda r: r.id > 1)
        return known.concat(t.rows.select("id", x=lambda r: typed(r.x, "decimal(18, 4)"))).group_by().sum("x")

    with Session() as db:
        db.table("rows", {"id": [1], "x": typed([Decimal("1.25")], "decimal(9, 2)")}, key="id")
        db.commit()
        with pytest.raises(SessionError, match=r"column 'x' held decimal\(9, 2\) and now holds decimal\(18, 4\)"):
            db.view("view", both)


def test_aggregates_leave_out_the_nulls_of_records_without_a_match() -> None:
    with Session() as db:
        db.table("people", {"name": ["ann", "bob"]})
        db.table("orders", {"customer": ["ann", "ann"], "price": [3, 4], "day": [dt.date(2026, 1, 2)] * 2})
        bills = db.view(
            "bills",
            lambda t: (
                t.people.left_join(t.orders, on={"name": "customer"})
                .group_by("name")
                .aggregate(total=("price", "sum"), most=("price", "max"), last=("day", "max"))
            ),
        )
        db.commit()
        assert bills.records() == [("ann", 7, 4, dt.date(2026, 1, 2)), ("bob", 0, None, None)]


def test_aggregates_leave_out_the_nulls_of_columns_that_are_computed_of_those_of_tables() -> None:
    with Session() as db:
        db.table("orders", {"customer": ["ann", "ann", "bob"], "price": [3, None, None], "pieces": [2, 1, 5]})
        bills = db.view(
            "bills",
            lambda t: (
                t.orders.select("customer", total=lambda r: r.price * r.pieces, twice=lambda r: 2 * r.pieces)
                .group_by("customer")
                .aggregate(
                    total=("total", "sum"), most=("total", "max"), mean=("total", "mean"), twice=("twice", "max")
                )
            ),
        )
        db.commit()
        assert repr(bills.records()) == repr([("ann", 6, 6, 6.0, 4), ("bob", 0, None, float("nan"), 10)])
