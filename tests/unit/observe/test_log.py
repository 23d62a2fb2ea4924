"""The log: listeners receive what happened, and nothing is recorded without a listener."""

from __future__ import annotations

import time as clock
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from timely import (
    Capability,
    Config,
    InputPort,
    OutputPort,
    Pipeline,
    Scope,
    Worker,
    example,
    execute,
    execute_directly,
    log_stream,
    new_input,
    replay_into,
)
from timely.capture import EventFileReader, EventFileWriter
from timely.errors import BuildError, OperatorError
from timely.observe import events as kinds
from timely.observe.log import Log
from timely.run.execute import local_allocators, run

log_stream_module = import_module("timely.dataflow.operators.log_stream")  # the function has the module's name
on_workers = pytest.mark.parametrize("workers", [1, 3])
EVERYTHING = [
    *kinds.BUILT,
    *kinds.SCHEDULE,
    *kinds.INLINE,
    kinds.BatchEmitted,
    *kinds.MESSAGES,
    *kinds.PROGRESS,
    *kinds.CAPABILITIES,
    kinds.FrontierChanged,
    kinds.DataflowCompleted,
    kinds.Parked,
    kinds.Unparked,
    kinds.ApplicationText,
]


def holding(capability: Capability) -> Callable[[InputPort, OutputPort], None]:
    """Keep batches until their time is complete."""
    capability.drop()
    held: dict[Any, Any] = {}

    def logic(input: InputPort, output: OutputPort) -> None:
        for right, batch in input:
            if right.time not in held:
                held[right.time] = right.retain(), []
            held[right.time][1].append(batch)
        for time in sorted(held):
            if not input.frontier.less_equal(time):
                capability, batches = held.pop(time)
                with capability:
                    for batch in batches:
                        output.give(capability, batch)

    return logic


def exchanging(scope: Scope) -> tuple[Any, Any]:
    """Return an input, and a probe of its stream after an exchange, a delay and a loop."""
    numbers, stream = new_input(scope, name="numbers")
    counted = stream.exchange().unary_frontier(Pipeline(), holding, name="holding")
    with scope.iterative("loop") as inner:
        handle, again = inner.feedback()
        halves = counted.enter(inner).concat(again).exchange(lambda x: x + 1).map(lambda x: x // 2)
        halves.filter(lambda x: x > 0).connect_loop(handle)
        probe = halves.filter(lambda x: x == 0).leave().probe()
    return numbers, probe


def logged(epochs: list[int], workers: int, *wanted: Any) -> list[list[Any]]:
    """Return each worker's log of a program that sends this many numbers in each epoch."""

    def program(worker: Worker) -> list[Any]:
        found: list[Any] = []
        worker.log.listen(found.extend, *wanted)
        with worker.dataflow("exchanging") as scope:
            numbers, probe = exchanging(scope)
        for epoch, count in enumerate(epochs):
            if count:
                numbers.send(np.arange(count))
            numbers.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(numbers.time))
        numbers.close()
        while worker.step_or_park():
            pass
        return found

    return execute(program, Config(workers=workers))


def of(kind: Any, events: Sequence[Any]) -> list[Any]:
    return [event for event in events if type(event) is kind]


@on_workers
@settings(max_examples=15, deadline=None)
@given(epochs=st.lists(st.integers(0, 40), min_size=1, max_size=4))
def test_every_batch_sent_is_received_once_by_the_worker_it_was_sent_to(workers: int, epochs: list[int]) -> None:
    sent: Counter[Any] = Counter()
    received: Counter[Any] = Counter()
    for events in logged(epochs, workers, *kinds.MESSAGES):
        for event in of(kinds.MessageSent, events):
            sent[event.channel, event.worker, event.target, event.records, event.bytes] += 1
        for event in of(kinds.MessageReceived, events):
            received[event.channel, event.source, event.worker, event.records, event.bytes] += 1
    assert sent == received
    into_exchange = sum(records * times for (channel, _, _, records, _), times in sent.items() if channel == 0)
    assert into_exchange == workers * sum(epochs)


