"""Runs in which nothing moves: which worker reports it, and when none does."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from threading import Event, Thread, Timer

import pytest

from timely import Capability, Config, InputPort, OutputPort, Pipeline, Worker, execute, execute_directly, new_input
from timely.dataflow.operators.input import Input
from timely.errors import StalledError
from timely.worker import standstill
from timely.worker.standstill import engaged, is_alone
from timely.worker.status import running_workers

SPAN = 0.2
Reports = list[str]


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> Reports:
    """The reports of a process whose other threads (those of the test runner) are ignored."""
    texts: Reports = []
    monkeypatch.setattr(standstill, "is_alone", lambda: True)
    monkeypatch.setattr(standstill, "notify", texts.append)
    return texts


def on_each(function: Callable[[Worker], None]) -> None:
    for worker in running_workers():
        worker.call(lambda worker=worker: function(worker))  # type: ignore[misc]


@pytest.mark.lengthy
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_standstill_is_reported_once_and_the_next_one_again(
    reports: Reports, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    inputs: dict[int, Input] = {}

    def report(text: str) -> None:
        reports.append(text)
        is_first = len(reports) == 1

        def move_on(worker: Worker) -> None:
            inputs[worker.index].advance_to(7) if is_first else inputs[worker.index].close()

        Timer(5 * SPAN, on_each, [move_on]).start()

    monkeypatch.setattr(standstill, "notify", report)

    def program(worker: Worker) -> None:
        with worker.dataflow("numbers") as scope:
            inputs[worker.index], stream = new_input(scope, name="numbers")
            stream.exchange().probe()
        while worker.step_or_park():
            pass

    execute(program, Config(workers=workers, stall_seconds=SPAN))
    assert len(reports) == 2
    for time, text in zip((0, 7), reports):
        assert text.startswith(
            "nothing has moved on worker 0 for 0.2 s\ndataflow 0 ('numbers') is kept from completing"
        )
        for index in range(workers):
            assert f"a capability for ({time},) on output 0 of operator 'numbers'" in text
            assert f"waits for numbers.advance_to({time + 1}) or numbers.close(), worker {index}" in text


@pytest.mark.lengthy
@pytest.mark.parametrize("idle", ["limited", "program", "operator", "timer", "request"])
def test_nothing_is_reported_while_one_worker_may_still_move(reports: Reports, idle: str) -> None:
    ended = Event()

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope, name="numbers")
            probe = stream.exchange(lambda number: number).inspect(lambda _: clock.sleep(5 * SPAN)).probe()
        if worker.index == 1 and idle == "limited":
            while not ended.is_set():
                worker.step_or_park(SPAN / 3)
        elif worker.index == 1 and idle == "program":
            ended.wait(30)
        elif worker.index == 1 and idle == "timer":
            worker.call_after(5 * SPAN, numbers.close)
        elif worker.index == 1 and idle == "request":
            for beat in range(1, 20):
                Timer(beat * SPAN / 4, worker.call, [lambda: None]).start()
            Timer(5 * SPAN, worker.call, [numbers.close]).start()
        elif worker.index == 0 and idle == "operator":
            numbers.send(1)
        if worker.index == 0 or idle in ("limited", "program", "operator"):
            numbers.close()
        worker.step_while(lambda: not probe.done())

    Timer(5 * SPAN, ended.set).start()
    execute(program, Config(workers=2, stall_seconds=0.2))
    assert [text for text in reports if "is in operator" not in text] == []


def test_a_thread_of_the_program_may_wake_a_worker() -> None:
    ended = Event()
    thread = Thread(target=ended.wait)
    before = is_alone()
    thread.start()
    with engaged():
        assert not is_alone()
    ended.set()
    thread.join()
    assert is_alone() == before


def test_a_worker_that_never_slept_has_not_stood_still(reports: Reports) -> None:
    def program(worker: Worker) -> bool:
        return worker.standstill.has_lasted(0.001)

    assert execute(program) == [False]


def keep(kept: list[Capability]) -> Callable[[Worker], None]:
    """Return a program with a source that keeps its capability."""

    def constructor(capability: Capability) -> Callable[[InputPort, OutputPort], None]:
        kept.append(capability)

        def logic(input: InputPort, output: OutputPort) -> None:
            for _ in input:
                pass

        return logic

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).unary_frontier(Pipeline(), constructor, name="forgetful")

    return program


def test_a_single_worker_that_can_never_complete_fails_when_its_program_has_returned(reports: Reports) -> None:
    with pytest.raises(StalledError) as caught:
        execute_directly(keep([]))
    assert "the program has returned, and its dataflows are not complete" in str(caught.value)
    assert "a capability for (0,) on output 0 of operator 'forgetful'" in str(caught.value)
    assert reports == []


@pytest.mark.parametrize("outside", ["a thread", "a signal"])
def test_a_single_worker_that_something_may_wake_sleeps_when_its_program_has_returned(
    monkeypatch: pytest.MonkeyPatch, outside: str
) -> None:
    monkeypatch.setattr(standstill, "is_alone", lambda: outside == "a signal")
    kept: list[Capability] = []

    def program(worker: Worker) -> None:
        keep(kept)(worker)
        Timer(0.1, worker.call, [lambda: kept[0].drop()]).start()

    execute(program, Config(stall_seconds=0 if outside == "a signal" else None))
    assert kept[0].output is None
