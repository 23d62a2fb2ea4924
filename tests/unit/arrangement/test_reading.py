"""What a program can ask the trace of an arrangement."""

from __future__ import annotations

import gc
import math
import time as clock
from typing import Any

import numpy as np
import pytest

from differential import InputSession, Trace, new_input
from timely import Antichain, Config, Worker, execute, execute_directly
from timely.errors import BuildError, DataError, TraceError

pytestmark = pytest.mark.composed  # these tests count steps


def _edges(worker: Worker) -> tuple[InputSession, Trace]:
    """Return the trace of some edges: (1, 2) is present from 0 to 2, (1, 3) from 0 on, and twice from 1 on."""
    with worker.dataflow() as scope:
        session, edges = new_input(scope)
        trace = edges.arrange_by_key().trace()
        with pytest.raises(BuildError, match="leave its `with` block first"):
            _ = trace.upper
    session.insert(np.array([1, 1]), np.array([2, 3]))
    session.advance_to(1)
    session.insert(1, 3)
    session.advance_to(2)
    session.remove(1, 2)
    session.advance_to(3)
    worker.step()
    return session, trace


def test_contents_are_known_at_every_closed_time() -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        assert trace.upper == Antichain([(3,)])
        assert trace.contents(0).records() == {(1, 2): 1, (1, 3): 1}
        assert trace.contents((1,)).records() == {(1, 2): 1, (1, 3): 2}
        assert trace.contents(2).records() == {(1, 3): 2}
        with pytest.raises(TraceError, match=r"\(3,\) are not final yet: its upper is .*3.*logical frontier .*0"):
            trace.contents(3)
        session.close()
        worker.step()
        assert not trace.upper
        assert trace.contents(1000).records() == {(1, 3): 2}

    execute_directly(program)


def test_a_program_that_waits_for_a_trace_does_not_sleep_when_only_the_frontier_has_moved() -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        begun = clock.monotonic()
        for epoch in range(4, 8):
            session.advance_to(epoch)
            while trace.upper.less_equal((epoch - 1,)):
                worker.step_or_park(20.0)
        assert clock.monotonic() - begun < 20, "the worker slept though the trace had advanced"

    execute_directly(program)


def test_contents_are_known_if_nothing_was_sealed() -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        session.advance_to(50)
        worker.step()
        assert trace.contents(49).records() == {(1, 3): 2}
        assert max(batch.upper.elements for batch in trace.batches()) == ((3,),)

    execute_directly(program)


def test_compaction_gives_up_earlier_times_and_no_others() -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        assert trace.statistics().rows == 4
        trace.allow_compaction_to(2)
        for epoch in range(3, 13):  # what is inserted pays for merging
            session.insert(5, epoch)
            session.advance_to(epoch + 1)
            worker.step()
        with pytest.raises(TraceError, match=r"\(1,\) are compacted away: its logical frontier is .*2"):
            trace.contents(1)
        assert trace.contents(2).records() == {(1, 3): 2}
        with pytest.raises(TraceError, match="cannot restore those from"):
            trace.set_logical_compaction(1)
        with pytest.raises(TraceError, match="cannot restore those from"):
            trace.set_physical_compaction(1)
        assert trace.logical == trace.physical == Antichain([(2,)])
        trace.set_physical_compaction(12)
        with pytest.raises(TraceError, match="has released its batches before"):
            trace.allow_compaction_to(11)
        assert trace.logical == Antichain([(2,)])
        trace.allow_compaction_to(12)
        session.advance_to(14)
        session.insert(5, 13)
        session.advance_to(15)
        worker.step()
        assert trace.statistics().rows == 12
        session.close()

    execute_directly(program)


def test_a_trace_that_is_never_advanced_keeps_every_time_in_a_few_batches() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            trace = edges.arrange_by_key().trace()
        for epoch in range(600):
            session.insert(epoch % 7, epoch)
            session.advance_to(epoch + 1)
            worker.step()
        statistics = trace.statistics()
        assert statistics.batches <= 20
        assert statistics.rows == 600
        for epoch in (0, 1, 77, 599):
            assert trace.contents(epoch).records() == {(each % 7, each): 1 for each in range(epoch + 1)}
        with worker.dataflow() as scope:
            answer = trace.import_into(scope).as_collection().distinct().output()
        worker.step_while(lambda: answer.less_than(600))
        assert len(answer.contents()) == 600
        session.close()

    execute_directly(program)


