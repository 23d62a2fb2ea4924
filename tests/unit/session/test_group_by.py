"""Groups of named columns: by columns, and all records as one group."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Session, example
from differential.errors import BuildError
from differential.session import Relation, tumbling
from differential.session.group_by import ALL
from timely import Scope

ROWS = st.tuples(st.integers(0, 5), st.sampled_from("abc"), st.integers(-3, 3), st.sampled_from([None, 1, 2]))


def orders(scope: Scope) -> Relation:
    made = Relation.of(scope, np.array([1, 2, 1]), np.array([30, 5, 20]), np.array(["a", "b", "b"]))
    return made.named("customer", "total", "item")  # type: ignore[no-any-return, attr-defined]


def people(scope: Scope) -> Relation:
    return Relation.of(scope, np.array(["Rome", "Oslo"]), np.array([1, 2])).named("city", "id")  # type: ignore[no-any-return, attr-defined]


def aggregates_of(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return by definition what `AGGREGATES` make of a group."""
    totals = [row[2] for row in rows]
    mean = float(Fraction(sum(totals), len(totals)))
    return (len(rows), len({row[3] for row in rows}), sum(totals), min(totals), max(totals), mean)


AGGREGATES: dict[str, Any] = {
    "n": "count",
    "kinds": ("kind", "count_distinct"),
    "spent": ("total", "sum"),
    "least": ("total", "min"),
    "most": ("total", "max"),
    "average": ("total", "mean"),
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
            assert by_customer.records() == sorted((name, *aggregates_of(each)) for name, each in groups.items())
            assert of_all.records() == ([aggregates_of(list(held.values()))] if held else [])
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
