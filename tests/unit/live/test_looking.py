"""What another thread sees of a worker, against what is known of it."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Callable
from itertools import count
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from timely import Input, Probe, Worker, execute_directly, new_input
from timely.live import latency, looking
from timely.live.latency import Epochs, _Front, quantiles
from timely.live.looking import NANOSECONDS, QUEUED, RECEIVED, RUNS, Looking, held, shapes
from timely.live.neighbours import _decode, _encode
from timely.live.shape import Diagram, shape_from
from timely.live.state import JobState, StateChanges, decoded, frontier_text
from timely.progress.antichain import Antichain

EPOCH = 20_000
"""The nanoseconds of an epoch on a clock of a test."""


def chain(worker: Worker) -> tuple[Input, Probe]:
    with worker.dataflow("words") as scope:
        numbers, stream = new_input(scope, name="numbers")
        probe = stream.map(lambda x: x + 1).exchange().probe()
    return numbers, probe


def begin(look: Looking, worker: Worker) -> None:
    """Look until the worker counts: it begins after the second look."""
    for _ in range(2):
        look.look()
        worker.step()
    assert worker.log.is_counting


def clock_of_a_test(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[tuple[float, Callable[[], None]]]]:
    """Let looks have a clock and timers of their own, and 50 epochs in a period; return both."""
    now, timers = [EPOCH], list[tuple[float, Callable[[], None]]]()
    fake = SimpleNamespace(perf_counter_ns=lambda: now[0], thread_time_ns=lambda: 0)
    monkeypatch.setattr(looking, "clock", fake)
    monkeypatch.setattr(looking, "PERIOD_NANOSECONDS", 50 * EPOCH)
    monkeypatch.setattr(Worker, "call_after", lambda _, seconds, call: timers.append((now[0] + seconds * 1e9, call)))
    return now, timers


@pytest.mark.composed
def test_a_state_has_what_operators_did_and_sends_only_what_changes() -> None:
    def program(worker: Worker) -> None:
        numbers, probe = chain(worker)
        look = Looking(0)
        state, changes = JobState(), None
        begin(look, worker)
        for epoch in range(1, 6):
            numbers.send(epoch)
            numbers.advance_to(epoch)
            worker.step_while(lambda: probe.less_than(numbers.epoch))
            seen = [look.look()]
            if state.unknown(seen):
                state.add_shapes(shapes())
                changes = StateChanges(state)
            assert state.take(seen) == set()
        assert changes is not None
        shape = state.dataflows[0].shape
        names = [node.name for node in shape.nodes]
        rows = state.dataflows[0].rows
        assert rows[names.index("exchange"), RECEIVED] == 5
        assert rows[names.index("map"), RECEIVED] == 5
        assert rows[names.index("exchange"), RUNS] == worker.dataflows[0].operators[1].activations
        assert rows[names.index("exchange"), NANOSECONDS] > 0
        first = changes.as_data([])
        changed = {row[0] for row in decoded(first["dataflows"]["0"]["rows"])}
        assert changed >= {names.index("exchange"), names.index("map")}
        ((text, *nodes),) = first["dataflows"]["0"]["frontiers"]
        assert text == "5"
        assert names.index("exchange") in nodes
        json.dumps(first)
        state.take([look.look()])
        assert "rows" not in changes.as_data([])["dataflows"].get("0", {})
        numbers.send(7)
        numbers.flush()
        state.take([look.look()])
        moved = changes.as_data([])["dataflows"]["0"]["rows"]
        assert [row[0] for row in decoded(moved) if row[1 + QUEUED]] == [names.index("exchange")]
        assert "operator 'exchange'" in "".join(held(0))
        look.close()
        numbers.close()
        worker.step()
        assert worker.dataflows == []
        assert state.take([look.look()]) == {0}
        assert not worker.log.is_counting

    execute_directly(program)


@pytest.mark.composed
@pytest.mark.interpreted
def test_counts_are_extrapolated_where_a_worker_is_too_busy_to_count_all(monkeypatch: pytest.MonkeyPatch) -> None:
    now, timers = clock_of_a_test(monkeypatch)
    monkeypatch.setattr(looking, "BUDGET", 20)

    def program(worker: Worker) -> None:
        numbers, probe = chain(worker)
        look = Looking(0)
        begin(look, worker)
        counted = 0
        for sent in range(1, 2001):
            numbers.send(sent)
            numbers.advance_to(sent)
            worker.step_while(lambda: probe.less_than(numbers.epoch))
            now[0] += EPOCH
            while timers and timers[0][0] <= now[0]:
                timers.pop(0)[1]()
            counted += worker.log.is_counting
            if sent % 50 == 0:
                seen = look.look()
        exchange = seen.workers[0].dataflows[0].rows[1]
        assert 0 < counted < 0.8 * 2000, "all of the time was counted, or none"
        assert 0.9 * 2000 < exchange[RECEIVED] < 1.1 * 2000
        look.close()

    execute_directly(program)


@pytest.mark.composed
@pytest.mark.interpreted
def test_a_worker_that_counted_much_because_it_had_been_idle_counts_nothing_for_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, timers = clock_of_a_test(monkeypatch)

    def program(worker: Worker) -> None:
        numbers, probe = chain(worker)
        look = Looking(0)
        begin(look, worker)

        def go(epochs: int) -> int:
            """Return in how many epochs until the next look the worker counted."""
            counted = 0
            for _ in range(epochs):
                counted += worker.log.is_counting
                numbers.send(7)
                numbers.advance_to(numbers.epoch + 1)
                worker.step_while(lambda: probe.less_than(numbers.epoch))
                now[0] += EPOCH
            look.look()
            worker.step()
            return counted

        assert go(50) == 50, "it knew nothing of what would come"
        assert not timers
        spans = [go(50) for _ in range(2 * looking.LONGEST_PAUSE)]
        idle = next(number for number, counted in enumerate(spans) if counted)
        assert idle == looking.LONGEST_PAUSE, "50 activations take 75,000 ns, and each span may take 3,000"
        look.close()

    execute_directly(program)


@pytest.mark.composed
@pytest.mark.interpreted
def test_a_worker_with_few_activations_counts_all_however_long_it_takes_to_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, _ = clock_of_a_test(monkeypatch)
    readings = count(0, 10_000)  # beginning takes 10,000 ns of the processor, and each span may take 3,000
    monkeypatch.setattr(looking.clock, "thread_time_ns", lambda: next(readings))

    def program(worker: Worker) -> None:
        numbers, probe = chain(worker)
        look = Looking(0)
        begin(look, worker)
        for sent in range(1, 11):
            numbers.send(sent)
            numbers.advance_to(sent)
            worker.step_while(lambda: probe.less_than(numbers.epoch))
            now[0] += 50 * EPOCH
            seen = look.look()
            worker.step()
            assert worker.log.is_counting
        assert seen.workers[0].dataflows[0].rows[1][RECEIVED] == 10
        look.close()

    execute_directly(program)


def test_another_process_sends_the_same_numbers() -> None:
    def program(worker: Worker) -> None:
        numbers, probe = chain(worker)
        look = Looking(3)
        begin(look, worker)
        numbers.send(1)
        numbers.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        seen = look.look()
        again = _decode(5, json.loads(json.dumps(_encode(seen))))
        assert (again.process, again.pid) == (5, seen.pid), "whoever asks knows which process this is in the run"
        assert again.workers[0].doing == seen.workers[0].doing
        assert np.array_equal(again.workers[0].dataflows[0].rows, seen.workers[0].dataflows[0].rows)
        assert again.workers[0].dataflows[0].frontiers == seen.workers[0].dataflows[0].frontiers != {}
        assert again.epochs == seen.epochs
        assert [shape_from(json.loads(json.dumps(shape.as_data()))) for shape in shapes()] == shapes()
        look.close()

    execute_directly(program)


@pytest.mark.usefixtures("measured_however_long_it_takes")
def test_an_epoch_lasts_from_the_end_of_its_input_until_it_is_final() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.inspect(lambda _: clock.sleep(0.02)).probe()
        epochs = Epochs(scope.dataflow)
        for epoch in range(1, 4):
            numbers.send(epoch)
            numbers.advance_to(epoch)
            worker.step_while(lambda: probe.less_than(numbers.epoch))
            clock.sleep(0.05)  # of the program, before the next input
        found, _ = epochs.drain()
        assert [epoch.frontier.elements for epoch in found] == [((1,),), ((2,),), ((3,),)]
        median, _, most = quantiles(found)
        assert 0 <= median <= most < 50e6
        numbers.close()

    execute_directly(program)


@pytest.mark.usefixtures("measured_however_long_it_takes")
def test_an_epoch_of_several_inputs_and_answers_ends_with_the_last_of_them() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            inputs = [new_input(scope) for _ in range(3)]
            probes = [stream.exchange().probe() for _, stream in inputs]
        epochs = Epochs(scope.dataflow)

        def go(*times: int) -> list[int]:
            for (numbers, _), time in zip(inputs, times):
                numbers.advance_to(time)
            worker.step_while(lambda: any(probe.less_than(time) for probe, time in zip(probes, times)))
            return [epoch.frontier.elements[0][0] for epoch in epochs.drain()[0]]

        assert go(1, 1, 0) == []
        assert go(1, 2, 1) == [1]
        assert go(4, 4, 1) == []
        assert go(4, 4, 9) == [4]
        assert go(13, 12, 11) == [11]  # one epoch, although each input moves
        epochs.end()
        assert not scope.dataflow._followers

    execute_directly(program)


TIMES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=3)


@given(st.lists(st.dictionaries(st.integers(0, 5), TIMES)))
def test_a_front_is_that_of_all_its_locations(moves: list[dict[int, list[tuple[int, int]]]]) -> None:
    fronts = dict.fromkeys(range(6), Antichain([(0, 0)]))
    dataflow: Any = SimpleNamespace(tracker=SimpleNamespace(frontier=fronts.__getitem__))
    front = _Front(dataflow, [0, 1, 2, 3])
    for moved in moves:
        before = front.frontier
        fronts |= {location: Antichain(times) for location, times in moved.items()}
        assert front.update(list(moved)) == (front.frontier != before)
        assert front.frontier == Antichain(time for each in range(4) for time in fronts[each].elements)


@pytest.mark.parametrize(("moves", "measured"), [(1000, 64), (4, 4), (1, 1)])
def test_epochs_that_take_long_to_measure_are_not_measured_until_somebody_looks(
    moves: int, measured: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = count()
    monkeypatch.setattr(latency, "clock", SimpleNamespace(perf_counter_ns=lambda: next(readings)))
    monkeypatch.setattr(latency, "NANOSECONDS_AT_MOST", moves)  # each takes one nanosecond

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            (numbers, stream), (others, more) = new_input(scope), new_input(scope)
            probe, another = stream.exchange().probe(), more.exchange().probe()
        epochs = Epochs(scope.dataflow)

        def go(steps: int, *inputs: Input) -> int:
            for _ in range(steps):
                for each in inputs:
                    each.advance_to(each.epoch + 1)
                worker.step_while(lambda: probe.less_than(numbers.epoch) or another.less_than(others.epoch))
            found, wants = epochs.drain()
            assert wants
            return len(found)

        assert go(100, numbers, others) == measured
        assert not scope.dataflow._followers
        epochs.follow()
        assert go(100, numbers) == 0
        assert bool(scope.dataflow._followers) == (moves == 1000)
        epochs.follow()
        assert epochs.drain() == ([], False)

    execute_directly(program)


@pytest.mark.usefixtures("measured_however_long_it_takes")
def test_epochs_beyond_a_number_are_not_measured_until_somebody_looks() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.exchange().probe()
        epochs = Epochs(scope.dataflow)

        def go(count: int) -> None:
            for _ in range(count):
                numbers.send(1)
                numbers.advance_to(numbers.epoch + 1)
                worker.step_while(lambda: probe.less_than(numbers.epoch))

        go(200)
        found, wants = epochs.drain()
        assert (len(found), wants) == (64, True)
        epochs.follow()
        go(3)
        assert [epoch.frontier.elements[0][0] for epoch in epochs.drain()[0]] == [201, 202, 203]
        epochs.end()
        go(3)
        assert epochs.drain()[0] == []

    execute_directly(program)


@pytest.mark.composed
def test_a_shape_has_nested_scopes_and_what_meets_there() -> None:
    found: list[Diagram] = []

    def program(worker: Worker) -> None:
        with worker.dataflow("outer") as scope, scope.iterative("loop") as loop:
            handle, again = loop.feedback()
            stream = scope.to_stream([1, 2]).enter(loop).concat(again).map(lambda x: x + 1)
            stream.filter(lambda x: x < 5).connect_loop(handle)
            stream.leave().probe()
        found.extend(shapes())

    execute_directly(program)
    shape = found[0]
    assert [(box.name, box.parent, box.is_loop) for box in shape.scopes] == [("outer", -1, False), ("loop", 0, True)]
    kinds = {node.name: (node.kind, shape.scopes[node.scope].name) for node in shape.nodes}
    assert kinds["to_stream"] == ("operator", "outer")
    assert kinds["concat"] == ("meeting", "loop")
    assert kinds["filter"] == ("in line", "loop")
    names = [node.name for node in shape.nodes]
    arrows = {(names[edge.source], names[edge.target]) for edge in shape.edges}
    assert {("concat", "map"), ("map", "filter"), ("map", "leave"), ("leave", "probe")} <= arrows
    back = [(names[edge.source], names[edge.target]) for edge in shape.edges if edge.is_loop]
    assert back == [("filter", "feedback")]


def test_frontiers_are_shown_as_people_write_them() -> None:
    assert frontier_text(((3, 4),)) == "(3, 4)"


def test_an_activation_that_goes_on_is_time_of_its_operator_and_counts_once() -> None:
    begun, may_end = Event(), Event()

    def slow(x: Any) -> Any:
        if x.max() > 0:
            begun.set()
            assert may_end.wait(20)
        return x

    def program(worker: Worker) -> None:
        with worker.dataflow("slow") as scope:
            numbers, stream = new_input(scope)
            probe = stream.exchange().map(slow).probe()
        look = Looking(0)
        begin(look, worker)
        taken: list[int] = []

        def watch() -> None:
            assert begun.wait(20)
            started = clock.perf_counter_ns()
            for _ in range(3):
                clock.sleep(0.05)
                rows = look.look().workers[0].dataflows[0].rows
                taken.append(int(rows[:, NANOSECONDS].sum()))
            taken.append(clock.perf_counter_ns() - started)
            may_end.set()

        watcher = Thread(target=watch)
        watcher.start()
        began = clock.perf_counter_ns()
        numbers.send(np.array([1]))
        numbers.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        ended = clock.perf_counter_ns()
        watcher.join(20)
        first, second, third, lasted = taken
        assert second - first >= 45_000_000
        assert third - second >= 45_000_000
        assert third <= lasted
        total = int(look.look().workers[0].dataflows[0].rows[:, NANOSECONDS].sum())
        assert third <= total < ended - began + (third - first) // 2, "what was shown before is not counted again"
        numbers.close()
        look.close()

    execute_directly(program)
