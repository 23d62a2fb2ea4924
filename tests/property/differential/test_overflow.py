"""Whatever does not fit into 64 bits is refused; everything else is as with Python's integers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from differential import Collection, example, new_input
from differential.delta import CollectionIndex, Prefixes, extend
from timely import execute_directly
from timely.errors import OperatorError

Records = Counter[tuple[int, int]]
Update = tuple[int, int, int]

LEAST, LARGEST = -(1 << 63), (1 << 63) - 1
numbers = st.sampled_from([1, -1, 2, 3, 1 << 31, -(1 << 31), 1 << 40, 1 << 62, -(1 << 62), LARGEST, LEAST])
updates = st.lists(st.tuples(st.integers(0, 1), numbers, numbers), max_size=5)


def by_key(function: Callable[[Records], Any]) -> Callable[[Records], Counter[Any]]:
    """Return the meaning of a reduction, which is `None` for a group without output."""

    def meaning(records: Records) -> Counter[Any]:
        groups: dict[int, Records] = defaultdict(Counter)
        for (key, value), count in records.items():
            if count:
                groups[key][key, value] = count
        results = {key: function(group) for key, group in groups.items()}
        return Counter((key, result) for key, result in results.items() if result is not None)

    return meaning


def joined(records: Records) -> Counter[Any]:
    result: Counter[Any] = Counter()
    for (key, left), count in records.items():
        for (other, right), times in records.items():
            if key == other:
                result[key, left, right] += count * times
    return result


def half_joined(one: Collection) -> Collection:
    return Prefixes.of(one).half_join(one.arrange_by_key(), lambda key, left, right: (key, left, right)).results()


def extended(one: Collection) -> Collection:
    relation = CollectionIndex(one)
    return extend(Prefixes.of(one), [relation.extension(0)]).results()


OPERATORS: dict[str, tuple[Callable[[Collection], Collection], Callable[[Records], Counter[Any]], bool]] = {
    "records": (lambda one: one.map(lambda key, value: (key, value)).consolidate(), Counter, False),
    "sum": (
        Collection.sum,
        by_key(lambda group: sum(value * count for (_, value), count in group.items())),
        False,
    ),
    "count": (lambda one: one.count(signed=True), by_key(lambda group: group.total() or None), False),
    "totals": (
        lambda one: one.totals(lambda key, value: value),
        by_key(lambda group: sum(value * count for (_, value), count in group.items()) or None),
        False,
    ),
    "distinct": (Collection.distinct, lambda records: Counter(dict.fromkeys(+records, 1)), True),
    "max": (Collection.max, by_key(lambda group: max(value for _, value in group)), True),
    "threshold": (lambda one: one.threshold(lambda count: count), Counter, True),
    "join": (lambda one: one.join(one), joined, False),
    "half_join": (half_joined, joined, False),
    "extend": (extended, joined, False),
    "negate": (Collection.negate, lambda records: Counter({each: -count for each, count in records.items()}), False),
    "explode": (
        lambda one: one.explode(lambda key, value: ((key, value), value)),
        lambda records: Counter({(key, value): value * count for (key, value), count in records.items()}),
        False,
    ),
}


def run(build: Callable[[Collection], Collection], epochs: list[list[Update]], in_a_loop: bool) -> Counter[Any]:
    def program(worker: Any) -> Any:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            if in_a_loop:
                with scope.iterative() as inner:
                    result = build(collection.enter(inner)).leave().output(signed=True)
            else:
                result = build(collection).output(signed=True)
        for number, changes in enumerate(epochs):
            for key, value, diff in changes:
                session.update(key, value, diff=diff)
            session.advance_to(number + 1)
            worker.step_while(lambda number=number: result.less_than(number + 1))
        session.close()
        worker.step_while(lambda: not result.done())
        return result.contents()

    return Counter(execute_directly(program))


def run_or_refused(
    build: Callable[[Collection], Collection], epochs: list[list[Update]], in_a_loop: bool
) -> Counter[Any] | None:
    """Return the result of `run`, or None if something does not fit into 64 bits."""
    try:
        return run(build, epochs, in_a_loop)
    except OperatorError as error:
        if "64 bits" not in str(error):
            raise
        return None


def accumulated(epochs: list[list[Update]]) -> Records:
    total: Records = Counter()
    for changes in epochs:
        for key, value, diff in changes:
            total[key, value] += diff
    return Counter({record: count for record, count in total.items() if count})


def is_small(epochs: list[list[Update]]) -> bool:
    """Whether no intermediate result can be too large, in whatever order terms are added and multiplied."""
    times = sum(abs(diff) for changes in epochs for _, _, diff in changes)
    sums = sum(abs(diff * value) for changes in epochs for _, value, diff in changes)
    return times * times < 1 << 62 and sums < 1 << 62


@pytest.mark.parametrize("in_a_loop", [False, True])
@pytest.mark.parametrize("name", OPERATORS)
@given(data=st.data())
def test_an_answer_is_right_or_refused(name: str, in_a_loop: bool, data: st.DataObject) -> None:
    build, meaning, is_positive = OPERATORS[name]
    epochs = data.draw(st.lists(updates, min_size=1, max_size=3))
    if is_positive:
        epochs = [[(key, value, abs(diff) or 1) for key, value, diff in changes if diff != LEAST] for changes in epochs]
    if name in ("half_join", "extend"):  # answers a change by what was there before it
        epochs = [[change for changes in epochs for change in changes]]
    expected = meaning(accumulated(epochs))
    if is_small(epochs):
        found: Counter[Any] | None = run(build, epochs, in_a_loop)
    else:
        found = run_or_refused(build, epochs, in_a_loop)
    assert found in (None, Counter({record: count for record, count in expected.items() if count}))


def test_the_operator_the_record_and_the_time_are_named() -> None:
    half = 1 << 62
    with pytest.raises(OperatorError, match=r"'sum' failed at time \(1,\).*what the values of 7 add up to"):
        run(Collection.sum, [[(7, half, 1)], [(7, half + 1, 1)]], False)
    with pytest.raises(OperatorError, match=r"at time \(0,\).*how often \(7, 8\) occurs does not fit into 64 bits"):
        run(Collection.distinct, [[(7, 8, half)] * 4], False)
    with pytest.raises(OperatorError, match=r"'join' failed at time \(0,\).*how often \(7, 8, 8\) occurs"):
        run(lambda one: one.join(one), [[(7, 8, half)]], False)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (Collection.count, "how often 7 occurs"),
        (lambda one: one.count(signed=True), "how often 7 occurs"),
        (Collection.distinct, r"how often \(7, 8\) occurs"),
        (lambda one: one.threshold(lambda count: count), r"how often \(7, 8\) occurs"),
        (lambda one: one.reduce(lambda groups: (np.arange(len(groups)), groups.keys[0])), r"how often \(7, 8\) occurs"),
        (lambda one: one.union(one), r"how often \(7, 8\) occurs"),
        (lambda one: one.totals(lambda key, value: 1), "what the values of 7 add up to"),
    ],
)
def test_the_time_is_that_at_which_a_count_is_too_large(build: Any, message: str) -> None:
    half = 1 << 62

    def program(worker: Any) -> None:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            result = build(collection).output(signed=True)
        for epoch, (key, value, diff) in enumerate([(6, 6, 1), (7, 8, half), (7, 8, half), (5, 5, 1)]):
            session.advance_to(epoch)
            session.update(key, value, diff=diff)
        session.close()
        worker.step_while(lambda: not result.done())  # so one batch has all epochs

    with pytest.raises(OperatorError, match=rf"failed at time \(2,\).*{message}"):
        execute_directly(program)


@pytest.mark.parametrize("rows", [1, 300])
@pytest.mark.parametrize("in_a_loop", [False, True])
@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in ("negate", "explode", "totals")])
def test_the_time_is_named_though_a_batch_has_several_epochs(name: str, in_a_loop: bool, rows: int) -> None:
    build, half = OPERATORS[name][0], 1 << 62
    message = at_once(lambda one, _: build(one), in_a_loop, rows, {3: [(7, 1, half), (7, 1, half)]}, {})
    inside = in_a_loop and name in ("records", "threshold")  # which index the collection in the loop, by whole records
    assert f"failed at time {(3, 0) if inside else (3,)}" in message
    assert "how often (7, 1) occurs does not fit into 64 bits" in message


@pytest.mark.parametrize("rows", [1, 300])
@pytest.mark.parametrize("in_a_loop", [False, True])
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (Collection.join, "(7, 1, 2)"),
        (lambda one, two: one.join_map(two, lambda key, left, right: left), "(7, 1, 2)"),
        (lambda one, two: one.semijoin(two.map(lambda key, _: key)), "(7, 1)"),
        (
            lambda one, two: (
                Prefixes.of(one).half_join(two.arrange_by_key(), lambda key, left, right: (key, left, right)).results()
            ),
            "(7, 1, 2)",
        ),
        (lambda one, two: extend(Prefixes.of(one), [CollectionIndex(two).extension(0)]).results(), "(7, 1, 2)"),
        (
            lambda one, two: extend(
                Prefixes.of(one), [CollectionIndex(two).extension(0), CollectionIndex(two).extension(0)]
            ).results(),
            "(7, 1",
        ),
        (lambda one, two: two.consolidate().explode(lambda key, value: (key, value << 40)), "(7, 2)"),
    ],
)
def test_a_product_is_named_with_its_time_though_a_batch_has_several_epochs(
    build: Callable[[Collection, Collection], Collection], message: str, in_a_loop: bool, rows: int
) -> None:
    large = 1 << 40
    left, right = {2: [(7, 1, large)], 3: [(7, 1, 1)]}, {3: [(7, 2, large)], 4: [(7, 2, 1)]}
    found = at_once(build, in_a_loop, rows, left, right)
    assert f"failed at time {(3, 0) if in_a_loop else (3,)}" in found
    assert f"how often {message}" in found
    assert "occurs does not fit into 64 bits" in found


def at_once(
    build: Callable[[Collection, Collection], Collection],
    in_a_loop: bool,
    rows: int,
    left: dict[int, list[Update]],
    right: dict[int, list[Update]],
) -> str:
    """Return the error when the updates of epochs, and as many `rows` in each, arrive in two collections at once."""

    def program(worker: Any) -> None:
        with worker.dataflow() as scope:
            sessions, collections = zip(*(new_input(scope) for _ in range(2)))
            if in_a_loop:
                with scope.iterative() as inner:
                    result = build(*(each.enter(inner) for each in collections)).leave().output(signed=True)
            else:
                result = build(*collections).output(signed=True)
        for session, changes in zip(sessions, (left, right)):
            for epoch in range(6):
                session.advance_to(epoch)
                session.insert(np.arange(10, 10 + rows), np.full(rows, epoch))
                for key, value, diff in changes.get(epoch, ()):
                    session.update(key, value, diff=diff)
            session.close()
        worker.step_while(lambda: not result.done())

    with pytest.raises(OperatorError) as caught:
        execute_directly(program)
    return str(caught.value)


@pytest.mark.parametrize("name", ["union", "intersect", "except_", "symmetric_difference", "cogroup"])
def test_what_combines_two_collections_names_the_record_and_not_a_sum(name: str) -> None:
    def build(one: Collection) -> Collection:
        if name == "cogroup":
            return one.cogroup(one, lambda groups: (np.arange(len(groups)), np.arange(len(groups))))
        combined: Collection = getattr(one, name)(one)
        return combined

    with pytest.raises(OperatorError, match=r"how often \(7, 8\) occurs does not fit into 64 bits"):
        run(build, [[(7, 8, 1 << 62)] * 2], False)


def test_a_product_that_is_part_of_a_total_is_named_as_one() -> None:
    with pytest.raises(OperatorError, match=r"'totals' failed .* what the values of 7 add up to does not fit"):
        run(lambda one: one.totals(lambda key, value: value), [[(7, 1 << 62, 2)]], False)


@pytest.mark.parametrize("positions", [(0, 0), (0, 1), (1, 2)])
def test_a_running_total_that_is_too_large_is_named_by_what_the_program_knows(positions: tuple[int, int]) -> None:
    half = 1 << 62
    with pytest.raises(OperatorError, match=r"what the values of (7|\(7, 2\)) add up to does not fit"):
        example(lambda scope: Collection.of(scope, np.array([7, 7]), np.array(positions), half).prefix_sum())


def test_counts_of_equal_records_that_overflow_are_refused() -> None:
    rows = 1000

    def program(worker: Any) -> Any:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            result = collection.consolidate().output(signed=True)
        session.update(np.arange(rows) % 10, diff=np.full(rows, 1 << 57))
        session.close()
        worker.step_while(lambda: not result.done())

    with pytest.raises(OperatorError, match=r"how often \d occurs does not fit into 64 bits"):
        execute_directly(program)


def test_only_the_final_sum_has_to_fit() -> None:
    half = 1 << 62
    changes = [(7, half, 1), (7, half + 1, 1), (7, -half, 1), (7, half - 2, 1), (7, -half - 1, 1)]
    assert run(Collection.sum, [changes], False) == {(7, half - 2): 1}
