"""What operators on collections refuse, and with which message."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from differential import Collection, Groups, Variable, example, new_upsert_input
from differential.delta import Prefixes
from timely import Scope, Worker, execute_directly, rowwise
from timely.errors import BuildError, TimelyError


def numbers(scope: Scope) -> Collection:
    return Collection.of(scope, np.array([1, 1, 2]), np.array([10, 20, 5]))


def words(scope: Scope) -> Collection:
    return Collection.of(scope, np.array([1, 2]), np.array(["a", "b"]))


def at_round(scope: Scope, inner: Collection, round: int) -> Collection:
    return numbers(scope).enter_at(inner.scope, lambda k, v: round).concat(inner).distinct()


REFUSED: list[tuple[Callable[[Scope], Collection], str]] = [
    (lambda scope: numbers(scope).explode(lambda k, v: k), r"operator 'explode'.*\(record, times\)"),
    (lambda scope: numbers(scope).explode(lambda k, v: (k, 0.5 * v)), "one integer for each of the 3 rows"),
    (lambda scope: numbers(scope).totals(lambda k, v: 0.5 * v), "one integer for each of the 3 rows"),
    (lambda scope: numbers(scope).totals(lambda k, v: np.uint64(1 << 63)), "9223372036854775808 times: that is too"),
    (lambda scope: numbers(scope).flat_map(lambda k, v: (k > 1, v)), r"of positions \(integers\), not bool\(3,\)"),
    (lambda scope: numbers(scope).flat_map(lambda k, v: ([0.0, 1.0], v[:2])), r"\(integers\), not float64\(2,\)"),
    (lambda scope: Prefixes.of(numbers(scope)).filter(lambda k, v: k).results(), "must return a boolean column"),
    (lambda scope: numbers(scope).delay(lambda time: time[0] - 1), r"from \(0,\) to \(-1,\): times may only"),
    (lambda scope: numbers(scope).delay(lambda time: (0, 0)), r"from \(0,\) to \(0, 0\)"),
    (lambda scope: numbers(scope).delay(lambda time: 2**62 + 1), r"to \(4611686018427387905,\)"),
    (lambda scope: numbers(scope).delay(lambda time: time[0] + 0.5), "must return a time, not 0.5"),
    (lambda scope: numbers(scope).window(2**62, 2), "a time of window, 0, is too large"),
    (lambda scope: numbers(scope).window(2, at=lambda k, v: np.uint64(2**63)), "9223372036854775808, is too large"),
    (lambda scope: numbers(scope).iterate(lambda inner: at_round(scope, inner, 2**61 + 1)), "from 0 to 2"),
    (lambda scope: numbers(scope).iterate(lambda inner: at_round(scope, inner, -1)), "from 0 to 2"),
    (lambda scope: numbers(scope).assert_empty(name="none"), r"'none'.*must be empty, but the count of \(1, 10\)"),
    (
        lambda scope: numbers(scope).assert_eq(numbers(scope).distinct().negate()),
        r"equal, but only in the left: \(1, 10\)",
    ),
    (lambda scope: numbers(scope).map(lambda k, v: (k, -v, v)).prefix_sum(), "an integer from 0 to 1073741823"),
    (lambda scope: numbers(scope).map(lambda k, v: (k, v, v)).prefix_sum(bits=4), "an integer from 0 to 15"),
    (
        lambda scope: numbers(scope).cogroup(words(scope), lambda groups: groups.left.index),
        "held (text|integers) and now",
    ),
    (lambda scope: numbers(scope).negate().union(numbers(scope)), "occurs a negative number of times"),
    (lambda scope: numbers(scope).reduce(lambda groups: (np.array([7]),)), "group numbers from 0 to 1 first"),
    (lambda scope: numbers(scope).reduce_each(lambda key, values: [(1, 2), (3,)]), "'reduce_each'"),
    (
        lambda scope: numbers(scope).reduce_each(lambda key, values: "abc"),
        "a list of values, not 'abc' for 1",
    ),
    (lambda scope: numbers(scope).reduce_each(lambda key, values: 5), "must return a list of values, not 5"),
    (
        lambda scope: numbers(scope).map(rowwise(lambda k, v: (k,) if v == 5 else (k, v))),
        r"\(.*\) for another",
    ),
    (
        lambda scope: numbers(scope).map(rowwise(lambda k, v: k if v == 5 else (k, v))),
        r"for one row and .* for another",
    ),
    (lambda scope: numbers(scope).window(1.5), "whole number of at least 1, not 1.5"),  # type: ignore[arg-type]
    (lambda scope: None, "must return a collection, and returned None"),  # type: ignore[arg-type, return-value]
    (lambda scope: Collection.of(scope, np.array([1, 1]), keys=0), "at least one column, so `keys` cannot be 0"),
    (lambda scope: numbers(scope).map(lambda k, v: (k, v), keys=0), "`keys` cannot be 0"),
    (lambda scope: numbers(scope).map(lambda k, v: ()), "operator 'map'.*at least one column"),
    (lambda scope: new_upsert_input(scope, keys=0)[1], "`keys` cannot be 0"),
    (lambda scope: Collection.of(scope, 1, keys=-2), "`keys` cannot be -2"),
    (lambda scope: Collection.of(scope, 1, keys=1.0), "`keys` cannot be 1.0"),  # type: ignore[arg-type]
    (lambda scope: numbers(scope).top_k(1.5), "a whole number, .* at least 1, not 1.5"),  # type: ignore[arg-type]
    (lambda scope: numbers(scope).iterate(lambda inner: None), "what the collection becomes, and returned None"),  # type: ignore[arg-type, return-value]
    (lambda scope: numbers(scope).concat(words(scope)), r"'output'.*\(1, .*\) is not like .*column 1 .*held"),
]


@pytest.mark.parametrize(("program", "message"), REFUSED)
def test_meaningless_requests_are_refused(program: Callable[[Scope], Collection], message: str) -> None:
    with pytest.raises(TimelyError, match=message):
        example(program)


def in_a_loop(scope: Scope, build: Callable[[Collection, Scope], object]) -> Collection:
    with scope.iterative() as loop:
        build(numbers(scope), loop)
    return numbers(scope)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda scope: numbers(scope).map(lambda k, v: (k, v), keys=0), "a key is of at least one column"),
        (lambda scope: new_upsert_input(scope, keys=0)[1], "a key is of at least one column"),
        (lambda scope: in_a_loop(scope, lambda _, loop: new_upsert_input(loop)), "must be totally ordered"),
        (lambda scope: by_self(numbers(scope)).totals(lambda k, v: v), "how many columns are the key"),
        (lambda scope: numbers(scope).totals(), "there is nothing to add up"),
        (lambda scope: numbers(scope).prefix_sum(bits=61), "positions of 61 bits"),
        (lambda scope: numbers(scope).iterate(3), "must be a function of a collection, not 3"),
        (lambda scope: numbers(scope).iterate(lambda inner: 5), "what the collection becomes, and returned 5"),
        (lambda scope: numbers(scope).iterate(lambda inner: inner, limit=0), "its limit cannot be 0"),
        (lambda scope: numbers(scope).leave(), r"cannot leave scope .example.: it is the outermost scope"),
        (lambda scope: numbers(scope).enter_at(scope, lambda k, v: v), "directly inside .* is not one"),
        (
            lambda scope: in_a_loop(scope, lambda one, loop: Variable(scope).set(one.enter(loop))),
            r"leave\(\) brings a collection out of its loop",
        ),
        (
            lambda scope: in_a_loop(scope, lambda one, loop: one.enter(loop).arrange_by_key().trace()),
            "an inner scope has no trace of its own",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_at_its_line(build: Callable[[Scope], Collection], message: str) -> None:
    with pytest.raises(BuildError, match=message) as refusal:
        example(build)
    assert f"at {__file__}:" in str(refusal.value)


def test_collections_of_dataflows_of_the_same_name_are_distinguished_when_they_are_combined() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("graph") as scope:
            one = numbers(scope)
        with worker.dataflow("graph") as scope:
            numbers(scope).concat(one)

    with pytest.raises(BuildError, match=r"dataflow 0 \('graph'\) cannot .* dataflow 1 \('graph'\): import its trace"):
        execute_directly(program)


def by_self(one: Collection) -> Collection:
    return one.arrange_by_self().as_collection()


@pytest.mark.parametrize(
    "program",
    [
        lambda one: by_self(one).concat(one),
        lambda one: by_self(one).cogroup(one, lambda groups: groups.left.index),
        lambda one: by_self(one).union(one),
        lambda one: by_self(one).join(one),
    ],
)
def test_the_error_names_an_index_by_whole_records(program: Callable[[Collection], Collection]) -> None:
    with pytest.raises(BuildError, match=r"key (of one collection )?is all columns, .* the first column"):
        example(lambda scope: program(numbers(scope)))


@pytest.mark.parametrize(
    "program",
    [
        lambda one: one.totals(lambda *columns: 1),
        lambda one: one.argmin(lambda *columns: columns[1]),
        lambda one: one.argmax(lambda *columns: columns[1]),
        lambda one: one.prefix_sum(),
    ],
)
def test_operators_that_need_a_key_report_a_missing_one(program: Callable[[Collection], Collection]) -> None:
    with pytest.raises(BuildError, match=r"how many columns are the key\? not all columns"):
        example(lambda scope: program(by_self(numbers(scope))))


@pytest.mark.parametrize("program", [lambda one: one.totals(), lambda one: one.prefix_sum(bits=0)])
def test_a_meaningless_program_is_refused_when_it_is_built(program: Callable[[Collection], Collection]) -> None:
    with pytest.raises(BuildError):
        example(lambda scope: program(numbers(scope)))


def test_a_reduction_may_return_any_kind_of_empty_result() -> None:
    def words_of_many(groups: Groups) -> tuple[object, object]:
        many = np.flatnonzero(np.diff(groups.offsets) > 1)
        return many.tolist(), ["many"] * len(many)

    assert example(lambda scope: words(scope).reduce(words_of_many)) == []
    assert example(lambda scope: numbers(scope).reduce(words_of_many)) == [((1, "many"), 1)]