@pytest.mark.composed
@on_workers
def test_every_kind_of_record_is_made_in_the_order_of_times_and_only_if_requested(workers: int) -> None:
    for worker, events in enumerate(logged([30, 0, 10], workers, *EVERYTHING)):
        assert all(event.worker == worker for event in events)
        times = [event.time for event in events]
        assert times == sorted(times)
        made = {type(event) for event in events}
        expected = set(EVERYTHING) - {kinds.ApplicationText}
        if workers == 1:
            expected -= {*kinds.PROGRESS, kinds.Parked, kinds.Unparked}
        assert made | {kinds.Parked, kinds.Unparked} == expected | {kinds.Parked, kinds.Unparked}
    for events in logged([30], workers, kinds.ScheduleStopped, kinds.DataflowCompleted):
        assert {type(event) for event in events} == {kinds.ScheduleStopped, kinds.DataflowCompleted}


def test_activations_begin_and_end_in_turn_and_last_as_long_as_they_report() -> None:
    (events,) = logged([50], 1, *kinds.SCHEDULE)
    starts, stops = events[::2], events[1::2]
    assert len(starts) == len(stops) > 4
    for start, stop in zip(starts, stops):
        assert type(start) is kinds.ScheduleStarted
        assert type(stop) is kinds.ScheduleStopped
        assert start.operator == stop.operator
        assert stop.nanoseconds == stop.time - start.time


def test_progress_that_a_worker_sends_arrives_at_all_others() -> None:
    everything = logged([30, 5], 3, *kinds.PROGRESS)
    for receiver, events in enumerate(everything):
        for sender, theirs in enumerate(everything):
            if sender != receiver:
                arrived = [event.changes for event in of(kinds.ProgressReceived, events) if event.source == sender]
                assert arrived == [event.changes for event in of(kinds.ProgressSent, theirs)]
                assert arrived


