"""A record for which a function fails is a reject as long as it is there."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection, Session, example
from differential.operators.attempt import outcomes
from differential.session.row import has_columns_as_parameters
from timely.errors import DataError, OperatorError

ERROR = "integer division or modulo by zero"


def inverse(numbers: Any) -> Any:
    return [12 // number for number in numbers.tolist()]


@given(st.lists(st.tuples(st.integers(-2, 2), st.sampled_from([1, 1, -1])), max_size=12), st.integers(1, 2))
@settings(max_examples=15, deadline=None)
def test_results_and_rejects_follow_the_records(changes: list[tuple[int, int]], workers: int) -> None:
    there: Counter[int] = Counter()
    with Session(workers) as db:
        numbers = db.table("numbers", {"x": int})
        good = db.view("good", lambda t: t.numbers.attempt(inverse).results)
        bad = db.view("bad", lambda t: t.numbers.attempt(inverse).rejects)
        for number, change in changes:
            if change > 0:
                numbers.insert(x=[number, 0])
                there.update([number, 0])
            elif there[number]:
                numbers.delete(x=number)
                there[number] -= 1
            db.commit()
            assert Counter(good.records()) == Counter((12 // each,) for each in there.elements() if each)
            assert len(bad) == there[0]
            assert {row[:2] for row in bad.records()} <= {("0", f"ZeroDivisionError: {ERROR}")}
            assert all(
                row[2].endswith(f"test_attempt.py:{inverse.__code__.co_firstlineno + 1}") for row in bad.records()
            )


def test_a_batch_without_errors_is_one_call_and_one_with_an_error_is_halved() -> None:
    lengths = []

    def function(numbers: Any) -> Any:
        lengths.append(len(numbers))
        return inverse(numbers)

    assert [each.rows.tolist() for each in outcomes(function, (np.arange(1, 9),))] == [list(range(8))]
    assert lengths == [8]
    found = list(outcomes(function, (np.array([1, 1, 1, 0, 1, 1, 1, 1]),)))
    assert [each.rows.tolist() for each in found] == [[0, 1], [2], [3], [4, 5, 6, 7]]
    assert [type(each.error) for each in found] == [type(None), type(None), ZeroDivisionError, type(None)]
    assert lengths == [8, 8, 4, 4, 2, 2, 1, 1]


def halved(numbers: list[int], calls: list[list[int]]) -> None:
    """Add the rows of each call that halves would take to find the rows that fail, which are those of zeros."""

    def attempt(rows: list[int]) -> None:
        calls.append(rows)
        if len(rows) > 1 and not all(numbers[row] for row in rows):
            attempt(rows[: len(rows) // 2])
            attempt(rows[len(rows) // 2 :])

    attempt(list(range(len(numbers))))


@given(st.lists(st.integers(0, 1), min_size=1, max_size=200) | st.lists(st.integers(0, 9), min_size=50, max_size=200))
@settings(deadline=None)
def test_no_row_is_tried_more_often_than_by_halves(numbers: list[int]) -> None:
    by_halves: list[list[int]] = []
    halved(numbers, by_halves)
    calls: list[list[int]] = []

    def function(numbers: Any, rows: Any) -> Any:
        calls.append(rows.tolist())
        return inverse(numbers)

    found = list(outcomes(function, (np.array(numbers), np.arange(len(numbers)))))
    assert [row for each in found for row in each.rows.tolist()] == list(range(len(numbers)))
    assert [each.rows.tolist() for each in found if each.error] == [[at] for at, x in enumerate(numbers) if not x]
    assert {str(each.error) for each in found if each.error} <= {ERROR}
    results = [made for each in found if each.columns for made in each.columns[0].tolist()]
    assert results == [12 // number for number in numbers if number]
    tries, most = (Counter(row for call in each for row in call) for each in (calls, by_halves))
    assert all(tries[row] <= most[row] for row in most)


def test_rows_that_all_fail_cost_less_than_one_and_a_half_calls_each_and_no_notes() -> None:
    lengths = []

    def function(numbers: Any) -> Any:
        lengths.append(len(numbers))
        return inverse(numbers)

    found = list(outcomes(function, (np.zeros(1000, np.int64),)))
    assert [each.rows.tolist() for each in found] == [[row] for row in range(1000)]
    assert lengths.count(1) == 1000
    assert len(lengths) < 1500
    words = list(outcomes(lambda texts: [int(text) for text in texts.tolist()], (np.array(["x", "y"]),)))
    assert [(str(each.error), hasattr(each.error, "__notes__")) for each in words] == [
        ("invalid literal for int() with base 10: 'x'", False),
        ("invalid literal for int() with base 10: 'y'", False),
    ]


def test_an_algorithm_of_other_columns_fails_with_their_names_for_each_row() -> None:
    found = list(outcomes(has_columns_as_parameters, (np.arange(3),)))
    assert [type(each.error) for each in found] == [DataError] * 3
    text = "this takes records of the columns function, names, and received 1 column(s): int64[1]; "
    assert {str(each.error)[: len(text)] for each in found} == {text}


def test_a_batch_that_fails_as_a_whole_leaves_nothing_whatever_the_columns_of_the_others() -> None:
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        pairs = db.view("pairs", lambda t: t.numbers.attempt(lambda x: (x, inverse(x), x), keys=2).results.count())
        for x, expected in (0, []), (3, [(3, 4, 1)]), (0, [(3, 4, 1)]):
            numbers.insert(x=x)
            db.commit()
            assert pairs.records() == expected


def test_the_function_runs_once_though_both_results_and_rejects_are_read() -> None:
    lengths = []

    def function(numbers: Any) -> Any:
        lengths.append(len(numbers))
        return inverse(numbers)

    def definition(tables: Any) -> Any:
        tried = tables.numbers.attempt(function)
        assert tried.results.keys == tried.rejects.keys == 1
        texts = tried.results.map(lambda x: np.array(x.tolist(), np.int64).astype(np.dtypes.StringDType()))
        return texts.concat(tried.rejects.map(lambda record, error, line: record)).concat(
            tried.rejects.select("record")
        )

    with Session() as db:
        numbers = db.table("numbers", {"x": [3, 4]})
        db.commit()
        both = db.view("both", definition)
        assert (lengths, both.records()) == ([2], [("3",), ("4",)])
        numbers.insert(x=0)
        db.commit()
        assert (lengths, both.records()) == ([2, 1], [("0",), ("0",), ("3",), ("4",)])


def quotient(of_three: Any) -> Any:
    """Return a function of columns that fails at 0, and whose result at 3 is given."""
    return lambda numbers: [of_three if number == 3 else 12 // number for number in numbers.tolist()]


@pytest.mark.parametrize(
    ("of_three", "words"),
    [
        ("a", "cannot make a column of .*, all of one kind"),
        (b"a", "cannot make a column of .*, all of one kind"),
        (dt.date(2026, 1, 1), "a column of date beside one of int64: convert one"),
    ],
    ids=repr,
)
def test_results_of_several_kinds_are_refused(of_three: Any, words: str) -> None:
    for numbers in [3, 0, 5, 2], [5, 0, 3], [0, 1, 0, 3, 0]:
        with pytest.raises(OperatorError, match=rf"'attempt' failed .* DataError: {words}"):
            example(lambda scope, given=numbers: Collection.of(scope, given).attempt(quotient(of_three)).results)  # type: ignore[misc]


@pytest.mark.parametrize("of_three", [0.5, True, 1 << 40], ids=repr)
def test_results_of_several_types_of_numbers_are_those_of_one_column(of_three: Any) -> None:
    found = example(lambda scope: Collection.of(scope, [3, 0, 5, 2]).attempt(quotient(of_three)).results)
    assert found == sorted([((of_three,), 1), ((2,), 1), ((6,), 1)])


def test_results_of_several_widths_are_refused() -> None:
    def function(numbers: Any) -> Any:
        found = [12 // number for number in numbers.tolist()]
        return (found, found) if numbers[0] == 3 else found

    with pytest.raises(OperatorError, match=r"DataError: .* 1 column\(s\) .* 2 "):
        example(lambda scope: Collection.of(scope, [3, 0, 5, 2]).attempt(function).results)


def test_an_error_may_name_a_file_whose_name_is_not_text() -> None:
    def opened(names: Any) -> Any:
        raise ValueError(f"{names[0]}\udcff cannot be opened")

    rejects = example(lambda scope: Collection.of(scope, np.array(["a"])).attempt(opened).rejects)
    assert [record[:2] for record, _ in rejects] == [("a", r"ValueError: a\udcff cannot be opened")]
