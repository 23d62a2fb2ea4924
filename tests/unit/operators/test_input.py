"""Tests of `InputSession`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from differential import Collection, InputSession, example, new_input, new_upsert_input
from tests.oracle.grid import on_workers, run
from timely import Config, Worker, execute, execute_directly
from timely.errors import CapabilityError, DataError


@on_workers
def test_a_change_at_a_later_time_takes_effect_then(workers: int) -> None:
    updates = [((1, 2), (4,), 1), ((1, 2), (0,), 2), ((1, 2), (9,), -3)]
    assert run(lambda one: one.count(), updates, workers=workers) == [
        ((1, 2), (0,), 1),
        ((1, 2), (4,), -1),
        ((1, 3), (4,), 1),
        ((1, 3), (9,), -1),
    ]


def test_columns_can_change_at_later_times_beside_records_at_others() -> None:
    def program(worker: Worker) -> object:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            output = numbers.output()
        session.insert(0)
        session.update_at(np.array([1, 2]), time=2, diff=np.array([5, 6]))
        session.update_at(3, time=1)
        session.close()
        worker.step_while(lambda: not output.done())
        return output.changes()

    assert execute_directly(program) == [((0,), (0,), 1), ((3,), (1,), 1), ((1,), (2,), 5), ((2,), (2,), 6)]


@pytest.mark.parametrize(
    ("time", "error", "message"),
    [
        (2, CapabilityError, r"at time \(3,\) and cannot change the collection at \(2,\)"),
        ((3, 0), CapabilityError, r"\(3, 0\) is not a time"),
        (2**62 + 1, CapabilityError, r"\(4611686018427387905,\) is too late"),
    ],
)
def test_a_change_in_the_past_too_late_or_of_another_scope_is_refused(time: object, error: type, message: str) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, _ = new_input(scope)
        session.advance_to(3)
        session.update_at(1, time=time)  # type: ignore[arg-type]

    with pytest.raises(error, match=message):
        execute_directly(program)


def test_a_session_can_move_to_the_last_time_and_no_further() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, _ = new_input(scope)
        session.advance_to(2**62)
        with pytest.raises(CapabilityError, match="is too late"):
            session.advance_to(2**62 + 1)

    execute_directly(program)


def test_a_record_of_another_width_is_refused() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, _ = new_input(scope)
        session.update_at(1, time=3)
        session.update_at(1, 2, time=3)

    with pytest.raises(DataError, match="2 field"):
        execute_directly(program)


def test_a_session_reports_when_too_much_is_waiting() -> None:
    def program(worker: Worker) -> list[bool]:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            collection.count().probe()
        congested = []
        for _ in range(2):
            session.insert(np.arange(10_000))
            session.flush()
            congested.append(session.is_congested)
            worker.step()
            congested.append(session.is_congested)
        return congested

    assert execute(program, Config(queue_bytes=1 << 16)) == [[True, False] * 2]


def test_changes_to_a_dropped_dataflow_are_refused_and_unsent_ones_may_be_closed() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, _ = new_input(scope)
            upserts, _ = new_upsert_input(scope)
        session.insert(0)
        upserts.set(0, 1)
        worker.drop_dataflow(scope.dataflow)
        with pytest.raises(CapabilityError, match="takes no more changes"):
            session.insert(0)
        session.close()
        upserts.close()
        with pytest.raises(CapabilityError, match="takes no more changes"):
            session.insert(0)

    execute_directly(program)


def inserted(*changes: Callable[[InputSession], None]) -> list[object]:
    """Return the records, and how often each occurs, after changes to one session in one epoch."""

    def program(worker: Worker) -> list[object]:
        with worker.dataflow() as scope:
            session, records = new_input(scope)
            output = records.consolidate().output()
        for change in changes:
            change(session)
        session.close()
        worker.step_while(lambda: not output.done())
        return sorted(output.contents().items())

    return execute_directly(program)


def test_arrays_may_be_overwritten_once_they_are_inserted() -> None:
    numbers, times = np.arange(3), np.array([1, 2, 3])

    def insert(session: InputSession) -> None:
        session.update(numbers, diff=times)
        session.update_at(numbers, time=1)
        numbers.fill(9)
        times.fill(9)

    assert inserted(insert) == [((0,), 2), ((1,), 3), ((2,), 4)]


@pytest.mark.parametrize("column", [[3, 4], np.array([3, 4]), range(3, 5), np.array([3, 4], np.uint8)])
def test_columns_and_records_of_all_kinds_may_be_inserted_in_one_epoch(column: object) -> None:
    assert inserted(
        lambda session: session.insert([]),
        lambda session: session.insert(column),
        lambda session: session.insert([5]),
        lambda session: session.insert(3),
        lambda session: session.insert(np.array([4], np.uint64)),
    ) == [((3,), 2), ((4,), 2), ((5,), 1)]


def test_small_integers_are_widened_before_a_function_receives_them() -> None:
    numbers = np.array([200], np.uint8)
    assert example(lambda scope: Collection.of(scope, numbers).map(lambda x: x + 100)) == [((300,), 1)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array(["a"]), np.array([1])),
        (np.array(["a"]), 1),
        ("a", b"a"),
        ("a", None),
        (np.array([2**53 + 1]), np.array([0.5])),
        (np.array([2**63], np.uint64), np.array([-1])),
    ],
)
def test_fields_of_several_kinds_in_one_epoch_are_refused_and_not_converted(one: object, other: object) -> None:
    with pytest.raises(DataError, match="kind"):
        inserted(lambda session: session.insert(one), lambda session: session.insert(other))


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2.5),
        (2.5, 1),
        (1, "one"),
        ("one", b"one"),
        (1, 1 << 63),
        (1, 1 << 70),
        (np.uint64(1), np.uint64(1 << 63)),
        ("one", "\ud800"),
        (np.str_("one"), np.str_("\ud800")),
        (np.array(["one"]), np.array(["\ud800"])),
        (1, [2.5]),
    ],
)
def test_a_field_of_another_kind_is_refused_at_its_line_and_nothing_else_is_lost(
    one: object, other: object, flush: bool
) -> None:
    def refused(session: InputSession) -> None:
        if flush:
            session.flush()
        with pytest.raises(DataError):
            session.insert(other)

    assert inserted(
        lambda session: session.insert(one), refused, lambda session: session.update_at(one, time=0, diff=2)
    ) == [((np.ravel(one)[0],), 3)]


@pytest.mark.parametrize("record", [(True,), (np.int8(1),), ([1],), (np.array([True]),)])
def test_booleans_among_integers_are_integers(record: tuple[object]) -> None:
    assert inserted(lambda session: session.insert(1), lambda session: session.insert(*record)) == [((1,), 2)]


def test_mutable_bytes_are_not_a_column_of_numbers() -> None:
    with pytest.raises(DataError, match="bytes\\(\\) makes a field of it"):
        inserted(lambda session: session.insert(bytearray(b"abc")))


def test_an_upsert_of_another_kind_is_refused_at_its_line_and_the_others_hold() -> None:
    def program(worker: Worker) -> object:
        with worker.dataflow() as scope:
            session, prices = new_upsert_input(scope)
            output = prices.output()
        session.set("tea", 3)
        for record in ((4, 5), ("milk", 2.5)):
            with pytest.raises(DataError, match="of one kind"):
                session.set(*record)
        session.unset("rum")
        with pytest.raises(DataError, match="of one kind"):
            session.unset(7)
        session.close()
        worker.step_while(lambda: not output.done())
        return output.contents()

    assert execute_directly(program) == {("tea", 3): 1}


def test_a_record_given_as_a_tuple_is_refused() -> None:
    with pytest.raises(DataError, match=r"field by field \(\*record\)"):
        inserted(lambda session: session.insert((1, 2)))


@pytest.mark.parametrize("diff", [1.5, None, "2", 2**63, [1.0, 2.0], [1, 2, 3], np.array([2**63, 1], np.uint64)])
def test_a_diff_that_is_not_an_integer_is_refused(diff: object) -> None:
    with pytest.raises(DataError, match="one integer for each of the 2 rows"):
        inserted(lambda session: session.update([1, 2], diff=diff))  # type: ignore[arg-type]


@pytest.mark.parametrize("diff", [[1, 2], np.array([1, 2], np.int8), (1, 2)])
def test_diffs_may_be_any_integers(diff: object) -> None:
    assert inserted(lambda session: session.update([7, 8], diff=diff)) == [((7,), 1), ((8,), 2)]  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [lambda session: session.insert(1), lambda session: session.update_at(1, time=1)])
def test_a_change_of_a_closed_input_is_refused(change: Callable[[InputSession], None]) -> None:
    with pytest.raises(CapabilityError, match="was closed"):
        inserted(lambda session: session.close(), change)


def test_upserts_of_a_closed_input_or_of_another_width_are_refused() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, _ = new_upsert_input(scope)
        session.set("tea", 1)
        with pytest.raises(DataError, match="1 field"):
            session.set("milk")
        session.close()
        with pytest.raises(CapabilityError, match="was closed"):
            session.set("tea", 2)
        with pytest.raises(CapabilityError, match="was closed"):
            session.unset("tea")

    execute_directly(program)


def test_the_last_value_of_a_key_in_a_list_holds() -> None:
    def program(worker: Worker) -> object:
        with worker.dataflow() as scope:
            session, prices = new_upsert_input(scope)
            output = prices.output()
        session.set(["tea", "milk", "tea"], [9, 5, 3])
        session.close()
        worker.step_while(lambda: not output.done())
        return output.contents()

    assert execute_directly(program) == {("tea", 3): 1, ("milk", 5): 1}


@on_workers
def test_changes_that_are_not_sealed_when_the_program_returns_are_not_lost(workers: int) -> None:
    seen = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            upserts, prices = new_upsert_input(scope)
            numbers.inspect(lambda record, time, diff: seen.append((record, time, diff)))
            prices.inspect(lambda record, time, diff: seen.append((record, time, diff)))
        if worker.index == 0:
            session.insert(1)
            session.update_at(2, time=3)
            upserts.set("tea", 4)

    execute(program, Config(workers=workers))
    assert sorted(seen, key=str) == [(("tea", 4), (0,), 1), ((1,), (0,), 1), ((2,), (3,), 1)]