def test_progress_between_processes_is_recorded_with_its_bytes(tmp_path: Path) -> None:
    addresses = (f"ipc://{tmp_path}/0", f"ipc://{tmp_path}/1")
    found: list[tuple[int, int, list[kinds.ProgressSent]]] = []

    def program(worker: Worker) -> None:
        events: list[Any] = []
        worker.log.listen(events.extend, kinds.ProgressSent)
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.exchange().probe()
        numbers.send([1, 2])
        numbers.close()
        worker.step_while(lambda: not probe.done())
        sent = scope.dataflow.protocol.statistics().bytes_sent
        found.append((sent, worker.allocator.progress_bytes, events))

    configs = [Config(processes=2, process=process, addresses=addresses) for process in range(2)]
    workers = [(local_allocators(config)[0], program, config) for config in configs]
    threads = [Thread(target=run, args=each, name="timely test") for each in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "the two processes do not end"
    assert len(found) == 2
    for sent, of_worker, events in found:
        assert sent == of_worker == sum(event.nbytes for event in events)
        assert min(event.nbytes for event in events) > 10


@on_workers
def test_every_capability_made_is_moved_from_its_last_time_and_dropped(workers: int) -> None:
    for events in logged([30, 5], workers, *kinds.CAPABILITIES):
        held: Counter[Any] = Counter()
        for event in events:
            where = event.operator, event.output
            if type(event) is kinds.CapabilityMade:
                held[(*where, event.at)] += 1
                assert __file__ in event.origin
            else:
                held[(*where, event.at)] -= 1
                assert held[(*where, event.at)] >= 0
            if type(event) is kinds.CapabilityMoved:
                held[(*where, event.to)] += 1
        assert len(held) > 2
        assert not any(held.values())


@on_workers
def test_the_last_frontier_everywhere_is_empty(workers: int) -> None:
    for events in logged([10], workers, kinds.FrontierChanged):
        last = {event.location: event.frontier for event in events}
        assert len(last) > 3
        assert set(last.values()) == {()}
        assert any("'holding'" in event.port for event in events)


@pytest.mark.composed
def test_a_later_listener_receives_what_has_been_built() -> None:
    def program(worker: Worker) -> list[list[Any]]:
        early: list[Any] = []
        late: list[Any] = []
        worker.log.listen(early.extend, *kinds.BUILT)
        with worker.dataflow("first") as scope:
            numbers, _ = exchanging(scope)
        worker.log.flush()
        worker.log.listen(late.extend, *kinds.BUILT)
        numbers.close()
        return [[event._replace(time=0) for event in events] for events in (early, late)]

    early, late = execute_directly(program)
    assert early == late
    operators = {event.name: event.operator for event in of(kinds.OperatorBuilt, early)}
    channels = {event.operator: event for event in of(kinds.ChannelBuilt, early)}
    assert set(operators) == {"numbers", "exchange", "holding"}
    assert channels[operators["holding"]].pact == "pipeline"
    assert channels[operators["holding"]].sources == (operators["holding"] - 1,)
    assert of(kinds.OperatorBuilt, early)[-1].path == "first/loop"


def test_a_listener_that_stops_leaves_nothing_behind() -> None:
    def program(worker: Worker) -> int:
        found: list[Any] = []
        with worker.dataflow() as scope:
            numbers, probe = exchanging(scope)

        def go_on() -> None:
            numbers.send(5)
            numbers.advance_to(numbers.epoch + 1)
            worker.step_while(lambda: probe.less_than(numbers.time))

        go_on()
        numbers.send(7)
        numbers.flush()
        stop = worker.log.listen(found.extend, *kinds.MESSAGES, *kinds.SCHEDULE, *kinds.CAPABILITIES)
        go_on()
        queued = [event for event in of(kinds.MessageReceived, found) if event.source == -1]
        assert len(queued) == 1
        stop()
        seen = len(found)
        go_on()
        assert len(found) == seen
        (dataflow,) = worker.dataflows
        parts = [
            dataflow,
            *dataflow.operators,
            *dataflow.inlines,
            *[port for each in dataflow.operators for port in (*each.inputs, *each.outputs)],
        ]
        assert len(parts) > 8
        assert [part.recorder for part in parts] == [None] * len(parts)
        assert not worker.log.kinds
        numbers.close()
        return seen

    assert execute_directly(program) > 10


def test_no_message_is_recorded_while_listeners_want_only_progress() -> None:
    def program(worker: Worker) -> int:
        with worker.dataflow() as scope:
            numbers, probe = exchanging(scope)
        worker.log.listen(lambda _: None, *kinds.PROGRESS)
        for epoch in range(5):
            numbers.send(np.arange(10))
            numbers.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(numbers.time))
        numbers.close()
        recorder = scope.dataflow.recorder
        assert recorder is not None
        return sum(map(len, recorder.sources))

    assert execute(program, Config(workers=2)) == [0, 0]


def test_a_failed_activation_is_recorded_as_ended() -> None:
    found: list[Any] = []

    def program(worker: Worker) -> None:
        worker.log.listen(found.extend, *kinds.SCHEDULE)
        with worker.dataflow() as scope:
            scope.to_stream(range(3)).unary(Pipeline(), lambda input, output: 1 / 0, name="failing")  # type: ignore[arg-type,return-value]

    with pytest.raises(OperatorError):
        execute_directly(program)
    assert [type(event) for event in found[-2:]] == list(kinds.SCHEDULE)


def test_a_program_may_record_a_text() -> None:
    def program(worker: Worker) -> list[Any]:
        found: list[Any] = []
        worker.log.note("early")
        worker.log.listen(found.extend, kinds.ApplicationText)
        worker.log.note("late")
        worker.log.flush()
        return found

    (event,) = execute_directly(program)
    assert event.text == "late"
    assert event.time > 0