def test_a_dropped_trace_holds_nothing_and_reports_that_it_is_dropped() -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        with trace:
            assert trace.statistics().readers == 1
        assert trace.is_dropped
        assert "dropped" in repr(trace)
        for ask in (trace.batches, trace.statistics, lambda: trace.contents(0), lambda: trace.cursor(0)):
            with pytest.raises(TraceError, match="was dropped"):
                ask()
        trace.drop()
        session.close()

    execute_directly(program)


def test_a_value_that_is_not_a_time_of_the_trace_is_refused() -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        for time, shown in (((0, 0), r"\(0, 0\)"), (1.5, r"1\.5"), ("1", "'1'")):
            with pytest.raises(TraceError, match=rf"{shown} is not a time of .* 1 coordinate"):
                trace.contents(time)  # type: ignore[arg-type]
        for one in (np.int64(1), np.array([1])):
            assert trace.contents(one).records() == trace.contents(1).records()  # type: ignore[arg-type]
        session.close()

    execute_directly(program)


def test_a_frontier_with_times_of_another_scope_is_refused_and_moves_nothing() -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        frontier = Antichain([(1, 1)])
        moves = (trace.set_logical_compaction, trace.set_physical_compaction, trace.allow_compaction_to)
        for move in moves:
            with pytest.raises(TraceError, match=r"\(1, 1\) is not a time of .* 1 coordinate"):
                move(frontier)
        with worker.dataflow() as scope, pytest.raises(TraceError, match=r"\(1, 1\) is not a time of"):
            trace.import_into(scope, since=frontier)
        assert trace.logical == trace.physical == Antichain([(0,)])
        session.close()

    execute_directly(program)


@pytest.mark.parametrize("late", [(1 << 62) + 1, 1 << 63])
def test_a_time_beyond_the_latest_is_refused(late: int) -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        for call in (trace.allow_compaction_to, trace.set_logical_compaction, trace.contents, trace.cursor):
            with pytest.raises(TraceError, match=rf"{late} is not a time of .* integers up to 2 \*\* 62$"):
                call(late)
        session.close()
        worker.step_while(lambda: trace.upper)
        trace.allow_compaction_to(1 << 62)
        trace.consolidate()

    execute_directly(program)


def test_a_trace_is_taken_while_its_dataflow_is_built() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("towns") as scope:
            session, towns = new_input(scope)
            arranged = towns.arrange_by_key()
        with pytest.raises(BuildError, match=r"'towns'.* inside its `with` block"):
            arranged.trace()
        session.close()

    execute_directly(program)


def test_a_cursor_finds_keys_and_does_not_change() -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        cursor = trace.cursor(1)
        trace.allow_compaction_to(2)
        for epoch in range(3, 40):
            session.insert(1, epoch)
            session.advance_to(epoch + 1)
            worker.step()
        found = cursor[4, 1, 1]
        assert list(zip(found.place.tolist(), found.values[0].tolist(), found.counts.tolist())) == [
            (1, 2, 1), (1, 3, 2), (2, 2, 1), (2, 3, 2),
        ]  # fmt: skip
        assert len(trace.cursor(39)[1].place) == 37
        assert not len(trace.cursor(39)[[]].place)
        with pytest.raises(DataError, match="the key held integers and now holds text"):
            cursor["one"]
        with pytest.raises(DataError, match=r"shape \(1, 2\)"):
            cursor[np.array([[4, 1]])]
        session.close()

    execute_directly(program)


def test_keys_of_text_and_of_several_columns_are_found() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, towns = new_input(scope, keys=2)
            trace = towns.arrange_by_key().trace()
        session.insert(np.array(["Rome", "Rome", "Bonn"]), np.array([1, 2, 1]), np.array([0.5, 1.5, 2.5]))
        session.close()
        worker.step()
        found = trace.cursor(0)[["Rome", "Bonn", "Oslo"], [2, 1, 1]]
        assert found.place.tolist() == [0, 1]
        assert found.values[0].tolist() == [1.5, 2.5]

    execute_directly(program)


