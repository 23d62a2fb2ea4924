"""Tests of `map`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.dataflow.running import collect, collected
from timely import TimelyError


def test_a_function_of_columns_is_called_once_a_batch() -> None:
    calls = []

    def double(numbers: np.ndarray) -> np.ndarray:
        calls.append(len(numbers))
        return 2 * numbers

    assert collected(lambda scope: scope.to_stream(range(5)).map(double)) == [0, 2, 4, 6, 8]
    assert calls == [5]


def test_a_scalar_stands_for_a_column() -> None:
    assert collected(lambda scope: scope.to_stream(range(2)).map(lambda x: (x, 7))) == [(0, 7), (1, 7)]


def test_a_function_of_records_is_called_for_each_record_of_a_list() -> None:
    assert collected(lambda scope: scope.to_stream(["a", "bc"]).map(len)) == [1, 2]


def test_map_does_not_change_times() -> None:
    assert collect(lambda scope: scope.to_stream(range(1)).map(lambda x: x + 1)) == [[((0,), 1)]]


def test_a_column_of_another_length_is_refused_and_names_the_operator() -> None:
    with pytest.raises(TimelyError, match=r"operator 'shorten' failed at time \(0,\).*same length"):
        collected(lambda scope: scope.to_stream(range(5)).map(lambda x: x[1:], name="shorten"))