@on_workers
def test_a_dataflow_can_consume_the_log_of_its_worker_and_ends_with_the_dataflows_it_watches(workers: int) -> None:
    def program(worker: Worker) -> tuple[list[Any], list[Any]]:
        direct: list[Any] = []
        columns: list[Any] = []
        with worker.dataflow("watching") as scope:
            stream = log_stream(scope, kinds.MessageSent, interval=0.002)
            probe = stream.inspect_batch(lambda time, batch: columns.append((time, list(batch.rows())))).probe()
        worker.log.listen(direct.extend, kinds.MessageSent)
        with worker.dataflow("watched") as scope:
            numbers, done = exchanging(scope)
        for epoch in range(4):
            numbers.send(np.arange(20))
            numbers.advance_to(epoch + 1)
            worker.step_while(lambda: done.less_than(numbers.time))
            clock.sleep(0.003)
        numbers.close()
        while worker.step_or_park():
            pass
        assert probe.done()
        assert all(row[0] // 2_000_000 == time[0] for time, rows in columns for row in rows)
        return [tuple(event) for event in direct], [row for _, rows in columns for row in rows]

    for direct, streamed in execute(program, Config(workers=workers)):
        assert streamed == direct
        assert len({event[0] // 2_000_000 for event in direct}) > 1


def test_the_frontier_of_a_log_stream_advances_even_if_the_worker_sleeps() -> None:
    def program(worker: Worker) -> bool:
        with worker.dataflow("watching") as scope:
            probe = log_stream(scope, kinds.ScheduleStopped, interval=0.01).probe()
        with worker.dataflow("watched") as scope:
            _, stream = new_input(scope)
            stream.exchange().probe()
        deadline = clock.monotonic() + 10
        worker.step_while(lambda: probe.less_equal(0) and clock.monotonic() < deadline)
        return probe.less_equal(0)

    assert not execute_directly(program)


@pytest.mark.parametrize("kind", [kinds.Parked, kinds.ScheduleStopped])
def test_a_log_of_only_its_own_dataflow_does_not_feed_itself(kind: Any) -> None:
    def program(worker: Worker) -> int:
        with worker.dataflow("watching") as scope:
            log_stream(scope, kind, interval=0.001).probe()
        with worker.dataflow("watched") as scope:
            new_input(scope)[1].exchange().probe()
        steps = 0
        deadline = clock.monotonic() + 0.2
        while clock.monotonic() < deadline:
            worker.step_or_park(0.2)
            steps += 1
        return steps

    assert execute_directly(program) < 20


@pytest.mark.composed
def test_the_log_can_be_captured_in_a_file_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "log.events"

    def watch(worker: Worker) -> None:
        with worker.dataflow("watching") as scope:
            log_stream(scope, kinds.OperatorBuilt).capture_into(EventFileWriter(path))
        with worker.dataflow("watched") as scope:
            exchanging(scope)

    execute_directly(watch)
    rows = example(lambda scope: replay_into(scope, [EventFileReader(path)]))
    assert [row[4] for row in rows if row[5] == "watched"] == ["numbers", "exchange", "holding"]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda scope: log_stream(scope, kinds.Parked, interval=0), "interval must be positive"),
        (lambda scope: log_stream(scope, kinds.Parked, interval=float("nan")), "interval must be positive"),
    ],
)
def test_invalid_intervals_are_refused(make: Callable[[Scope], object], complaint: str) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            make(scope)

    with pytest.raises(BuildError, match=complaint):
        execute_directly(program)


@pytest.mark.parametrize("kind", [kinds.MESSAGES, "Parked", kinds.LogEvent, kinds.Parked(0, 0)])
@pytest.mark.parametrize(
    "ask",
    [
        lambda worker, scope, kind: log_stream(scope, kind),
        lambda worker, scope, kind: worker.log.listen(print, kinds.Parked, kind),
    ],
)
def test_a_value_that_is_not_a_kind_of_record_is_refused(ask: Callable[..., object], kind: object) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            ask(worker, scope, kind)

    with pytest.raises(BuildError, match="is not a kind of record"):
        execute_directly(program)


