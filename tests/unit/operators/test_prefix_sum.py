"""Tests of `prefix_sum`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from differential import Collection, example
from differential.frames import typed
from tests.oracle.grid import on_workers, run
from timely.errors import BuildError, OperatorError


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
def test_positions_may_be_integers_of_any_width(dtype: type) -> None:
    positions = np.array([0, 255], dtype)
    booked = example(lambda scope: Collection.of(scope, 7, positions, np.array([1, 2])).prefix_sum())
    assert booked == [((7, 0, 1), 1), ((7, 255, 3), 1)]


@on_workers
def test_a_change_moves_what_comes_after_it(workers: int) -> None:
    booked = [((7, 0, 100), (0,), 1), ((7, 9, 12), (0,), 1), ((7, 5, -30), (1,), 1), ((8, 3, 1), (1,), 1)]
    assert run(lambda one: one.prefix_sum(bits=4), booked, workers=workers) == [
        ((7, 0, 100), (0,), 1),
        ((7, 9, 112), (0,), 1),
        ((7, 5, 70), (1,), 1),
        ((7, 9, 82), (1,), 1),
        ((7, 9, 112), (1,), -1),
        ((8, 3, 1), (1,), 1),
    ]


@on_workers
def test_a_position_exists_as_long_as_it_has_a_record(workers: int) -> None:
    booked = [((7, 2, 5), (0,), 2), ((7, 2, 5), (1,), -1), ((7, 2, -5), (2,), 1), ((7, 2, 5), (3,), -1)]
    booked += [((7, 2, -5), (4,), -1)]
    assert run(lambda one: one.prefix_sum(bits=2), booked, workers=workers) == [
        ((7, 2, 10), (0,), 1),
        ((7, 2, 5), (1,), 1),
        ((7, 2, 10), (1,), -1),
        ((7, 2, 0), (2,), 1),
        ((7, 2, 5), (2,), -1),
        ((7, 2, -5), (3,), 1),
        ((7, 2, 0), (3,), -1),
        ((7, 2, -5), (4,), -1),
    ]


@pytest.mark.composed
@pytest.mark.parametrize(("width", "keys"), [(1, 1), (2, 1), (4, 1), (3, 2)])
def test_records_of_other_widths_are_refused(width: int, keys: int) -> None:
    message = rf"'prefix_sum' failed .* a record has {keys + 2} columns \(key, position, value\), not {width}$"
    with pytest.raises(OperatorError, match=message):
        example(lambda scope: Collection.of(scope, *[np.array([1, 2])] * width, keys=keys).prefix_sum())


@pytest.mark.composed
def test_a_value_that_is_not_an_integer_is_refused() -> None:
    with pytest.raises(OperatorError, match=r"'prefix_sum' failed .* values must be one integer .* not float64"):
        example(lambda scope: Collection.of(scope, 7, 1, 1.5).prefix_sum())
    with pytest.raises(OperatorError, match=r"'prefix_sum' failed .* row 1 of a column of int64\? is a null"):
        example(lambda scope: Collection.of(scope, 7, [1, 2], typed([3, None], "int64?")).prefix_sum())


def test_values_may_be_of_a_type_that_has_nulls() -> None:
    records = example(lambda scope: Collection.of(scope, 7, [1, 2], typed([3, 4], "int64?")).prefix_sum())
    assert records == [((7, 1, 3), 1), ((7, 2, 7), 1)]


@pytest.mark.parametrize("bits", ["3", 2.5, None, True, 0, -1, 61])
def test_a_number_of_bits_is_a_whole_number_of_1_to_60(bits: Any) -> None:
    with pytest.raises(BuildError, match=r"^prefix_sum(:| \(at .*test_prefix_sum.py:\d+\):) .*1"):
        example(lambda scope: Collection.of(scope, 7, 0, 1).prefix_sum(bits=bits))


def test_a_number_of_bits_may_be_a_short_integer_of_numpy() -> None:
    booked = example(lambda scope: Collection.of(scope, 7, 1 << 39, 1).prefix_sum(bits=np.int8(40)))  # type: ignore[arg-type]
    assert booked == [((7, 1 << 39, 1), 1)]