@pytest.mark.parametrize(("one", "other"), [("a", "a\0"), (b"a", b"a\0")])
def test_keys_that_end_in_zeros_are_found(one: object, other: object) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, words = new_input(scope)
            trace = words.arrange_by_key().trace()
        session.insert([one, other], [1, 2])
        session.close()
        worker.step()
        cursor = trace.cursor(0)
        for key, value in ((one, 1), (other, 2), ([other], 2), ((other,), 2)):
            assert cursor[key].values[0].tolist() == [value]

    execute_directly(program)


def test_a_cursor_counts_records_each_in_its_place() -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        cursor = trace.cursor(1)
        columns = np.array([1, 4, 1, 1, 1]), np.array([3, 3, 2, 4, 3])
        assert cursor.counts(columns).tolist() == [2, 0, 1, 0, 2]
        assert cursor.counts((1, 3)).tolist() == [2]
        assert cursor.counts((np.array([], np.int64), np.array([], np.int64))).tolist() == []
        with pytest.raises(DataError, match="the value held integers and now holds text"):
            cursor.counts((1, "one"))
        with pytest.raises(DataError, match=r"the value had 1 column\(s\) and now has 0"):
            cursor.counts((1,))
        session.close()

    execute_directly(program)


def test_records_of_keys_alone_are_counted() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, names = new_input(scope)
            trace = names.arrange_by_key().trace()
        session.advance_to(1)
        worker.step()
        assert trace.cursor(0).counts(("ann",)).tolist() == [0]
        session.insert(["ann", "bob", "ann"])
        session.close()
        worker.step()
        assert trace.cursor(1).counts((np.array(["bob", "ann", "cem", "ann"]),)).tolist() == [1, 2, 0, 2]

    execute_directly(program)


def test_a_negative_count_of_a_record_is_refused_unless_the_cursor_is_signed() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            trace = numbers.arrange_by_key().trace()
        session.update(1, 2, diff=-1)
        session.insert(1, 3)
        session.close()
        worker.step()
        assert trace.cursor(0).counts((1, 3)).tolist() == [1]
        assert trace.cursor(0, signed=True).counts((1, 2)).tolist() == [-1]
        with pytest.raises(DataError, match="negative"):
            trace.cursor(0).counts((1, 2))

    execute_directly(program)


def often_in_two_epochs(worker: Worker) -> tuple[InputSession, Trace]:
    """Return an input, and a trace of two epochs, each of which has half as many of one record as is too often."""
    with worker.dataflow() as scope:
        session, words = new_input(scope)
        trace = words.arrange_by_key().trace()
    for epoch in range(2):
        session.update("ann", 8, diff=1 << 62)
        session.advance_to(epoch + 1)
        worker.step()
    return session, trace


def test_consolidating_names_a_record_that_occurs_too_often() -> None:
    def program(worker: Worker) -> None:
        session, trace = often_in_two_epochs(worker)
        trace.allow_compaction_to(1)
        before = trace.batches()
        with pytest.raises(DataError, match=r"how often \('ann', 8\) occurs does not fit into 64 bits"):
            trace.consolidate()
        assert trace.batches() == before
        session.close()

    execute_directly(program)


def test_a_lookup_names_a_record_that_occurs_too_often() -> None:
    def program(worker: Worker) -> None:
        session, trace = often_in_two_epochs(worker)
        cursor = trace.cursor(1)
        for look_up in (lambda: cursor[["bob", "ann"]], lambda: cursor.counts((["bob", "ann"], [8, 8]))):
            with pytest.raises(DataError, match=r"how often \('ann', 8\) occurs does not fit into 64 bits"):
                look_up()
        session.close()

    execute_directly(program)


