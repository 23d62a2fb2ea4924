"""How batches are spread over workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from timely import Broadcast, Columns, Config, Exchange, Gather, Pipeline, Worker, execute, new_input
from timely.data.columns import as_column
from timely.data.container import Batch, records
from timely.dataflow.pact import MANY_ROWS, Pact, scatter
from timely.dataflow.routing import destinations, hash_columns, hash_record
from timely.errors import BuildError, DataError, DataflowFailed, OperatorError

NUMBERS = Columns((np.arange(500),))


def parts(pact: Pact, batch: Batch, peers: int) -> dict[int, list]:
    return {worker: list(records(part)) for worker, part in pact.split(batch, peers) or ()}


@pytest.mark.parametrize("peers", [2, 3, 4, 7, 300])
def test_an_exchange_gives_each_row_to_the_worker_of_its_hash_in_order(peers: int) -> None:
    expected: dict[int, list[int]] = {}
    for number in range(500):
        expected.setdefault(hash_record(number) % peers, []).append(number)
    assert parts(Exchange(), NUMBERS, peers) == expected
    assert parts(Exchange(), list(range(500)), peers) == expected


def test_rows_of_several_columns_stay_together() -> None:
    batch = Columns((np.arange(100), np.arange(100) * 10, np.array([f"w{number}" for number in range(100)])))
    found = parts(Exchange(lambda number, *_: number % 5), batch, 3)
    assert sorted(row for rows in found.values() for row in rows) == list(batch.rows())
    for rows in found.values():
        assert len(rows) == 20 * len({number % 5 for number, _, _ in rows})


def test_a_batch_for_one_worker_is_passed_on_unchanged() -> None:
    (found,) = scatter(NUMBERS, np.full(500, 6, np.uint16))
    assert found == (6, NUMBERS)
    assert found[1] is NUMBERS


@pytest.mark.parametrize("peers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("rows", [MANY_ROWS, MANY_ROWS + 1, 3 * MANY_ROWS])
def test_many_rows_are_spread_like_few(rows: int, peers: int) -> None:
    numbers = np.arange(rows)
    workers = destinations(hash_columns((numbers,)), peers)
    found = {worker: part.columns[0] for worker, part in scatter(Columns((numbers,)), workers)}  # type: ignore[union-attr]
    assert sorted(found) == list(range(peers))
    for worker, part in found.items():
        assert np.array_equal(part, numbers[workers == worker])


def test_a_column_of_the_batch_is_hashed_without_conversion_to_another_type(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def see(columns: tuple[np.ndarray, ...]) -> np.ndarray:
        seen.append(columns[0].dtype.kind)
        return hash_columns(columns)

    monkeypatch.setattr("timely.dataflow.pact.hash_columns", see)
    batch = Columns((np.array([b"to", b"be", b"or"]), np.arange(3)))
    chosen = parts(Exchange(lambda word, _: word), batch, 2)
    assert chosen == parts(Exchange(lambda word, _: word.tolist()), batch, 2)
    assert seen == ["S", "O"]


def test_many_rows_for_one_worker_are_passed_on_unchanged() -> None:
    batch = Columns((np.arange(2 * MANY_ROWS),))
    ((worker, part),) = scatter(batch, np.full(len(batch), 1, np.uint16))
    assert worker == 1
    assert part is batch


def test_an_empty_batch_goes_to_no_worker() -> None:
    assert list(scatter(Columns((np.arange(0),)), np.empty(0, np.uint16))) == []


def test_a_single_worker_keeps_everything() -> None:
    for pact in (Exchange(), Broadcast(), Gather(), Pipeline()):
        assert pact.split(NUMBERS, 1) is None


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("made", [None, np.zeros((3, 2)), np.zeros(2), object()], ids=["none", "rows", "short", "any"])
@pytest.mark.parametrize("data", [np.arange(3), [1, 2, 3]], ids=["columns", "list"])
def test_a_route_without_a_hash_fails_however_many_workers_there_are(workers: int, made: Any, data: Any) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream(data).exchange(lambda _: made).probe()

    with pytest.raises(OperatorError, match=rf"'exchange' failed .*{__file__}:\d+\): DataError: .*column"):
        execute(program, Config(workers=workers))


def test_one_worker_routes_the_first_batch_only() -> None:
    routed: list[int] = []

    def route(numbers: Any) -> Any:
        routed.append(len(numbers))
        return numbers

    def program(worker: Worker) -> None:
        batches = [Columns((np.arange(rows),)) for rows in (0, 3, 4)]
        with worker.dataflow() as scope:
            scope.to_stream(iter(batches)).exchange(route).probe()

    execute(program, Config())
    assert routed == [3]


def test_an_exchange_has_a_route() -> None:
    with pytest.raises(BuildError, match="`route` must be a function, not None"):
        Exchange(None)  # type: ignore[arg-type]


def test_a_broadcast_goes_to_all_and_a_gathering_to_one() -> None:
    assert parts(Broadcast(), [1], 3) == {0: [1], 1: [1], 2: [1]}
    assert parts(Gather(2), [1], 3) == {2: [1]}
    assert parts(Gather(5), [1], 3) == {2: [1]}


@pytest.mark.parametrize("worker", [-1, "sink", 1.0, None])
def test_gathering_at_a_value_that_is_not_a_worker_is_refused(worker: Any) -> None:
    with pytest.raises(BuildError, match=f"a worker, given by its number, such as 0, not at {worker!r}"):
        Gather(worker)


class To:
    """A pact of a program: everything goes to one worker, of any number."""

    name = "to"

    def __init__(self, worker: Any) -> None:
        self.worker = worker

    def split(self, batch: Batch, peers: int) -> Iterator[tuple[int, Batch]]:
        return iter([(self.worker, batch)])


def sent_from_the_first(pact: Pact) -> list[list[int]]:
    """Return what each of two workers receives of what worker 0 sends."""

    def program(worker: Worker) -> list[int]:
        found: list[int] = []
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.sink(pact, lambda input: [found.extend(records(batch)) for _, batch in input.drain()])
        if worker.index == 0:
            numbers.send(7)
        worker.close_inputs()
        worker.complete()
        return found

    return execute(program, Config(workers=2))


@pytest.mark.parametrize("pact", [Gather(np.int64(1)), To(1), To(np.int64(1)), To(np.uint8(1))])
def test_a_worker_may_be_named_by_an_integer_of_numpy(pact: Pact) -> None:
    assert sent_from_the_first(pact) == [[], [7]]


@pytest.mark.parametrize("worker", [2, -1, 1.0, None])
def test_a_pact_that_names_no_worker_is_named(worker: Any) -> None:
    with pytest.raises(
        OperatorError, match=f"'sink' failed .*the pact 'to' names worker {worker}, and the workers are"
    ):
        sent_from_the_first(To(worker))


class ToEach:
    """A pact of a program: each record is the number of the worker that it goes to."""

    name = "to each"

    def split(self, batch: Batch, peers: int) -> Iterator[tuple[int, Batch]]:
        return ((number, [number]) for number in records(batch))


def sent_one_after_the_other(batches: list[list[int]], consumers: int = 1) -> list[list[int]]:
    """Return what each of two workers receives of the batches that worker 0 sends, those that are refused included."""

    def program(worker: Worker) -> list[int]:
        found: list[int] = []
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            for _ in range(consumers - 1):
                stream.sink(Pipeline(), lambda input: [None for _ in input])
            stream.sink(ToEach(), lambda input: [found.extend(records(batch)) for _, batch in input.drain()])
        if worker.index == 0:
            for batch in batches:
                with suppress(OperatorError):
                    numbers.send_batch(batch)
        worker.close_inputs()
        worker.complete()
        return found

    return execute(program, Config(workers=2))


def test_of_a_batch_that_is_refused_nothing_is_sent_so_it_may_be_sent_in_another_form() -> None:
    assert sent_one_after_the_other([[0, 2], [0, 1]]) == [[0], [1]]


@pytest.mark.parametrize(("batch", "consumers"), [([1, 2], 1), ([2], 2)], ids=["another worker", "another operator"])
def test_a_batch_that_is_refused_when_a_part_of_it_has_left_ends_the_dataflow(batch: list[int], consumers: int) -> None:
    with pytest.raises(DataflowFailed, match="has lost what it was computing when operator 'sink' failed"):
        sent_one_after_the_other([batch, [0, 1]], consumers)


def test_equal_values_have_equal_hashes_whatever_their_type() -> None:
    def hashed(*values: object) -> int:
        return int(hash_columns(tuple(np.asarray([value]) for value in values))[0])

    assert hashed(np.int32(7)) == hashed(np.uint8(7)) == hashed(7)
    assert hashed(0.0) == hashed(-0.0) == hashed(0) == hashed(False)
    assert hashed(np.float32(-3)) == hashed(-3.0) == hashed(-3) == hash_record(-3.0)
    assert hashed(float(-(2**63))) == hashed(-(2**63))
    assert hashed("word") == hash_record("word")
    assert hashed(1, "a") == hash_record((1, "a"))
    assert hashed(1, "a") != hashed(2, "a")


def test_equal_values_have_equal_hashes_in_columns_that_a_program_makes_without_a_conversion() -> None:
    computed = np.array([-np.nan, 1.5, np.inf - np.inf])
    assert hash_columns((computed,)).tolist() == hash_columns((np.array([np.nan, 1.5, np.nan]),)).tolist()
    for times in (np.array(["2026-03-01", "NaT"], "M8[D]"), np.array([7, 8], "m8[us]")):
        assert hash_columns((times,)).tolist() == hash_columns((as_column(times),)).tolist()
    hours = np.array(["2026-03-01T07", "2026-03-01T08"], "M8[h]")  # of no type
    assert len(set(hash_columns((hours,)).tolist())) == 2


def test_the_hash_of_several_columns_depends_on_their_order() -> None:
    numbers = np.arange(1000)
    assert len(set(hash_columns((numbers, numbers)).tolist())) == len(numbers)
    assert not (hash_columns((numbers, numbers + 1)) == hash_columns((numbers + 1, numbers))).any()
    assert not (hash_columns((numbers, numbers + 1, numbers)) == hash_columns((numbers + 1, numbers, numbers))).any()


def test_records_without_fields_meet_on_one_worker() -> None:
    ((worker, found),) = parts(Exchange(), [(), ()], 3).items()
    assert found == [(), ()]
    assert parts(Exchange(lambda _: ()), [1, 2], 3) == {worker: [1, 2]}


def test_a_route_of_columns_names_at_least_one() -> None:
    with pytest.raises(DataError, match="at least one column"):
        parts(Exchange(lambda _: ()), NUMBERS, 3)


def test_the_destination_of_a_row_does_not_depend_on_how_many_rows_travel_with_it() -> None:
    hashes = hash_columns((np.arange(100),))
    for peers in (2, 3, 5, 8):
        assert destinations(hashes, peers).tolist() == [int(each) % peers for each in hashes]


def test_floats_that_are_not_integers_of_64_bits_have_hashes_of_their_own() -> None:
    floats = np.array([0.5, -0.5, np.nan, np.inf, -np.inf, 2.0**63, 2.0**64, -(2.0**64), 1e-300, *range(9)])
    assert len(set(hash_columns((floats,)).tolist())) == len(floats)
    integers = hash_columns((np.array([0, -(2**63), 2**63 - 1]),))
    assert not set(integers[1:].tolist()) & set(hash_columns((floats,)).tolist())


@pytest.mark.parametrize(("dtype", "unit"), [("M8[D]", "D"), ("M8[ns]", "ns"), ("m8[s]", "s"), (">M8[us]", "us")])
def test_times_go_where_those_of_a_column_go(dtype: str, unit: Any) -> None:
    times = np.array([-(2**63), -1, 0, 2**63 - 1]).astype(dtype)
    column = as_column(times)
    expected = hash_columns((column,)).tolist()
    assert np.isnat(times[0])
    assert hash_columns((times,)).tolist() == expected
    assert hash_columns((column + np.timedelta64(0, unit),)).tolist() == expected
    assert [hash_record(time) for time in times[1:]] == expected[1:]


@pytest.mark.parametrize("column", [np.array([1, 2]), np.array(["a", "b"]), "ab", ()])
def test_hashes_of_what_is_not_a_tuple_of_columns_are_refused(column: Any) -> None:
    with pytest.raises(DataError, match=r"takes columns in a tuple, as in hash_columns\(\(column,\)\), not "):
        hash_columns(column)
