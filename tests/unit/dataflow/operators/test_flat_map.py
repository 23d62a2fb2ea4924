"""Tests of `flat_map` and `map_batch`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from differential import Collection, example as contents
from tests.unit.dataflow.running import collected
from timely.errors import OperatorError


def repeated(x: Any) -> Any:
    rows = np.repeat(np.arange(len(x)), x)
    return rows, x[rows]


def test_a_function_of_columns_returns_rows_and_columns_of_any_length() -> None:
    assert collected(lambda scope: scope.to_stream(range(4)).flat_map(repeated)) == [1, 2, 2, 3, 3, 3]


def test_one_function_serves_streams_and_collections() -> None:
    found = contents(lambda scope: Collection.of(scope, np.arange(4)).flat_map(repeated))
    assert found == [((1,), 1), ((2,), 2), ((3,), 3)]


def test_a_function_of_records_returns_an_iterable() -> None:
    assert collected(lambda scope: scope.to_stream(["ab", "", "c"]).flat_map(iter)) == ["a", "b", "c"]


def test_a_function_may_return_no_rows() -> None:
    assert collected(lambda scope: scope.to_stream(range(4)).flat_map(lambda x: (x[:0], x[:0]))) == []


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (lambda x: x, r"must return \(rows, column, ...\)"),
        (lambda x: (x + 1, x), "outside the 4 rows of the batch"),
        (lambda x: (x > 1, x), r"\(integers\), not bool\(4,\)"),
    ],
)
def test_a_result_other_than_rows_and_columns_is_refused(made: Any, problem: str) -> None:
    with pytest.raises(OperatorError, match=problem):
        collected(lambda scope: scope.to_stream(range(4)).flat_map(made))


def test_a_batch_becomes_a_batch_of_any_length() -> None:
    assert collected(lambda scope: scope.to_stream(range(4)).map_batch(lambda x: x[1:2])) == [1]


def test_a_list_of_records_becomes_a_list() -> None:
    assert collected(lambda scope: scope.to_stream(["ab", "c"]).map_batch("".join)) == ["a", "b", "c"]
