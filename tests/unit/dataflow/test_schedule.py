"""Which operator runs next."""

from __future__ import annotations

from timely.dataflow.outstanding import Outstanding
from timely.dataflow.schedule import Schedulable, Schedule
from timely.progress.due import Agenda, Due


def test_a_source_that_a_frontier_wakes_waits_for_other_operators_and_for_room() -> None:
    is_congested = True
    source, consumer = Schedulable(), Schedulable()
    consumer.has_inputs = True
    schedule = Schedule(Outstanding(1, 1, lambda *_: None), lambda: is_congested, Due(Agenda(), 0))
    schedule.start([source, consumer])
    schedule.wake(source)
    schedule.wake(consumer)
    assert schedule.next() is consumer
    assert schedule.next() is None
    assert not schedule.resume()
    is_congested = False
    assert schedule.resume()
    assert schedule.next() is source
