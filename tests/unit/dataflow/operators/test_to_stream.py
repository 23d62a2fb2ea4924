"""Tests of `to_stream`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.dataflow.running import collect, collected
from timely import Columns
from timely.dataflow.operators.to_stream import ROWS_PER_BATCH
from timely.errors import OperatorError


def test_arrays_tuples_of_arrays_ranges_and_lists_can_be_sent() -> None:
    assert collected(lambda scope: scope.to_stream(np.arange(2))) == [0, 1]
    assert collected(lambda scope: scope.to_stream((np.arange(2), np.array(["a", "b"])))) == [(0, "a"), (1, "b")]
    assert collected(lambda scope: scope.to_stream(range(4, 0, -2))) == [2, 4]
    assert collected(lambda scope: scope.to_stream([(1, "x"), (2, None)])) == [(1, "x"), (2, None)]


def test_many_rows_come_in_pieces() -> None:
    sizes = []
    collected(
        lambda scope: scope.to_stream(range(ROWS_PER_BATCH + 1)).inspect_batch(
            lambda _, batch: sizes.append(len(batch))
        )
    )
    assert sizes == [ROWS_PER_BATCH, 1]


def test_an_iterator_of_batches_is_drawn_on_one_by_one() -> None:
    batches = iter([Columns((np.arange(2),)), [7], Columns((np.arange(1),))])
    assert collect(lambda scope: scope.to_stream(batches)) == [[((0,), 0), ((0,), 0), ((0,), 1), ((0,), 7)]]


@pytest.mark.parametrize("item", [3, "text", np.arange(3), (1, 2)])
def test_an_iterator_of_anything_else_is_refused(item: Any) -> None:
    with pytest.raises(OperatorError, match=f"batches, `Columns` or lists of records: not {type(item).__name__}"):
        collected(lambda scope: scope.to_stream(iter([item])))


def test_every_worker_sends_what_it_is_given() -> None:
    assert collected(lambda scope: scope.to_stream(range(scope.index)), 3) == [0, 0, 1]


def test_nothing_is_a_stream_that_ends() -> None:
    assert collected(lambda scope: scope.to_stream(range(0))) == []
