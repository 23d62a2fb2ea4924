"""What another thread can see of workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time as clock
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from differential import Collection
from timely import Activator, Capability, Config, Pipeline, Worker, execute, execute_directly, new_input, source
from timely.observe.activity import IN_PROGRAM, PARKED, STEPPING, WorkerStatus
from timely.order import Time
from timely.origin import Origin
from timely.run import signals
from timely.worker import stall
from timely.worker.stall import StallWatch, Still
from timely.worker.status import report, running_workers, status, steady


def test_nothing_is_reported_if_no_worker_runs() -> None:
    assert report() == f"no worker runs in this process (pid {os.getpid()})"


def test_a_worker_is_known_while_it_runs_and_no_longer() -> None:
    def program(worker: Worker) -> bool:
        return worker in running_workers()

    assert execute(program, Config(workers=2)) == [True, True]
    assert running_workers() == []


def test_a_worker_in_the_users_program_is_seen_at_its_line() -> None:
    seen: list[WorkerStatus] = []

    def program(worker: Worker) -> int:
        thread = Thread(target=lambda: seen.append(status(worker)))
        for each in (thread.start, thread.join):  # the other thread may look during either call
            each()
        return program.__code__.co_firstlineno + 3

    line = execute_directly(program)
    name = f"worker 0 of 1 (process 0, pid {os.getpid()})"
    assert seen == [WorkerStatus(name, IN_PROGRAM, None, Origin(__file__, line), seen[0].seconds)]
    assert str(seen[0]) == f"{name} is in the program, at {__file__}:{line}"


def test_a_worker_that_is_done_before_its_peers_is_seen_to_wait_for_them() -> None:
    seen: list[str] = []

    def program(worker: Worker) -> None:
        if worker.index == 0:
            return
        deadline = clock.monotonic() + 20
        while not seen and clock.monotonic() < deadline:
            clock.sleep(0.01)
            text = str(status(running_workers()[0]))
            if "completed" in text:
                seen.append(text)

    execute(program, Config(workers=2))
    assert seen[0].endswith("has completed its dataflows and waits for its peers to do so")


def test_the_activity_of_a_worker_is_recorded_as_it_runs() -> None:
    seen: list[tuple[str, str | None]] = []

    def look(worker: Worker) -> None:
        seen.append((status(worker).doing, status(worker).operator))

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.sink(Pipeline(), lambda port: [look(worker) for _ in port.drain()], name="look")
        numbers.send(1)
        worker.call(lambda: look(worker))
        numbers.close()
        worker.step()
        look(worker)
        park = worker.allocator.park
        worker.allocator.park = lambda timeout: look(worker)  # type: ignore[method-assign]
        with worker.dataflow() as scope:
            new_input(scope)
        worker.step()
        worker.step_or_park(0.0)
        worker.allocator.park = park  # type: ignore[method-assign]

    execute_directly(program)
    stepping, running, between, parked = seen
    assert (stepping, between) == ((STEPPING, None), (IN_PROGRAM, None))
    assert running[0] == STEPPING
    assert str(running[1]).startswith("operator 'look'")
    assert parked == (PARKED, None)


def test_a_step_that_fails_is_over() -> None:
    def program(worker: Worker) -> str:
        worker.call(lambda: [].pop())
        with pytest.raises(IndexError):
            worker.step()
        return status(worker).doing

    assert execute_directly(program) == IN_PROGRAM


def test_a_look_is_repeated_while_its_subject_changes() -> None:
    attempts = []

    def look() -> int:
        attempts.append(None)
        if len(attempts) < 4:
            raise RuntimeError("dictionary changed size during iteration")
        return 5

    assert steady(look) == 5
    assert len(attempts) == 4


def test_a_look_that_never_succeeds_raises_its_own_error() -> None:
    def look() -> int:
        raise RuntimeError("always")

    with pytest.raises(RuntimeError, match="always"):
        steady(look)


def test_stillness_is_reported_once_for_each_value() -> None:
    still = Still(2.0)
    reported = [(value, now) for now, value in enumerate("aaaaabbbbbba") if still.is_due(value, float(now))]
    assert reported == [("a", 2), ("b", 7)]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", "timely: no worker runs in this process (pid "),
        ("import os; r, w = os.pipe(); os.set_blocking(w, False); signal.set_wakeup_fd(w)\n", "timely: no worker runs"),
        ("signal.signal(signal.SIGUSR1, lambda *_: print('mine', file=sys.stderr))\n", "mine"),
    ],
)
def test_the_signal_is_answered_beside_other_uses_of_signals(before: str, expected: str) -> None:
    code = f"import os, signal, sys\n{before}from timely import execute_directly\n"
    code += "execute_directly(lambda worker: None)\nos.kill(os.getpid(), signal.SIGUSR1)\nsys.stdin.read()\n"
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stderr.readline().startswith(expected)
        assert process.communicate(timeout=50)[1] == ""
    assert process.returncode == 0


def test_the_signal_is_answered_while_an_event_loop_handles_signals_and_after_it() -> None:
    code = """
