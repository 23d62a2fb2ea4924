"""Tests of `partition`, `branch`, `branch_when` and `ok_err`: parts are disjoint and complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.unit.dataflow.running import collected, on_workers
from timely import Scope, Stream, TimelyError, Worker, example, execute_directly, new_input
from timely.errors import OperatorError


def parts_of(data: Any, parts: int) -> list[list[Any]]:
    """Return what is on each part of `data`, divided by remainder."""
    found: list[list[Any]] = [[] for _ in range(parts)]

    def program(scope: Scope) -> Stream:
        stream = scope.to_stream(data)
        for part, records in zip(stream.partition(parts, lambda x: x % parts), found):
            part.inspect(records.append)
        return stream

    example(program)
    return found


@given(st.lists(st.integers(0, 100), max_size=20), st.integers(1, 4), st.booleans())
def test_each_record_is_on_the_part_it_is_routed_to(numbers: list[int], parts: int, as_column: bool) -> None:
    data = np.array(numbers, np.int64) if as_column else numbers
    assert parts_of(data, parts) == [[x for x in numbers if x % parts == part] for part in range(parts)]


def test_a_route_out_of_range_is_refused() -> None:
    with pytest.raises(TimelyError, match="integers from 0 to 1"):
        example(lambda scope: scope.to_stream(range(3)).partition(2, lambda x: x)[0])


def test_a_route_that_returns_other_values_than_integers_is_refused() -> None:
    for data in (range(3), [0, 1, 2]):
        with pytest.raises(TimelyError, match="integers from 0 to 1"):
            example(lambda scope, data=data: scope.to_stream(data).partition(2, lambda x: None)[0])


def test_records_of_lists_are_branched_by_their_truth_in_python() -> None:
    words = ["a", "", "b"]
    assert example(lambda scope: scope.to_stream(words).branch(lambda word: word)[1]) == ["a", "b"]
    assert example(lambda scope: scope.to_stream(words).branch(lambda word: word)[0]) == [""]


def test_a_predicate_that_returns_no_booleans_for_columns_is_refused() -> None:
    with pytest.raises(TimelyError, match="a predicate must return a boolean column of length 3, got dtype int64"):
        example(lambda scope: scope.to_stream(range(3)).branch(lambda x: x)[0])


@on_workers
def test_both_branches_together_are_the_stream(workers: int) -> None:
    def program(scope: Scope) -> Stream:
        low, high = scope.to_stream(range(10)).branch(lambda x: x > 6)
        return low.map(lambda x: (x, False)).concat(high.map(lambda x: (x, True)))

    assert collected(program, workers) == sorted([(x, x > 6) for x in range(10)] * workers)


def test_branch_when_separates_records_by_time() -> None:
    found: dict[bool, list[int]] = {False: [], True: []}

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            early, late = stream.branch_when(lambda time: time >= (2,))
            early.inspect(found[False].append)
            late.inspect(found[True].append)
        for epoch in range(4):
            numbers.advance_to(epoch)
            numbers.send(epoch)

    execute_directly(program)
    assert found == {False: [0, 1], True: [2, 3]}


@pytest.mark.parametrize("function", [lambda x: x > 1, lambda x: (x > 1, x)])
def test_results_without_errors_are_refused(function: Any) -> None:
    with pytest.raises(TimelyError, match="ok_err: the function must return"):
        example(lambda scope: scope.to_stream(range(3)).ok_err(function)[0])


@pytest.mark.parametrize("function", [lambda x: True, lambda x: (True, x, x)])
def test_results_of_a_record_without_errors_are_refused(function: Any) -> None:
    with pytest.raises(TimelyError, match=r"ok_err: the function must return \(whether it went well, result\), not"):
        example(lambda scope: scope.to_stream(["a", "b"]).ok_err(function)[0])


def test_records_of_lists_are_results_or_errors() -> None:
    def parse(text: str) -> tuple[bool, Any]:
        return (True, int(text)) if text.isdigit() else (False, f"not a number: {text}")

    assert example(lambda scope: scope.to_stream(["1", "x"]).ok_err(parse)[0]) == [1]
    assert example(lambda scope: scope.to_stream(["1", "x"]).ok_err(parse)[1]) == ["not a number: x"]


@pytest.mark.parametrize("records", [np.arange(2), [0, 1]])
def test_a_route_must_return_a_number_for_each_record(records: Any) -> None:
    routes: list[Callable[..., Any]] = [lambda number: np.zeros(1, np.int64), lambda number: np.zeros((1, 2), np.int64)]
    for route in routes:
        with pytest.raises(OperatorError, match=r"an integer for each of 2 record\(s\), .* not an array of shape"):
            example(lambda scope, route=route: scope.to_stream(records).partition(2, route)[0])
    assert example(lambda scope: scope.to_stream(records).partition(2, lambda number: 1)[1]) == [0, 1]
