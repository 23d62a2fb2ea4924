"""Tests of `flat_map`."""

from __future__ import annotations

import numpy as np

from tests.unit.dataflow.running import collected


def test_a_function_of_columns_returns_columns_of_any_length() -> None:
    assert collected(lambda scope: scope.to_stream(range(4)).flat_map(lambda x: np.repeat(x, x))) == [1, 2, 2, 3, 3, 3]


def test_a_function_of_records_returns_an_iterable() -> None:
    assert collected(lambda scope: scope.to_stream(["ab", "", "c"]).flat_map(iter)) == ["a", "b", "c"]


def test_nothing_may_come_of_it() -> None:
    assert collected(lambda scope: scope.to_stream(range(4)).flat_map(lambda x: x[:0])) == []