import asyncio, os, signal
from timely import execute_directly

async def serve():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: print("asked to end", flush=True))
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(0.5)

execute_directly(lambda worker: None)
asyncio.run(serve())
os.kill(os.getpid(), signal.SIGUSR1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout == "asked to end\n"
    assert done.stderr.count("timely: no worker runs in this process") == 2


def test_a_failed_report_does_not_prevent_the_next_one() -> None:
    code = """
import os, signal, sys
import timely.worker.status
from timely.run.signals import report_on_signal

answers = iter([RuntimeError("changed size"), "all is well"])

def report():
    answer = next(answers)
    if isinstance(answer, Exception):
        raise answer
    return answer

timely.worker.status.report = report
report_on_signal()
for _ in range(2):
    os.kill(os.getpid(), signal.SIGUSR1)
    sys.stdin.readline()
"""
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], text=True, **pipes) as process:  # type: ignore[call-overload]
        first = process.stderr.readline()
        assert first == "timely: no report can be made at this moment (RuntimeError: changed size); ask again\n"
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stderr.readline() == "timely: all is well\n"
        assert process.communicate("\n", timeout=50)[1] == ""
    assert process.returncode == 0


def test_a_process_that_ends_while_it_reports_ends_the_report_first() -> None:
    code = """
import os, signal, threading, time
import timely.worker.status
from timely.run.signals import report_on_signal

asked = threading.Event()

def report():
    asked.set()
    return "x" * (1 << 20)

timely.worker.status.report = report
report_on_signal()
os.kill(os.getpid(), signal.SIGUSR1)
asked.wait()
time.sleep(0.2)
"""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env=environ) as process:
        clock.sleep(1)
        assert process.communicate(timeout=50)[1] == f"timely: {'x' * (1 << 20)}\n"
    assert process.returncode == 0


