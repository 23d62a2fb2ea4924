"""Tests of `to_stream`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

from tests.unit.dataflow.running import collect, collected
from timely import Columns, Scope, Stream, Worker, execute_directly
from timely.dataflow.operators.to_stream import ROWS_PER_BATCH
from timely.errors import DataError, OperatorError


def test_arrays_tuples_of_arrays_ranges_and_lists_can_be_sent() -> None:
    assert collected(lambda scope: scope.to_stream(np.arange(2))) == [0, 1]
    assert collected(lambda scope: scope.to_stream((np.arange(2), np.array(["a", "b"])))) == [(0, "a"), (1, "b")]
    assert collected(lambda scope: scope.to_stream(range(4, 0, -2))) == [2, 4]
    assert collected(lambda scope: scope.to_stream([(1, "x"), (2, None)])) == [(1, "x"), (2, None)]


def test_many_rows_are_sent_in_pieces() -> None:
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


def test_every_worker_sends_its_own_records() -> None:
    assert collected(lambda scope: scope.to_stream(range(scope.index)), 3) == [0, 0, 1]


def test_an_empty_stream_ends() -> None:
    assert collected(lambda scope: scope.to_stream(range(0))) == []


@pytest.mark.parametrize(
    "numbers",
    [
        range(2**63, 2**63 + 3),
        range(2**63 + 2, 2**63 - 1, -1),
        range(2**63 - 3, 2**63),
        range(-(2**63), -(2**63) + 2),
        range(0, 9, 2**70),
        range(2**70, 0),
    ],
)
def test_large_integers_of_a_range_are_not_rounded(numbers: range) -> None:
    assert collected(lambda scope: scope.to_stream(numbers)) == sorted(numbers)


def test_integers_of_a_range_beyond_64_bits_are_refused() -> None:
    with pytest.raises(OperatorError, match=r"'to_stream' failed .* too large for any 64-bit type"):
        collected(lambda scope: scope.to_stream(range(2**64, 2**64 + 2)))


@pytest.mark.parametrize("columns", [(np.ones((2, 2)), np.ones((2, 2))), (np.ones((2, 2)),), ()])
def test_columns_of_several_dimensions_or_none_are_refused(columns: Any) -> None:
    with pytest.raises(DataError, match="arrays of one dimension and one length"):
        collected(lambda scope: scope.to_stream(Columns(columns)))
    with pytest.raises(OperatorError, match=r"'to_stream' failed .* arrays of one dimension and one length"):
        collected(lambda scope: scope.to_stream(iter([Columns(columns)])))


def test_what_a_program_writes_after_the_statement_is_not_sent() -> None:
    records, numbers, array = [1, 2], np.arange(2), np.arange(3)

    def build(scope: Scope) -> Stream:
        streams = scope.to_stream(records), scope.to_stream(Columns((numbers,))), scope.to_stream(array)
        records[0] = 7
        records.append(8)
        with pytest.raises(ValueError, match="read-only"):
            numbers[0] = 9
        array[:] = 10
        return streams[0].concat(*streams[1:])

    assert collected(build) == [0, 0, 1, 1, 1, 2, 2]


class Generated:
    """An iterable whose iterator is a generator."""

    def __init__(self, closed: list[str], name: str) -> None:
        self._closed, self._name = closed, name

    def __iter__(self) -> Iterator[list[int]]:
        try:
            for number in count():
                yield [number]
        finally:
            self._closed.append(self._name)


@pytest.mark.parametrize("is_generator", [True, False])
def test_a_generator_is_closed_when_its_dataflow_is_dropped(is_generator: bool) -> None:
    closed: list[str] = []
    batches = Generated(closed, "batches")
    given = iter(batches) if is_generator else batches

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream(given).probe()
        worker.step()
        assert closed == []
        worker.drop_dataflow(scope.dataflow)
        assert closed == ["batches"]

    execute_directly(program)
