"""Collections whose columns have names."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from differential import Collection, Session, example, graphs
from differential.errors import BuildError, DataError, SessionError, TimelyError
from differential.graphs import bfs
from differential.session import Relation
from differential.session.aggregate import quotient
from differential.session.relation import IndexedRelation
from differential.session.row import by_row
from timely import Scope, rowwise
from timely.lowlevel import typed, user_origin


def orders(scope: Scope) -> Relation:
    made = Relation.of(scope, np.array([1, 2, 1]), np.array([30, 5, 20]), np.array(["a", "b", "b"]))
    return made.named("customer", "total", "item")  # type: ignore[no-any-return, attr-defined]


def people(scope: Scope) -> Relation:
    return Relation.of(scope, np.array(["Rome", "Oslo"]), np.array([1, 2])).named("city", "id")  # type: ignore[no-any-return, attr-defined]


def records(made: Callable[[Scope], Any]) -> list[Any]:
    return [record for record, diff in example(made) for _ in range(diff)]


def test_groups_have_count_sum_least_largest_and_mean() -> None:
    def groups(scope: Scope) -> Any:
        return orders(scope).group_by("customer")

    assert records(lambda scope: groups(scope).count()) == [(1, 2), (2, 1)]
    assert records(lambda scope: groups(scope).sum("total")) == [(1, 50), (2, 5)]
    assert records(lambda scope: groups(scope).min("item")) == [(1, "a"), (2, "b")]
    assert records(lambda scope: groups(scope).max("total")) == [(1, 30), (2, 5)]
    assert records(lambda scope: groups(scope).mean("total")) == [(1, 25.0), (2, 5.0)]
    assert records(lambda scope: orders(scope).group_by("item", "customer").mean("total")) == [
        ("a", 1, 30.0),
        ("b", 1, 20.0),
        ("b", 2, 5.0),
    ]


def test_a_mean_is_taken_of_groups_by_a_column_of_any_name() -> None:
    def mean(scope: Scope) -> Any:
        return orders(scope).named("count", "total", "item").group_by("count").mean("total")

    assert records(mean) == [(1, 25.0), (2, 5.0)]


def test_a_mean_of_decimals_is_a_float() -> None:
    def mean(scope: Scope) -> Any:
        prices = typed([Decimal("1.50"), Decimal("2.25"), Decimal("0.01")], "decimal(18, 2)")
        made: Any = Relation.of(scope, np.array([1, 1, 2]), prices)
        return made.named("item", "price").group_by("item").mean("price")

    assert records(mean) == [(1, 1.875), (2, 0.01)]


def test_a_mean_of_decimals_is_rounded_once() -> None:
    between = Decimal("9007199254740993.00000000000001")  # just above the middle between two floats

    def mean(scope: Scope) -> Any:
        made: Any = Relation.of(scope, np.array([1]), typed([between], "decimal(38, 14)"))
        return made.named("item", "price").group_by("item").mean("price")

    assert records(mean) == [(1, 9007199254740994.0)]


@given(st.lists(st.tuples(st.decimals(-(10**60), 10**60, places=10), st.integers(1, 10**6)), min_size=1, max_size=5))
def test_a_quotient_of_decimals_is_the_float_next_to_it(groups: list[tuple[Decimal, int]]) -> None:
    sums, counts = zip(*groups)
    with localcontext() as context:
        context.prec = 5  # which does not matter
        found = quotient(np.array(sums, object), np.array(counts))
    assert found.tolist() == [float(Fraction(each) / count) for each, count in groups]


@pytest.mark.parametrize("of", ["int64", "int64?", "date", "decimal(9, 2)"])
def test_a_function_of_a_single_column_that_asks_for_it_by_name_is_corrected(of: str) -> None:
    column = typed([None, None] if of != "int64" else [1, 2], of)
    with pytest.raises(AttributeError, match="has no attribute 'x': there is one column, which the function receives"):
        by_row(["x"], lambda r: r.x > 1)(column)


def test_a_mean_of_durations_is_rounded_to_the_nearest_microsecond() -> None:
    def mean(column: Any) -> list[Any]:
        def program(scope: Scope) -> Any:
            made: Any = Relation.of(scope, np.array([1, 1, 2]), column)
            return made.named("item", "wait").group_by("item").mean("wait")

        return [record[1] for record in records(program)]

    days = typed([dt.timedelta(1), dt.timedelta(2), dt.timedelta(-1)], "duration[D]")
    assert mean(days) == [dt.timedelta(days=1, hours=12), dt.timedelta(-1)]
    micros = [dt.timedelta(microseconds=each) for each in (-1, -2, 7)]
    assert mean(typed(micros, "duration[us]")) == [dt.timedelta(microseconds=-2), dt.timedelta(microseconds=7)]
    nanos = typed(np.array([1, 4, 7], "m8[ns]"), "duration[ns]")
    assert mean(nanos) == [np.timedelta64(2, "ns"), np.timedelta64(7, "ns")]


@given(st.lists(st.integers(-(1 << 61), 1 << 61), min_size=2, max_size=3))
def test_a_mean_of_integers_is_rounded_once(values: list[int]) -> None:
    def mean(scope: Scope) -> Any:
        made: Any = Relation.of(scope, np.zeros(len(values), np.int64), np.array(values))
        return made.named("item", "price").group_by("item").mean("price")

    assert records(mean) == [(0, sum(values) / len(values))]


def test_groups_have_several_aggregates_of_which_those_of_one_column_share_an_index() -> None:
    def several(scope: Scope) -> Relation:
        made = (
            orders(scope)
            .group_by("customer")
            .aggregate(
                n="count",
                spent=("total", "sum"),
                least=("total", "min"),
                average=("total", "mean"),
                last=("item", "max"),
            )
        )
        assert made.names == ("customer", "n", "spent", "least", "average", "last")
        arranged = [operator.name for operator in scope.dataflow.operators].count("arrange")  # type: ignore[attr-defined]
        assert arranged == 7, "the records, the values of two columns, the mean, and what three of the joins make"
        return made

    assert records(several) == [(1, 2, 50, 20, 25.0, "b"), (2, 1, 5, 5, 5.0, "b")]


def test_names_lead_through_join_filter_and_select() -> None:
    def named(scope: Scope) -> Relation:
        joined = orders(scope).filter(lambda r: r["total"] >= 20).join(people(scope), on={"customer": "id"})
        assert joined.names == ("customer", "total", "item", "city")
        chosen = joined.select("city", half=lambda r: r.total // 2, what="item")
        assert chosen.names == ("city", "half", "what")
        return chosen.concat(chosen).distinct().filter(lambda r: r.what == "b")

    assert records(named) == [("Rome", 10, "b")]


def test_join_on_the_key_that_both_have_uses_their_indexes() -> None:
    def same(scope: Scope) -> Relation:
        left = orders(scope)
        assert left.keyed_by("customer") is left
        return left.join(people(scope).select("id", "city"))

    assert records(same) == [(1, 20, "b", "Rome"), (1, 30, "a", "Rome"), (2, 5, "b", "Oslo")]


def operators(scope: Scope, name: str) -> list[Any]:
    return [each for each in scope.dataflow.operators if each.name == name]  # type: ignore[attr-defined]


def test_a_join_indexes_the_columns_that_are_needed() -> None:
    def narrow(scope: Scope) -> Relation:
        joined = people(scope).join(orders(scope).select("item", "total", "customer"), on={"id": "customer"})
        assert joined.names == ("id", "city", "item", "total")
        assert not operators(scope, "join")
        made = joined.narrowed(["total", "city"])
        assert made.names == ("id", "city", "total")
        assert made.narrowed(["total"]) is made
        assert joined.narrowed(["city", "total", "item", "id"]) is joined
        return joined.select("total", where="city").concat(made.select("total", "city"))

    assert records(narrow) == [(5, "Oslo")] * 2 + [(20, "Rome")] * 2 + [(30, "Rome")] * 2


def test_a_side_that_has_the_key_is_indexed_whole_and_shares_its_index() -> None:
    def whole(scope: Scope) -> Relation:
        ours = orders(scope)
        joined = ours.join(people(scope), on={"customer": "id"})
        assert joined.narrowed(["total"]).names == ("customer", "total", "item")
        totals = joined.select("city", "total").concat(joined.select("city", "total"))
        ours.count()
        assert len(operators(scope, "arrange")) == 4, "one of the orders, and one of the people for each join"
        return totals.distinct()

    assert records(whole) == [("Oslo", 5), ("Rome", 20), ("Rome", 30)]


def test_all_of_a_join_is_built_once_and_then_used_for_all_that_follows() -> None:
    def once(scope: Scope) -> Relation:
        joined = orders(scope).join(people(scope), on={"customer": "id"})
        line = user_origin().line - 1
        large = joined.filter(lambda r: r.total > 5)
        both = large.concat(joined.at(None).filter(lambda r: r.total <= 5)).select("total")
        groups = joined.group_by("city")
        cities = groups.aggregate(total=("total", "sum"), average=("total", "mean")).select("total")
        assert [each.origin.line for each in operators(scope, "join")].count(line) == 1
        return both.concat(cities)

    assert records(once) == [(5,), (5,), (20,), (30,), (50,)]


def test_several_aggregates_need_one_join_whose_origin_is_its_line() -> None:
    def several(scope: Scope) -> Relation:
        joined = people(scope).join(orders(scope).select("item", "customer", "total"), on={"id": "customer"})
        line = user_origin().line - 1
        groups = joined.group_by("city")
        made = groups.aggregate(n="count", total=("total", "sum"), average=("total", "mean"), least=("total", "min"))
        assert [each.origin.line for each in operators(scope, "join")].count(line) == 1
        return made

    assert records(several) == [("Oslo", 1, 5, 5.0, 5), ("Rome", 2, 50, 25.0, 20)]


def test_a_relation_is_accepted_where_a_collection_is() -> None:
    def hops(scope: Scope) -> Collection:
        edges = Relation.of(scope, np.array([0, 1]), np.array([1, 2])).named("src", "dst")
        return bfs(edges, Collection.of(scope, 0))  # type: ignore[arg-type]

    assert records(hops) == [(0, 0), (1, 1), (2, 2)]


def test_a_row_completes_the_names_of_its_columns() -> None:
    found: list[str] = []
    records(lambda scope: orders(scope).filter(lambda r: (found.extend(dir(r)), r.total < 10)[1]))
    assert {"customer", "total", "item"} <= set(found)


def test_functions_of_several_parameters_receive_columns() -> None:
    assert records(lambda scope: orders(scope).filter(lambda customer, total, item: total < 10)) == [(2, 5, "b")]
    assert records(lambda scope: orders(scope).filter(lambda *columns: columns[0] == 2)) == [(2, 5, "b")]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda made: made.group_by("custmer"), "there is no column 'custmer': the columns are customer, total, item"),
        (lambda made: made.select("total", "total"), "names a column twice"),
        (lambda made: made.map(lambda *columns: columns).group_by("total"), "have no names here"),
        (lambda made: made.named("a", "a"), "cannot be the names"),
        (lambda made: made.named(), "cannot be the names"),
        (lambda made: made.named(1, 2), "1, 2 cannot be the names .* a different text"),
        (
            lambda made: made.named("a", "b"),
            "the collection has the 3 columns customer, total, item, but 2 names: a, b",
        ),
        (lambda made: made.named("a", "b", "c", "d"), "but 4 names: a, b, c, d"),
        (lambda made: made.join(made, on="customer"), "both sides have a column 'item', 'total' besides the key"),
        (lambda made: made.group_by("total").sum("total"), "is a column of the groups"),
        (lambda made: made.group_by("item").aggregate(), "name at least one aggregate"),
        (lambda made: made.group_by("item").aggregate(item="count"), "'item' is a column of the groups"),
        (lambda made: made.group_by("item").aggregate(n="cuont"), "n='cuont' is neither 'count' nor a column and one"),
        (lambda made: made.group_by("item").aggregate(n=("total", "avg")), r"n=\('total', 'avg'\) is neither"),
        (lambda made: made.group_by("item").aggregate(n=("totl", "sum")), "there is no column 'totl'"),
    ],
)
def test_an_error_names_the_columns_and_the_line(wrong: Callable[[Relation], Any], message: str) -> None:
    with pytest.raises(BuildError, match=message) as caught:
        example(lambda scope: wrong(orders(scope)))
    assert "test_relation.py:" in str(caught.value)


def test_a_column_that_a_row_does_not_have_is_named() -> None:
    with pytest.raises(Exception, match="there is no column 'totl': the columns are customer, total, item"):
        example(lambda scope: orders(scope).filter(lambda r: r.totl > 1))


def test_columns_in_another_order_are_not_put_together_unless_they_are_taken_as_they_are() -> None:
    with Session() as db:
        db.table("roads", {"start": [1], "end": [2]})
        db.table("old", {"start": [3], "end": [4]}, key="end")
        db.commit()
        with pytest.raises(SessionError, match=r"of another one end, start, .* select\('start', 'end'\) puts them"):
            db.ask(lambda t: t.roads.concat(t.old))
        assert db.ask(lambda t: t.roads.concat(t.old.select("start", "end"))).records() == [(1, 2), (3, 4)]
        both = db.ask(lambda t: t.roads.concat(t.roads.select("end", "start").named("start", "end")))
        assert both.records() == [(1, 2), (2, 1)]


@pytest.mark.parametrize(
    "make",
    [
        lambda made, other: made.concat(other),
        lambda made, other: made.union(other),
        lambda made, other: made.intersect(made),
        lambda made, other: made.except_(other),
        lambda made, other: made.symmetric_difference(other),
        lambda made, other: made.consolidate(),
        lambda made, other: made.distinct(),
        lambda made, other: made.threshold(lambda count: count),
        lambda made, other: made.negate().negate(),
        lambda made, other: made.delay(lambda time: (time[0] + 1,)),
        lambda made, other: made.inspect(lambda *_: None),
        lambda made, other: made.semijoin(made.select("customer")),
        lambda made, other: made.antijoin(other.select("customer")),
        lambda made, other: made.min(),
        lambda made, other: made.max(),
        lambda made, other: made.top_k(1),
        lambda made, other: made.argmin(lambda customer, total, item: total),
        lambda made, other: made.argmax(lambda customer, total, item: total),
        lambda made, other: made.iterate(lambda inner: inner.filter(lambda r: r.total > 0)),
    ],
)
def test_operators_whose_records_are_those_of_a_collection_keep_its_names(make: Callable[[Any, Any], Any]) -> None:
    def build(scope: Scope) -> Any:
        other = Relation.of(scope, np.array([3]), np.array([7]), np.array(["a"])).named("customer", "total", "item")
        made = make(orders(scope), other)
        assert made.names == ("customer", "total", "item")
        return made.select("item", "total")

    assert records(build)
    assert all(type(item) is str and type(total) is int for item, total in records(build))


@pytest.mark.parametrize(
    "make",
    [
        lambda index: index.as_collection(),
        lambda index: index.distinct(),
        lambda index: index.threshold(lambda count: count),
        lambda index: index.semijoin(index.as_collection().select("customer").arrange_by_key()),
        lambda index: index.antijoin(index.as_collection().select("customer").filter(lambda customer: customer > 1)),
        lambda index: index.min(),
        lambda index: index.max(),
        lambda index: index.top_k(1),
        lambda index: index.argmin(lambda customer, total, item: total),
        lambda index: index.argmax(lambda customer, total, item: total),
        lambda index: index.join(index.max().select("customer", "total").select("customer")),
        lambda index: index.join(index.max().select(buyer="customer").arrange_by_key(), on={"customer": "buyer"}),
    ],
)
@pytest.mark.parametrize("is_in_loop", [False, True])
def test_the_index_of_a_relation_keeps_its_names(make: Callable[[IndexedRelation], Relation], is_in_loop: bool) -> None:
    def build(scope: Scope) -> Any:
        index = orders(scope).arrange_by_key()
        with scope.iterative() as inner:
            made = make(index.enter(inner) if is_in_loop else index)
            assert made.names == ("customer", "total", "item")
            made = made.select("item", "total")
            return made.leave() if is_in_loop else made

    assert records(build)


def test_a_relation_that_is_indexed_and_renamed_shares_its_index() -> None:
    def build(scope: Scope) -> Any:
        made = orders(scope)
        index = made.arrange_by_key()
        renamed = made.named("who", "paid", "what")
        assert made.arrange_by_key() is index is not renamed.arrange_by_key()
        assert renamed.arrange_by_key().min().names == ("who", "paid", "what")
        assert index.min().names == ("customer", "total", "item")
        assert index.reduce(lambda groups: (groups.index, *groups.values)).names is None
        assert len(operators(scope, "arrange")) == 1
        return renamed.arrange_by_key().max().select("paid")

    assert records(build)


@pytest.mark.parametrize("name", ["concat", "union", "intersect", "except_", "symmetric_difference"])
def test_the_same_columns_in_another_order_are_refused(name: str) -> None:
    def build(scope: Scope) -> Any:
        return getattr(orders(scope), name)(orders(scope).select("total", "customer", "item"))

    with pytest.raises(
        BuildError, match=rf"{name} .*select\('customer', 'total', 'item'\) puts them in the same order"
    ):
        example(build)


@pytest.mark.parametrize("name", ["concat", "union", "intersect", "except_", "symmetric_difference"])
@pytest.mark.parametrize("wide", [True, False])
def test_keys_of_different_numbers_of_columns_make_no_difference(name: str, wide: bool) -> None:
    def build(scope: Scope, *keys: str) -> Any:
        other = Relation.of(scope, np.array([1, 3]), np.array([30, 7]), np.array(["a", "a"]))
        one, two = orders(scope).keyed_by("customer"), other.named("customer", "total", "item")  # type: ignore[attr-defined]
        return getattr(one.keyed_by(*keys), name)(two) if wide else getattr(one, name)(two.keyed_by(*keys))

    expected = example(lambda scope: build(scope, "customer"))
    assert example(lambda scope: build(scope, "customer", "total")) == expected
    assert expected


def test_a_loop_has_the_names_of_what_it_begins_with() -> None:
    def within(scope: Scope) -> Any:
        roads = Relation.of(scope, np.array(["Rome", "Pisa", "Bari"]), np.array(["Pisa", "Genoa", "Rome"]))
        roads = roads.named("start", "end")  # type: ignore[attr-defined]
        origin = Relation.of(scope, np.array(["Rome"]), np.array([0])).named("town", "hops")  # type: ignore[attr-defined]

        def nearer(near: Any) -> Any:
            further = near.join(roads, on={"town": "start"}).select(town="end", hops=lambda r: r.hops + 1)
            return further.concat(origin).min()

        return origin.iterate(nearer)

    assert records(within) == [("Genoa", 2), ("Pisa", 1), ("Rome", 0)]


def test_a_loop_keeps_the_key_of_what_it_begins_with() -> None:
    def closed(scope: Scope) -> Any:
        roads: Any = Relation.of(scope, np.array([1, 2]), np.array([2, 3])).named("a", "b")
        on = roads.select(b="a", c="b")
        return roads.keyed_by("a", "b").iterate(
            lambda inner: inner.join(on, on="b").select("a", b="c").concat(roads).distinct()
        )

    assert example(closed) == [((1, 2), 1), ((1, 3), 1), ((2, 3), 1)]


def test_a_loop_refuses_its_columns_in_another_order() -> None:
    def swapped(scope: Scope) -> Any:
        made: Any = Relation.of(scope, np.array([1]), np.array([2])).named("a", "b")
        return made.iterate(lambda inner: inner.select("b", "a"))

    with pytest.raises(BuildError, match=r"iterate .*the columns of one collection are a, b, and of another one b, a"):
        example(swapped)


def test_a_function_with_defaults_takes_a_row() -> None:
    assert records(lambda scope: orders(scope).filter(lambda r, least=10: r.total > least)) == [
        (1, 20, "b"),
        (1, 30, "a"),
    ]


def test_map_gives_a_function_of_one_parameter_a_row() -> None:
    assert records(lambda scope: orders(scope).map(lambda r: (r.item, r.total))) == [("a", 30), ("b", 5), ("b", 20)]


def test_parameters_that_are_the_names_of_the_columns_in_another_order_are_refused() -> None:
    for name in ("map", "filter", "attempt"):
        with pytest.raises(
            BuildError, match=rf"{name} \(at .*in the order customer, total, item .*in the order total, customer, item"
        ):
            example(lambda scope, name=name: getattr(orders(scope), name)(lambda total, customer, item: total > 1))
    kept = records(lambda scope: orders(scope).map(lambda total, other, item: (total, item)))
    assert kept == [(1, "a"), (1, "b"), (2, "b")], "these are not names of all columns"


@pytest.mark.parametrize("value", [1, -1, 1.5, True, None])
def test_a_column_computed_from_a_value_is_refused(value: object) -> None:
    with pytest.raises(BuildError, match=rf"select \(at .*one={value} is neither .*lambda r: {value} makes"):
        example(lambda scope: orders(scope).select("total", one=value))  # type: ignore[arg-type]
    assert records(lambda scope: orders(scope).select("total", one=lambda r: 1))[0] == (5, 1)


def test_functions_of_one_row_receive_a_row_or_its_values() -> None:
    def size(r: Any) -> str:
        return "large" if r.total > 10 else "small"

    expected = [(5, "small"), (20, "large"), (30, "large")]
    assert records(lambda scope: orders(scope).select("total", size=rowwise(size))) == expected
    of_values = rowwise(lambda customer, total, item: "large" if total > 10 else "small")
    assert records(lambda scope: orders(scope).select("total", size=of_values)) == expected
    assert records(lambda scope: orders(scope).map(rowwise(lambda r: (r.total, size(r))))) == expected
    large = records(lambda scope: orders(scope).filter(rowwise(lambda r: r.total > 10 and r.item == "b")))
    assert large == [(1, 20, "b")]


def test_a_column_may_have_the_name_of_anything_that_a_row_has() -> None:
    def build(scope: Scope) -> Any:
        made: Any = Relation.of(scope, np.array([1, 2]), np.array([6, 7])).named("_columns", "__class__")
        return made.filter(lambda r: (r["_columns"] == 2) & (r["__class__"] == 7) & (r._columns == 2))

    assert records(build) == [(2, 7)]


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c", "d")])
@pytest.mark.parametrize("use", [lambda made: made.select("a"), lambda made: made.filter(lambda r: r.a > 0)])
def test_names_of_another_number_than_the_columns_of_a_map_are_refused(names: tuple[str, ...], use: Any) -> None:
    def build(scope: Scope) -> Any:
        return use(orders(scope).map(lambda *columns: columns).named(*names))

    with pytest.raises(TimelyError, match=rf"the collection has 3 columns, but {len(names)} names: a, b"):
        example(build)


@pytest.mark.parametrize("on", [3, lambda r: r.customer, None.__class__])
def test_what_is_no_column_to_join_on_is_refused(on: Any) -> None:
    with pytest.raises(BuildError, match=r"join \(at .*names no column: on='city' .* on=\{'city': 'name'\} one here"):
        example(lambda scope: orders(scope).join(people(scope), on=on))


def test_a_column_that_is_named_as_an_option_is_refused() -> None:
    with pytest.raises(BuildError, match=r"select \(at .*`keys` is the number of key columns"):
        example(lambda scope: orders(scope).select("item", keys=lambda r: r.total))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["triangles", "k_core", "independent_set", "pagerank", "bfs"])
def test_an_algorithm_takes_columns_of_any_names(name: str) -> None:
    def build(scope: Scope, names: tuple[str, str]) -> Any:
        ends = np.array([1, 1, 2, 3, 1]), np.array([2, 3, 3, 4, 4])
        given = {"k_core": (2,), "bfs": (1,)}.get(name, ())
        return getattr(graphs, name)(Relation.of(scope, *ends).named(*names), *given)  # type: ignore[attr-defined]

    expected = example(lambda scope: build(scope, ("a", "b")))
    for names in (("target", "source"), ("neighbour", "node"), ("node", "root")):
        assert example(lambda scope, names=names: build(scope, names)) == expected


def test_parameters_with_defaults_that_are_the_columns_receive_them() -> None:
    def build(scope: Scope) -> Any:
        return Relation.of(scope, np.array([1, 5]), np.array([3, 4])).named("x", "y")  # type: ignore[attr-defined]

    assert records(lambda scope: build(scope).filter(lambda x, y=0: x > y)) == [(5, 4)]
    assert records(lambda scope: build(scope).map(lambda x, y=0: x + y)) == [(4,), (9,)]
    with pytest.raises(BuildError, match=r"rowwise \(at .*in the order x, y .*in the order y, x"):
        example(lambda scope: build(scope).select(z=rowwise(lambda y, x: y - x)))


@pytest.mark.parametrize("text", ["b: c", "b: something was removed; c"])
def test_a_view_with_negative_rows_is_named_with_its_line_however_it_is_read(text: str) -> None:
    with Session() as db:
        db.table("a", {"k": [1, 5], "x": [text, "d"]})
        db.table("b", {"k": [1, 1, 1]})
        db.commit()
        view = db.view("left", lambda t: t.a.concat(t.b.join(t.a, on="k").negate()))
        named = rf"view 'left' \(at {re.escape(__file__)}:\d+\) cannot be read: "
        for read in (view.records, lambda: repr(view), view.to_arrow):
            with pytest.raises(
                DataError, match=rf"{named}the record \(1, '{text}'\) occurs .* -2\. .*negate\(\) makes"
            ):
                read()
        with pytest.raises(DataError, match=rf"{named}its number of rows is negative, -1"):
            len(view)


def test_a_semijoin_by_columns_has_their_names_and_shares_distinct_keys() -> None:
    with Session() as db:
        db.table("orders", {"id": [1, 2], "customer": [7, 8]})
        db.table("people", {"name": ["ann", "eva"], "number": [7, 7]})
        db.commit()
        found = db.ask(lambda t: t.orders.semijoin(t.people, on={"customer": "number"}))
        assert (found.columns, found.records()) == (("customer", "id"), [(7, 1)])


@pytest.mark.parametrize("is_distinct", [False, True])
def test_keys_that_are_known_to_be_distinct_are_not_made_distinct_again(is_distinct: bool) -> None:
    def program(scope: Scope) -> Collection:
        people = Relation.of(scope, np.array([7, 7]), np.array(["ann", "eva"])).named("number", "name")
        keys = people.select("number").distinct() if is_distinct else people.select("number")
        left = Relation.of(scope, np.array([7, 8])).named("n").antijoin(keys.named("id"))
        assert len(operators(scope, "antijoin: keys")) == (not is_distinct)
        return left

    assert example(program) == [((8,), 1)]


@pytest.mark.parametrize(
    ("missing", "error"),
    [
        ({"city": "", "n": 0}, "adds the columns city, and `missing` has values for city, n"),
        ({}, r"missing={'city': typed\(\[None\], 'text\?'\)} states it, with typed of differential.frames"),
    ],
)
def test_a_left_join_has_values_for_columns_that_it_adds_or_nulls_of_known_types(missing: Any, error: str) -> None:
    with Session() as db:
        db.table("orders", {"id": [1]})
        db.table("cities", {"id": [1], "city": ["Rome"]})
        with pytest.raises(SessionError, match=error):
            db.ask(lambda t: t.orders.left_join(t.cities.select("id", city=lambda r: r.city), on="id", missing=missing))


@pytest.mark.parametrize(
    ("of", "value", "missing", "expected"),
    [
        (float, 1.5, 0, 0.0),
        (float | None, 1.5, 0, 0.0),
        (int | None, 5, 0, 0),
        (str | None, "Rome", "unknown", "unknown"),
        (dt.date | None, dt.date(2026, 1, 2), dt.date(2026, 1, 1), dt.date(2026, 1, 1)),
        (int, 5, typed([None], "int64?"), None),
        (int, 5, None, None),
        (str | None, "Rome", None, None),
        (bytes, b"Rome", None, None),
        (dt.date, dt.date(2026, 1, 2), None, None),
        (list, [1], None, None),
        (float | None, None, typed([None], "float64?"), None),
        (list, [1], [], ()),
    ],
)
def test_the_values_of_a_left_join_have_the_types_of_the_columns(
    of: Any, value: Any, missing: Any, expected: Any
) -> None:
    with Session() as db:
        left, right = db.table("left", {"k": int}), db.table("right", {"k": int, "x": int, "v": of}, key="k")
        view = db.view("both", lambda t: t.left.left_join(t.right.select("k", w="v"), on="k", missing={"w": missing}))
        whole = db.view("whole", lambda t: t.left.left_join(t.right, on="k", missing={"x": 0, "v": missing}))
        left.insert(k=2)
        db.commit()
        left.insert(k=1)
        right.insert(k=1, x=0, v=value)
        db.commit()
        value = tuple(value) if of is list else value
        assert view.records() == [(1, value), (2, expected)]
        assert whole.records() == [(1, 0, value), (2, 0, expected)]


@pytest.mark.parametrize(
    ("of", "missing", "error"),
    [
        (int, 0.5, r"left_join \(at .*\): missing={'v': 0.5}: column 'v' there holds integers, not floats"),
        (int, "none", "column 'v' there holds integers, not text such as 'none'"),
        (bool, 0, "column 'v' there holds booleans, not integers such as 0"),
        (int, [0], r"missing={'v': \[0\]} is not one value: give the value itself, or a column of one row"),
        (int, np.array([0, 1]), "is not one value"),
        (int, np.array(0), "is not one value"),
    ],
)
def test_a_value_of_a_left_join_that_is_none_of_its_column_is_refused(of: Any, missing: Any, error: str) -> None:
    with Session() as db:
        db.table("left", {"k": int}), db.table("right", {"k": int, "v": of})
        with pytest.raises(SessionError, match=error):
            db.view("both", lambda t: t.left.left_join(t.right, on="k", missing={"v": missing}))


def test_a_value_of_a_left_join_of_another_type_than_the_rows_that_come_later_is_named() -> None:
    with Session() as db:
        left, right = db.table("left", {"k": [1, 2]}), db.table("right", {"k": int, "v": float})
        twice = lambda t: t.right.select("k", v=lambda r: 2 * r.v)  # noqa: E731
        db.view("wrong", lambda t: t.left.left_join(twice(t), on="k", missing={"v": 0}))
        zero = typed([0], "float64")
        good = db.view("good", lambda t: t.left.left_join(twice(t), on="k", missing={"v": zero}))
        sums = db.view("sums", lambda t: t.left.left_join(t.right.group_by("k").sum("v"), on="k", missing={"v": 0}))
        right.insert(k=1, v=1.5)
        message = (
            r"'v' is of float64 on the other side, and `missing` has a value of int64: .*typed\(\[0\], 'float64'\)"
        )
        with pytest.raises(SessionError, match=rf"left_join \(at .*test_relation.py:\d+\): column {message}"):
            db.commit()
        assert (len(left), good.records()) == (2, [(1, 3.0), (2, 0.0)])
        assert sums.records() == [(1, 1.5), (2, 0.0)]


def test_a_collection_is_neither_true_nor_false() -> None:
    with Session() as db:
        db.table("a", {"x": [1]})
        with pytest.raises(SessionError, match="neither true nor false"):
            db.ask(lambda t: t.a if t.a.filter(lambda x: x > 1) else t.a.distinct())