def test_a_process_that_is_forked_off_and_ends_leaves_the_reporter_alone() -> None:
    code = """
import os, signal, sys, threading
import timely.worker.status
from timely.run.signals import report_on_signal

asked = threading.Event()

def report():
    asked.set()
    return "all is well"

timely.worker.status.report = report
report_on_signal()
if not os.fork():
    sys.exit()
os.wait()
os.kill(os.getpid(), signal.SIGUSR1)
assert asked.wait(20)
"""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=50, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "timely: all is well\n")


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP"])
def test_a_process_knows_that_it_was_asked_to_end(number: str) -> None:
    code = f"""
import signal, time
from timely.run.signals import report_on_signal, was_asked_to_end

report_on_signal()
signal.signal(signal.{number}, lambda *_: None)
begun = time.monotonic()
assert not was_asked_to_end(begun)
signal.raise_signal(signal.{number})
while not was_asked_to_end(begun):
    time.sleep(0.01)
assert not was_asked_to_end(time.monotonic() + 1)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert (ended.stderr, ended.returncode) == ("", 0)


def test_a_signal_while_a_worker_sleeps_does_not_wake_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = Event()
    monkeypatch.setattr(signals, "notify", lambda text: reported.set())

    def program(worker: Worker) -> bool:
        with worker.dataflow() as scope:
            numbers, _ = new_input(scope)
        while worker.dataflows[0].step():
            pass

        def signal_once_asleep() -> None:
            while not worker.allocator._own.parked:  # type: ignore[attr-defined]
                clock.sleep(0.001)
            os.kill(os.getpid(), signal.SIGUSR1)
            reported.wait(30)
            worker.call(numbers.close)

        thread = Thread(target=signal_once_asleep)
        thread.start()
        worker.step_or_park(40)
        slept_through = reported.is_set()
        thread.join()
        return slept_through

    assert execute_directly(program)


@pytest.mark.parametrize("seconds", [0.0, 2.0])
def test_a_watch_reports_a_worker_inside_an_operator_and_not_one_in_the_program(seconds: float) -> None:
    reported: list[str] = []

    def look(_: object = None) -> None:
        watch, (worker,) = StallWatch(2.0, reported.append), running_workers()
        looker = Thread(target=lambda: [watch._look(worker, now) for now in (0.0, seconds)])
        looker.start()
        looker.join()

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.exchange().inspect(look)
        look()
        assert reported == []
        numbers.send(1)
        numbers.close()

    execute_directly(program)
    expected = ["nothing has moved on worker 0 for 2 s: worker 0 of 1"] if seconds == 2.0 else []
    assert [text.partition(" (")[0] for text in reported] == expected


@pytest.mark.lengthy
@pytest.mark.parametrize("begin", ["at once", "while nothing of the loop is in a queue"])
def test_a_watch_reports_a_loop_of_collections_as_a_loop(begin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    progress, looks = stall.progress_of_loops, []

    def seen(worker: Worker) -> dict[str, Time]:
        looks.append(1)
        return {} if len(looks) == 1 and begin != "at once" else progress(worker)

    monkeypatch.setattr(stall, "progress_of_loops", seen)

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            Collection.of(scope, 1).iterate(lambda inner: inner.map(lambda n: 1 - n)).probe()
        end = clock.monotonic() + 20
        worker.step_while(lambda: not reported and clock.monotonic() < end)
        worker.drop_dataflow(scope.dataflow)

    with StallWatch(0.4, reported.append):
        execute(program, Config(report_rounds=0))
    assert [text.partition(":")[0] for text in reported] == ["no time has become final for 0.4 s"]
    assert "'dataflow/iterate' goes on without converging" in reported[0]


@pytest.mark.lengthy
@pytest.mark.parametrize("workers", [1, 2])
def test_a_watch_reports_an_operator_that_runs_again_and_again_and_moves_nothing(workers: int) -> None:
    reported: list[str] = []

    def polls(capability: Capability, activate: Activator) -> Callable[[Any], None]:
        def logic(output: Any) -> None:
            assert capability.time == (0,)  # it is kept: more may come at that time
            clock.sleep(0.01)
            activate()

        return logic

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            _numbers, stream = new_input(scope)
            source(scope, polls, name="polls").concat(stream.exchange()).probe()
        end = clock.monotonic() + 20
        worker.step_while(lambda: not reported and clock.monotonic() < end)
        worker.drop_dataflow(scope.dataflow)

    with StallWatch(0.4, reported.append):
        execute(program, Config(workers=workers))
    assert reported
    assert all(
        re.match(r"nothing has moved on worker \d for 0.4 s: .* is in operator 'polls'", text) for text in reported
    )


def test_a_watch_looks_while_workers_run() -> None:
    reported: list[str] = []

    def wait(_: object) -> None:
        end = clock.monotonic() + 30
        while not reported and clock.monotonic() < end:
            clock.sleep(0.01)

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).exchange().inspect(wait)

    with StallWatch(0.05, reported.append):
        execute_directly(program)
    assert reported[0].startswith("nothing has moved on worker 0 for 0.05 s: worker 0 of 1 (process 0, pid")
