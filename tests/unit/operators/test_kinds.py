"""The kinds of columns: which are refused together, whichever workers hold the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from differential import Collection, example, new_input, new_upsert_input
from differential.data.codes import Encoder
from differential.data.updates import Updates
from differential.delta import Prefixes
from tests.oracle.grid import on_workers
from timely import Config, Worker, execute
from timely.data.container import as_column
from timely.dataflow.stream import Scope
from timely.errors import DataError, OperatorError

SHORT = np.array([0.1, 0.5], np.float32)
LONG = np.array([0.1, 0.5])

Two = Callable[[Collection, Collection], Any]

COMBINED: list[Two] = [
    lambda one, other: one.join(other),
    lambda one, other: one.arrange_by_key().join(other),
    lambda one, other: one.semijoin(other.map(lambda key, value: key)),
    lambda one, other: one.antijoin(other.map(lambda key, value: key)),
    lambda one, other: one.union(other),
    lambda one, other: one.intersect(other),
    lambda one, other: one.except_(other),
    lambda one, other: one.concat(other).consolidate(),
    lambda one, other: one.concat(other).count(),
    lambda one, other: one.concat(other).distinct(),
    lambda one, other: one.concat(other).min(),
    lambda one, other: one.concat(other).output(),
    lambda one, other: one.concat(other).map(lambda key, value: (key, value, value)).prefix_sum(),
    lambda one, other: one.cogroup(other, lambda groups: (np.arange(len(groups)), np.zeros(len(groups), np.int64))),
    lambda one, other: Prefixes.of(one).half_join(other.arrange_by_key(), lambda key, mine, theirs: mine).results(),
]
"""Programs in which the keys of two collections meet."""


def keys(column: Any) -> Any:
    """Return a record of columns, with a value beside the keys."""
    return column, np.arange(np.size(column))


def run(combine: Two, one: Any, other: Any, workers: int) -> None:
    """Run `combine` on two collections, with the rows of the second inserted by the last worker."""

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            (first, left), (second, right) = new_input(scope), new_input(scope)
            combine(left, right)
        if worker.index == 0:
            first.insert(*keys(one))
        if worker.index == worker.peers - 1:
            second.insert(*keys(other))

    execute(program, Config(workers=workers))


@on_workers
@pytest.mark.parametrize("combine", COMBINED)
def test_floats_of_two_widths_are_refused(combine: Two, workers: int) -> None:
    with pytest.raises(OperatorError, match=r"floats.*32-bit|32-bit.*floats"):
        run(combine, SHORT, LONG, workers)


@on_workers
@pytest.mark.parametrize("combine", COMBINED)
def test_integers_and_floats_are_refused_even_if_no_two_rows_meet_on_a_worker(combine: Two, workers: int) -> None:
    with pytest.raises(OperatorError, match=r"integers.*floats|floats.*integers"):
        run(combine, np.array([1]), np.array([2.5]), workers)


@on_workers
@pytest.mark.parametrize("combine", COMBINED)
def test_integers_and_booleans_can_be_combined(combine: Two, workers: int) -> None:
    run(combine, np.array([0, 1]), np.array([True]), workers)


@on_workers
@pytest.mark.parametrize("combine", COMBINED)
def test_floats_of_one_width_can_be_combined(combine: Two, workers: int) -> None:
    run(combine, SHORT, SHORT[:1], workers)


def test_a_join_of_two_widths_names_the_join_and_what_to_do() -> None:
    def program(scope: Scope) -> Collection:
        short, long = Collection.of(scope, SHORT), Collection.of(scope, LONG)
        return short.join(long, name="prices")

    with pytest.raises(OperatorError, match=r"'prices' .*test_kinds\.py:\d+.*32-bit floats on the left.*convert one"):
        example(program)


def test_collections_without_rows_can_be_combined_with_all_kinds() -> None:
    nothing = np.empty(0, np.float32)
    assert example(lambda scope: Collection.of(scope, nothing).join(Collection.of(scope, LONG))) == []


def test_a_dropped_join_leaves_no_trace_in_the_arrangements_that_it_read() -> None:
    compared: list[dict[Any, Encoder]] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            _, numbers = new_input(scope)
            arranged = numbers.arrange_by_key()
            trace = arranged.trace()
        for _ in range(3):
            with worker.dataflow("a question") as scope:
                imported = trace.import_into(scope)
                Collection.of(scope, np.array([1])).arrange_by_key().join(imported)
            worker.drop_dataflow(scope.dataflow)
        compared.append(arranged.key._compared)

    execute(program)
    assert compared == [{}]


@on_workers
def test_floats_keep_their_width(workers: int) -> None:
    found: list[tuple[np.dtype[Any], ...]] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, prices = new_input(scope)
            for made in (prices, prices.distinct(), prices.min(), prices.join(prices), prices.concat(prices.max())):
                made.inspect_batch(lambda updates: found.append(tuple(column.dtype for column in updates.columns)))
        if worker.index == 0:
            session.insert(SHORT, SHORT.astype(np.float16))

    execute(program, Config(workers=workers))
    short, half = np.dtype(np.float32), np.dtype(np.float16)
    assert set(found) == {(short, half), (short, half, half)}


def test_a_sum_of_short_floats_is_exact_in_64_bits() -> None:
    column = np.full(10, 0.1, np.float32)
    ((_, total),) = dict(example(lambda scope: Collection.of(scope, np.zeros(10, np.int64), column).sum()))
    assert total == 10 * float(np.float32(0.1))


def test_an_input_refuses_another_width_at_the_users_line() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, _ = new_input(scope)
        session.insert(SHORT)
        for other in (LONG, 0.1, np.float16(0.5)):
            with pytest.raises(DataError, match=r"field 0 is .*0.1.*in another: .* of one kind and width"):
                session.insert(other)
        session.insert(np.float32(0.25))

    execute(program)


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="here they are floats of 64 bits")
def test_floats_of_more_than_64_bits_are_refused_not_rounded() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, _ = new_input(scope)
        for wide in (np.array([0.1], np.longdouble), np.longdouble(0.1)):
            with pytest.raises(DataError, match=r"float128 cannot be part .*astype\(np.float64\)"):
                session.insert(wide)

    execute(program)


@on_workers
def test_values_that_are_set_have_one_kind_on_all_workers(workers: int) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, prices = new_upsert_input(scope)
            prices.output()
        if worker.index == 0:
            session.set(np.array([1]), np.array([5]))
        session.advance_to(1)
        if worker.index == worker.peers - 1:
            session.unset(np.array([3]))
            if workers > 1:
                session.set(np.array([2]), np.array([2.5]))
        if workers == 1:
            with pytest.raises(DataError):
                session.set(np.array([2]), np.array([2.5]))

    if workers == 1:
        execute(program)
        return
    with pytest.raises(OperatorError, match=r"value held .* and now holds"):
        execute(program, Config(workers=workers))


def test_a_batch_without_rows_is_decoded_from_its_buffers() -> None:
    columns = (np.empty(0, np.float32), as_column(["a"])[:0], as_column([b"a"])[:0])
    meta, buffers = Updates(columns, np.array([[3, 4]])).to_buffers()
    again = Updates.from_buffers(meta, [memoryview(buffer).cast("B") for buffer in buffers])
    assert [column.dtype for column in again.columns] == [column.dtype for column in columns]
    assert len(again) == 0
    assert again.times.tolist() == [[3, 4]]


@pytest.mark.parametrize("index", [[0], [0, 1, 0], [0, 2], [-1, 0]])
def test_a_batch_with_an_invalid_time_index_is_refused(index: list[int]) -> None:
    meta, buffers = Updates((np.arange(2),), np.array([[3], [4]]), np.array([0, 1])).to_buffers()
    buffers[1] = np.array(index)
    with pytest.raises(ValueError, match=r"time"):
        Updates.from_buffers(meta, [memoryview(buffer).cast("B") for buffer in buffers])
