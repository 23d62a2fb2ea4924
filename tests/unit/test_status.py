"""What is seen of workers from another thread."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time as clock
from threading import Event, Thread, get_ident

import pytest

from timely import Config, Worker, execute, execute_directly
from timely.stall import StallWatch, Still
from timely.status import doing, report, running_workers, steady


def test_there_is_nothing_to_report_where_no_worker_runs() -> None:
    assert report() == f"no worker runs in this process (pid {os.getpid()})"


def test_a_worker_is_known_while_it_runs_and_no_longer() -> None:
    def program(worker: Worker) -> bool:
        return (worker, get_ident()) in running_workers()

    assert execute(program, Config(workers=2)) == [True, True]
    assert running_workers() == []


def test_a_worker_in_the_users_program_is_seen_at_its_line() -> None:
    there, seen = Event(), Event()

    def program(worker: Worker) -> int:
        there.set()
        seen.wait(20)
        return program.__code__.co_firstlineno + 2

    result: list[int] = []
    thread = Thread(target=lambda: result.append(execute_directly(program)))
    thread.start()
    there.wait(20)
    clock.sleep(0.05)
    ((worker, ident),) = running_workers()
    text, is_stepping = doing(worker, ident)
    seen.set()
    thread.join()
    assert text == f"worker 0 of 1 (process 0, pid {os.getpid()}) is in the program, at {__file__}:{result[0]}"
    assert not is_stepping


def test_a_worker_that_is_done_before_its_peers_is_seen_to_wait_for_them() -> None:
    seen: list[str] = []

    def program(worker: Worker) -> None:
        if worker.index == 0:
            return
        deadline = clock.monotonic() + 20
        while not seen and clock.monotonic() < deadline:
            clock.sleep(0.01)
            text = doing(*running_workers()[0]).text
            if "completed" in text:
                seen.append(text)

    execute(program, Config(workers=2))
    assert seen[0].endswith("has completed its dataflows and waits for its peers to do so")


def test_a_look_is_taken_again_while_what_is_looked_at_changes() -> None:
    attempts = []

    def look() -> int:
        attempts.append(None)
        if len(attempts) < 4:
            raise RuntimeError("dictionary changed size during iteration")
        return 5

    assert steady(look) == 5
    assert len(attempts) == 4


def test_a_look_that_never_succeeds_fails_as_it_does() -> None:
    def look() -> int:
        raise RuntimeError("always")

    with pytest.raises(RuntimeError, match="always"):
        steady(look)


def test_stillness_is_told_once_for_each_value() -> None:
    still = Still(2.0)
    told = [(value, now) for now, value in enumerate("aaaaabbbbbba") if still.is_due(value, float(now))]
    assert told == [("a", 2), ("b", 7)]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", "timely: no worker runs in this process (pid "),
        ("import os; r, w = os.pipe(); os.set_blocking(w, False); signal.set_wakeup_fd(w)\n", "timely: no worker runs"),
        ("signal.signal(signal.SIGUSR1, lambda *_: print('mine', file=sys.stderr))\n", "mine"),
    ],
)
def test_the_signal_is_answered_beside_other_uses_of_signals(before: str, expected: str) -> None:
    code = f"import os, signal, sys, time\n{before}from timely import execute_directly\n"
    code += "execute_directly(lambda worker: None)\nos.kill(os.getpid(), signal.SIGUSR1)\ntime.sleep(0.5)\n"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 0
    assert ended.stderr.startswith(expected)
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_that_a_process_is_asked_to_end_is_known(number: str) -> None:
    code = f"""
import signal, time
from timely.signals import report_on_signal, was_asked_to_end

report_on_signal()
signal.signal(signal.{number}, lambda *_: None)
begun = time.monotonic()
assert not was_asked_to_end(begun)
signal.raise_signal(signal.{number})
while not was_asked_to_end(begun):
    time.sleep(0.01)
assert not was_asked_to_end(time.monotonic() + 1)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.stderr, ended.returncode) == ("", 0)


def test_a_signal_while_a_worker_sleeps_does_not_wake_the_program() -> None:
    def program(worker: Worker) -> bool:
        with worker.dataflow() as scope:
            numbers, _ = scope.new_input()
        begun = clock.monotonic()
        Thread(target=lambda: (clock.sleep(0.1), os.kill(os.getpid(), signal.SIGUSR1))).start()
        worker.step_or_park(0.1)
        worker.step_or_park(0.5)
        numbers.close()
        return clock.monotonic() - begun >= 0.4

    assert execute_directly(program)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stall_is_told_once_and_the_next_one_again(workers: int) -> None:
    told: list[str] = []

    def wait_for(count: int, worker: Worker) -> None:
        deadline = clock.monotonic() + 20
        while len(told) < count and clock.monotonic() < deadline:
            worker.step_or_park(0.05)
        end = clock.monotonic() + 0.5
        while clock.monotonic() < end:
            worker.step_or_park(0.05)

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input("numbers")
            stream.exchange().probe()
        wait_for(1, worker)
        numbers.advance_to(7)
        wait_for(2, worker)
        numbers.close()

    with StallWatch(0.2, told.append):
        execute(program, Config(workers=workers))
    assert len(told) == 2
    for time, text in zip((0, 7), told):
        assert text.startswith("nothing has moved on worker 0 for 0.2 s\n")
        for worker in range(workers):
            assert re.search(rf"a capability for \({time},\) on output 0 of operator 'num.*, worker {worker}\b", text)
