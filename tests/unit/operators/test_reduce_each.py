"""Tests of `reduce_each`."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from differential import Collection, example
from tests.oracle.grid import on_workers, run
from timely.errors import OperatorError
from timely.lowlevel import typed

UPDATES = [((1, "c"), (0,), 2), ((1, "a"), (0,), 1), ((2, "b"), (1,), 1), ((1, "a"), (2,), -1), ((1, "c"), (3,), -2)]


@on_workers
def test_a_function_receives_a_key_and_its_values_in_order(workers: int) -> None:
    given: list[Any] = []

    def look(key: int, values: list[tuple[str, int]]) -> list[str]:
        given.append((key, values))
        return ["".join(value * count for value, count in values)]

    assert run(lambda one: one.reduce_each(look), UPDATES, workers=workers) == [
        ((1, "acc"), (0,), 1),
        ((2, "b"), (1,), 1),
        ((1, "acc"), (2,), -1),
        ((1, "cc"), (2,), 1),
        ((1, "cc"), (3,), -1),
    ]
    assert (1, [("a", 1), ("c", 2)]) in given
    assert all(values for _, values in given)


@on_workers
def test_keys_and_values_of_several_columns_are_tuples(workers: int) -> None:
    def program(one: Collection) -> Collection:
        pairs = one.map(lambda key, value: (key, value, key + 10, value), keys=2)
        return pairs.reduce_each(lambda key, values: [(*key, *value) for value, _ in values])

    assert run(program, UPDATES[2:3], workers=workers) == [((2, "b", 2, "b", 12, "b"), (1,), 1)]


@on_workers
def test_a_key_may_have_no_results(workers: int) -> None:
    changes = run(lambda one: one.reduce_each(lambda key, values: [] if key == 1 else [key]), UPDATES, workers=workers)
    assert changes == [((2, 2), (1,), 1)]


VALUES: list[tuple[Any, list[Any]]] = [
    (np.array([2.0, np.nan, -1.0, np.inf, -np.inf]), [-np.inf, -1.0, 2.0, np.inf, np.nan]),
    (typed([2, None, 1], "int64?"), [1, 2, None]),
    (typed([2.0, None, np.nan, 1.0], "float64?"), [1.0, 2.0, np.nan, None]),
    (typed(["b", None, "a"], "text?"), ["a", "b", None]),
    (typed([Decimal("2.00"), None, Decimal("-10.00")], "decimal(18, 2)"), [Decimal("-10.00"), Decimal("2.00"), None]),
    (typed([dt.date(2026, 1, 1), None, dt.date(1960, 1, 1)], "date"), [dt.date(1960, 1, 1), dt.date(2026, 1, 1), None]),
]


@pytest.mark.parametrize(("column", "expected"), VALUES, ids=repr)
def test_values_are_in_the_order_of_their_type(column: Any, expected: list[Any]) -> None:
    number = len(column)
    given: dict[int, list[tuple[Any, int]]] = {}

    def look(key: int, values: list[tuple[Any, int]]) -> list[int]:
        given[key] = values
        return []

    for order in (np.arange(number), np.arange(number)[::-1]):
        for second in (False, True):
            keys, values = np.repeat([1, 2], number), column[np.tile(order, 2)]
            columns = (keys, np.full(2 * number, 7), values) if second else (keys, values)
            given.clear()
            example(lambda scope, columns=columns: Collection.of(scope, *columns).reduce_each(look))  # type: ignore[misc]
            wanted = [((7, value) if second else value, 1) for value in expected]
            assert {key: repr(values) for key, values in given.items()} == dict.fromkeys([1, 2], repr(wanted))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([(1, 2), (3,)], r"\(1, 2\) as one value and \(3,\) as another"),
        ([(1, 2), 3], r"\(1, 2\) as one value and 3 as another"),
        ([(1, 2), "ab"], r"\(1, 2\) as one value and 'ab' as another"),
        ([(1, 2), None], r"\(1, 2\) as one value and None as another"),
        ([3, (1, 2)], r"cannot make a column of \(1, 2\) .*; return values of one kind"),
        ([3, None], r"cannot make a column of None .*; return values of one kind"),
        ([3, 2.5], r"returned 3 as one value and 2.5 as another: return numbers of one kind"),
        ([True, 2], r"returned True as one value and 2 as another: return numbers of one kind"),
    ],
    ids=repr,
)
def test_values_of_several_kinds_are_refused(found: list[Any], words: str) -> None:
    with pytest.raises(OperatorError, match=rf"'reduce_each' failed .* DataError: .*{words}"):
        example(lambda scope: Collection.of(scope, 1, 2).reduce_each(lambda key, values: found))


def test_a_value_that_looks_like_the_end_of_an_error_is_shown_whole() -> None:
    found = "a; b: a column holds c"
    with pytest.raises(OperatorError, match=rf"not a column: cannot make .* of '{found}' \(str\) at row 1, .*; return"):
        run(lambda one: one.reduce_each(lambda key, values: [3, found]), [((1, 2), (0,), 1)])