@pytest.mark.parametrize("kind", [kinds.Parked, kinds.Unparked])
def test_sleep_between_other_things_is_reported_while_they_run(kind: Any) -> None:
    def program(worker: Worker) -> bool:
        with worker.dataflow("watching") as scope:
            rows: list[Any] = []
            probe = log_stream(scope, kind, interval=0.002).inspect(rows.append).probe()
        with worker.dataflow("watched") as scope:
            numbers, _ = exchanging(scope)
        deadline = clock.monotonic() + 10
        while (not rows or probe.less_equal(0)) and clock.monotonic() < deadline:
            numbers.send(1)
            numbers.advance_to(numbers.epoch + 1)
            for _ in range(3):
                worker.step_or_park(0.0005)
        return bool(rows) and not probe.less_equal(0)

    assert execute_directly(program)


def test_sleep_alone_is_reported_many_times_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stream_module, "AT_ONCE", 50)

    def program(worker: Worker) -> int:
        with worker.dataflow("watching") as scope:
            rows: list[Any] = []
            log_stream(scope, kinds.Parked, interval=0.001).inspect(rows.append).probe()
        with worker.dataflow("watched") as scope:
            new_input(scope)[1].exchange().probe()
        deadline = clock.monotonic() + 10
        while len(rows) < 100 and clock.monotonic() < deadline:
            worker.step_or_park(0.0005)
        return len(rows)

    assert execute_directly(program) >= 100


def test_logs_of_sleep_do_not_wake_one_another() -> None:
    def program(worker: Worker) -> int:
        with worker.dataflow("watching") as scope:
            log_stream(scope, kinds.Parked, interval=0.001).exchange().probe()
        with worker.dataflow("watched") as scope:
            new_input(scope)[1].exchange().probe()
        steps = 0
        deadline = clock.monotonic() + 0.5
        while clock.monotonic() < deadline:
            worker.step_or_park(0.5)
            steps += 1
        return steps

    assert max(execute(program, Config(workers=3))) < 60


def test_a_dropped_log_stream_leaves_nothing_behind() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("watched") as scope:
            new_input(scope)[1].exchange().probe()
        for _ in range(3):
            with worker.dataflow("watching") as scope:
                log_stream(scope, kinds.OperatorBuilt)
            worker.step()
            worker.drop_dataflow(scope.dataflow)
        assert not worker.log.kinds
        assert not worker.log._on_end

    execute_directly(program)


def test_a_call_when_idle_can_be_cancelled() -> None:
    found: list[str] = []

    def program(worker: Worker) -> None:
        forget, _ = (worker.log.when_idle(partial(found.append, "over")) for _ in range(2))
        forget()
        forget()

    execute_directly(program)
    assert found == ["over"]


def test_stopping_twice_stops_no_other_listener() -> None:
    def program(worker: Worker) -> None:
        found: list[Any] = []
        first, second = (worker.log.listen(found.extend, kinds.ApplicationText) for _ in range(2))
        first()
        first()
        worker.log.note("hello")
        worker.log.flush()
        assert [event.text for event in found] == ["hello"]
        second()
        assert not worker.log.kinds

    execute_directly(program)


def test_removing_a_gauge_twice_removes_no_other() -> None:
    def program(worker: Worker) -> None:
        wanted: list[bool] = []

        def attach(log: Log) -> None:
            wanted.append(kinds.ApplicationText in log.kinds)

        first, second = worker.log.gauge(attach), worker.log.gauge(attach)
        first()
        first()
        stop = worker.log.listen(print, kinds.ApplicationText)
        assert wanted == [False, False, True]
        second()
        stop()
        assert wanted == [False, False, True]

    execute_directly(program)


def test_a_log_inside_a_loop_is_refused() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope, scope.iterative() as inner:
            log_stream(inner, kinds.Parked)

    with pytest.raises(BuildError, match="outermost scope"):
        execute_directly(program)
