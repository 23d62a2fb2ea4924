"""Tests of `all_reduce` and `all_reduce_by_tree`: totals on all workers, equal bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from timely import Config, Stream, Worker, execute, execute_directly
from timely.data.container import decode, encode
from timely.dataflow.operators.all_reduce import Pairwise, Piece
from timely.errors import OperatorError

SHARDS = 8
Method = Callable[..., Stream]
methods = pytest.mark.parametrize("method", [Stream.all_reduce, Stream.all_reduce_by_tree])


def shards(seed: int, shape: tuple[int, ...], kind: str = "f8") -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [(1e6 * rng.normal(size=shape)).astype(kind) for _ in range(SHARDS)]


def totals(method: Method, vectors: list[Any], workers: int, *more: Any) -> list[list[Any]]:
    """Return what each worker receives when the vectors are dealt in equal runs."""

    def program(worker: Worker) -> list[Any]:
        received: list[Any] = []
        own = [vector for number, vector in enumerate(vectors) if number * workers // len(vectors) == worker.index]
        with worker.dataflow() as scope:
            method(scope.to_stream(own), *more).inspect(received.append).probe()
        while worker.step_or_park():
            pass
        return received

    return execute(program, Config(workers=workers))


@methods
@pytest.mark.parametrize("workers", [1, 2, 3, 5, 8])
@pytest.mark.parametrize(("ufunc", "kind"), [(np.add, "i8"), (np.minimum, "f8"), (np.maximum, "i4")])
def test_exact_totals_are_those_of_all_vectors_for_any_number_of_workers(
    method: Method, workers: int, ufunc: np.ufunc, kind: str
) -> None:
    vectors = shards(workers, (3, 7), kind)
    for received in totals(method, vectors, workers, ufunc):
        (total,) = received
        assert total.dtype == np.dtype(kind)
        assert np.array_equal(total, ufunc.reduce(vectors))


@pytest.mark.parametrize("shape", [(), (1,), (1000,), (5, 6)])
def test_floating_point_totals_are_the_same_bits_everywhere_by_both_methods_on_powers_of_two(
    shape: tuple[int, ...],
) -> None:
    vectors = shards(1, shape)
    found = {
        (total.shape, total.tobytes())
        for workers in (1, 2, 4, 8)
        for method in (Stream.all_reduce, Stream.all_reduce_by_tree)
        for received in totals(method, vectors, workers)
        for total in received
    }
    assert len(found) == 1
    (_, bits), *_ = found
    assert np.allclose(np.frombuffer(bits).reshape(shape), sum(vectors))


@pytest.mark.parametrize("workers", [3, 5, 6, 7])
def test_for_other_numbers_of_workers_all_have_the_same_bits_by_both_methods(workers: int) -> None:
    vectors = shards(2, (100,))
    found = {
        received[0].tobytes()
        for method in (Stream.all_reduce, Stream.all_reduce_by_tree)
        for received in totals(method, vectors, workers)
    }
    assert len(found) == 1


@methods
def test_workers_without_vectors_receive_the_total_of_the_others(method: Method) -> None:
    received = totals(method, [np.arange(4)], 3)
    assert [total.tolist() for (total,) in received] == [[0, 1, 2, 3]] * 3


@methods
@pytest.mark.parametrize("workers", [1, 3])
def test_each_time_has_a_total_of_its_own_in_loops_too(method: Method, workers: int) -> None:
    def program(worker: Worker) -> list[Any]:
        seen: list[Any] = []
        with worker.dataflow() as scope, scope.iterative() as loop:
            start = scope.to_stream([np.array([worker.index + 1, 1])])
            handle, again = loop.loop_variable()
            total = method(start.enter(loop).concat(again))
            total.inspect_time(lambda time, vector: seen.append((time, vector.tolist())))
            total.filter(lambda vector: vector[0] < 1000).map(lambda vector: 2 * vector).connect_loop(handle)
        while worker.step_or_park():
            pass
        return seen

    first, factor = sum(range(1, workers + 1)), 2 * workers
    for seen in execute(program, Config(workers=workers)):
        assert len(seen) > 3
        for turn, (time, vector) in enumerate(seen):
            assert time == (0, turn)
            assert vector == [first * factor**turn, workers * factor**turn]


@methods
def test_vectors_that_are_not_alike_are_refused(method: Method) -> None:
    for vectors, workers in [
        ([np.arange(3), np.arange(4)], 1),
        ([np.arange(3), np.ones(3)], 1),
        ([np.arange(4), np.arange(4).reshape(2, 2)], 2),
        ([np.array(["text"])], 1),
        ([np.empty(0)], 1),
    ]:
        with pytest.raises(OperatorError, match=r"cannot combine|of shapes \(4,\) and \(2, 2\)"):
            totals(method, vectors, workers)


@methods
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint64])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_total_of_integers_that_does_not_fit_is_refused(method: Method, dtype: type, shape: tuple[int, ...]) -> None:
    largest = np.full(shape, np.iinfo(dtype).max, dtype)
    assert totals(method, [largest, np.zeros(shape, dtype)], 2)[0][0].tolist() == largest.tolist()
    with pytest.raises(OperatorError, match=f"a total of vectors does not fit into {np.dtype(dtype)}"):
        totals(method, [largest, np.ones(shape, dtype)], 2)


def test_columns_are_refused_because_they_would_be_cut_anywhere() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream(np.arange(5)).all_reduce().probe()
        worker.step()

    with pytest.raises(OperatorError, match="a record of a list batch"):
        execute_directly(program)


@settings(deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=70))
def test_pairwise_totals_of_runs_of_a_power_of_two_combine_to_the_same_total(numbers: list[float]) -> None:
    def total(parts: list[float]) -> float:
        pairwise = Pairwise(np.add)
        for part in parts:
            pairwise.include(part)
        return float(pairwise.result())

    whole = total(numbers)
    for size in (2, 4, 16):
        assert total([total(numbers[at : at + size]) for at in range(0, len(numbers), size)]) == whole
    assert np.isclose(whole, sum(numbers), atol=1e-3)


def test_a_piece_survives_the_wire_and_nothing_else_is_decoded_as_one() -> None:
    piece = Piece(1, 2, 3, (2, 4), np.array([0.5, 1.5]))
    kind, meta, buffers = encode(piece)
    again = decode(kind, meta, [memoryview(buffer) for buffer in buffers])
    assert isinstance(again, Piece)
    assert (again.sender, again.to, again.start, again.shape) == (1, 2, 3, (2, 4))
    assert again.values.tolist() == [0.5, 1.5]
    assert piece.nbytes == 16
    raw = [memoryview(buffer) for buffer in buffers]
    for wrong in (None, [1, 2, 3], [1, 2, -3, [2, 4], ["<f8"]], [1, 2, 3, 8, ["<f8"]], [1, 2, 3, [8], ["<f8", "<f8"]]):
        with pytest.raises(ValueError):
            decode(kind, wrong, raw)
