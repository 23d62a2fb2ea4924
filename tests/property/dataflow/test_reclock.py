"""Records wait for the first tick that is not before them, whatever comes in between."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from timely import Time, Worker, execute_directly, new_input


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
