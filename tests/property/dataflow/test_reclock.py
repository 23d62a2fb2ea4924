"""Records wait for the first tick that is not before them, whatever comes in between."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from timely import Time, Worker, execute_directly, new_input
from timely.dataflow.operators.reclock import _taken
from timely.order import less_equal


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=12))
def test_each_record_is_sent_at_the_first_tick_that_is_not_before_it(epochs: list[tuple[bool, bool, bool]]) -> None:
    """Each epoch has a record or not, a tick or not, and a step at its end or not."""
    found: list[tuple[Time, Any]] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            records, stream = new_input(scope)
            ticks, clock = new_input(scope)
            stream.reclock(clock).inspect_time(lambda time, record: found.append((time, record)))
        for epoch, (has_record, has_tick, is_step) in enumerate(epochs):
            records.advance_to(epoch)
            ticks.advance_to(epoch)
            if has_record:
                records.send(epoch)
            if has_tick:
                ticks.send("tick")
            if is_step:
                worker.step()

    execute_directly(program)
    at = [epoch for epoch, (_, has_tick, _) in enumerate(epochs) if has_tick]
    due = [
        (min((tick for tick in at if tick >= epoch), default=None), epoch)
        for epoch, (has_record, _, _) in enumerate(epochs)
        if has_record
    ]
    assert found == [((tick,), epoch) for tick, epoch in due if tick is not None]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))), st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_the_times_at_or_before_a_tick_are_taken(times: list[Time], now: Time) -> None:
    heap = sorted(times)
    assert _taken(heap, now) == sorted(time for time in times if less_equal(time, now))
    assert sorted(heap) == sorted(time for time in times if not less_equal(time, now))
    assert not heap or heap[0] == min(heap)