@pytest.mark.parametrize("limit", ["x", b"x", math.nan, np.float32("nan"), None, [6], np.array([6]), 1j, True])
def test_a_cursor_refuses_a_limit_that_is_not_a_number(limit: Any) -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        with pytest.raises(DataError, match=r"the key holds integers, .* below a number, not "):
            trace.cursor(1).below(limit)
        session.close()

    execute_directly(program)


@pytest.mark.parametrize(
    ("key", "limit"),
    [((1 << 53) + 3, 2.0**53 + 4), ((1 << 53) + 3, np.float64(2.0**53 + 4)), ((1 << 63) - 1, 1 << 63)],
)
def test_keys_that_no_float_equals_are_compared_with_a_limit_exactly(key: int, limit: Any) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            trace = numbers.arrange_by_key().trace()
        session.insert(key, 7)
        session.advance_to(1)
        worker.step_while(lambda: trace.upper.less_equal((0,)))
        assert trace.cursor(0).below(limit).records() == {(key, 7): 1}
        assert not trace.cursor(0).below(key).records()
        session.close()

    execute_directly(program)


@pytest.mark.parametrize("limit", [2, 2.0, 1.5, np.int8(2), np.float32(1.5), np.array(2)[()]])
def test_a_limit_may_be_any_number(limit: Any) -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        cursor = trace.cursor(1)
        assert {key for key, _ in cursor.below(limit).records()} == {1}
        assert cursor.below(math.inf).records() == cursor.below(1 << 70).records() == trace.contents(1).records()
        assert not cursor.below(-math.inf).records()
        assert not cursor.below(-(1 << 70)).records()
        session.close()

    execute_directly(program)


def test_a_cursor_cannot_be_iterated_over() -> None:
    def program(worker: Worker) -> None:
        _, trace = _edges(worker)
        cursor = trace.cursor(1)
        with pytest.raises(TypeError, match="iter"):
            list(cursor)  # type: ignore[call-overload]
        with pytest.raises(TypeError, match="iter"):
            1 in cursor  # type: ignore[operator]  # noqa: B015

    execute_directly(program)


def test_the_contents_of_all_workers_together_are_the_collection() -> None:
    def program(worker: Worker) -> dict[tuple[int, ...], int]:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            trace = numbers.count().arrange_by_key().trace()
        if worker.index == 0:
            session.insert(np.repeat(np.arange(20), np.arange(20)))
        session.close()
        worker.step_while(lambda: bool(trace.upper))
        return trace.contents(0).records()

    shares = execute(program, Config(workers=2))
    assert all(shares)
    assert {record: count for share in shares for record, count in share.items()} == {(n, n): 1 for n in range(1, 20)}


def test_the_arrangement_of_an_inner_scope_has_no_trace_of_its_own() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            _, edges = new_input(scope)
            arranged = edges.arrange_by_key()
            with scope.iterative() as inner, pytest.raises(BuildError, match="take that of the arrangement outside"):
                arranged.enter(inner).trace()

    execute_directly(program)


def test_an_import_that_delays_its_dataflow_names_the_dataflow_it_waits_for() -> None:
    def program(worker: Worker) -> str:
        with worker.dataflow("graph") as scope:
            session, collection = new_input(scope)
            trace = collection.arrange_by_key().trace()
        session.insert(1, 2)
        session.advance_to(3)
        worker.step_while(lambda: trace.upper.less_equal((2,)))
        with worker.dataflow("question") as scope:
            answer = trace.import_into(scope).count().output()
        worker.step_while(lambda: answer.less_than(3))
        return worker.explain()

    text = execute_directly(program)
    assert "waits for dataflow 0 ('graph'), whose frontier is [(3,)]" in text


def test_a_dataflow_that_could_not_be_built_reads_no_trace() -> None:
    def program(worker: Worker) -> None:
        session, trace = _edges(worker)
        readers = trace.statistics().readers
        gc.disable()
        try:
            for _ in range(3):
                with pytest.raises(ZeroDivisionError), worker.dataflow() as scope:
                    trace.import_into(scope).count().map(lambda *columns: columns, keys=1 // 0)
                assert trace.statistics().readers == readers
        finally:
            gc.enable()
        session.close()

    execute_directly(program)
