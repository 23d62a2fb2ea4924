"""What the workers of this process do, and what holds their dataflows up, as any thread sees it.

A report needs nobody's cooperation. It reads what a worker does from what the worker keeps (`timely.observe.activity`),
and what a dataflow holds from the dataflow. The worker may change that meanwhile; then it is read again.

>>> execute_directly(lambda worker: print(status(worker)))
worker 0 of 1 (process 0, pid ...) is in the program, at ...
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from timely.dataflow.explain import explain_here, has_loops, refusals, rounds
from timely.observe.activity import IN_PROGRAM, WorkerStatus, user_line
from timely.order import Time
from timely.worker.standstill import engaged

if TYPE_CHECKING:
    from timely.worker.worker import Worker

Result = TypeVar("Result")

PAUSE_SECONDS = 0.2
"""For how long a report watches loops, to see whether they go on."""

_ATTEMPTS = 50
_LOOKS = 20
_running: dict[Worker, str] = {}
"""The run of each worker that runs, in the order in which they began."""
_runs = count()
_lock = Lock()
"""Held while workers are added and removed."""


@contextmanager
def running(worker: Worker) -> Iterator[None]:
    """Register a worker that runs in this thread."""
    config = worker.config
    with _lock:
        known = next((run for each, run in _running.items() if each.config is config), None)
        _running[worker] = config.generation if config.processes > 1 else known or f"run {next(_runs)}"
    try:
        with engaged():
            yield
    finally:
        with _lock:
            _running.pop(worker, None)


def running_workers() -> list[Worker]:
    """Return the workers of this process, in the order of their indices; of equal ones, the first to begin is first."""
    # `sorted` copies the keys in one step, before it looks at a worker, so other threads may add and remove some.
    return sorted(_running, key=lambda worker: worker.index)


def run_of(worker: Worker) -> str:
    """Return the name of the run of a worker: the same for all of its workers, and no others before or after it."""
    return _running.get(worker, "")


def report() -> str:
    """Return, for people, what each worker of this process does now, and what it and its dataflows wait for."""
    workers = running_workers()
    if not workers:
        return f"no worker runs in this process (pid {os.getpid()})"
    statuses = [status(worker) for worker in workers]
    before = [progress_of_loops(worker) for worker in workers]
    if any(before):
        clock.sleep(PAUSE_SECONDS)
    lines = []
    for worker, seen, loops in zip(workers, statuses, before):
        held = [steady(explain_here, dataflow) for dataflow in worker.dataflows]
        lines += [str(seen), *held, *unconverged(worker, loops, PAUSE_SECONDS), *refusals(worker)]
    return "\n".join(lines)


def status(worker: Worker) -> WorkerStatus:
    """Return what a worker does now."""
    config, activity = worker.config, worker.activity
    name = f"worker {worker.index} of {worker.peers} (process {config.process}, pid {os.getpid()})"
    doing, seconds = activity.doing, clock.monotonic() - activity.step_began
    operators = (each.running for each in worker.dataflows)
    operator = next((str(each) for each in operators if each is not None), None)
    has_line = operator is not None or doing == IN_PROGRAM
    return WorkerStatus(name, doing, operator, user_line(activity.thread) if has_line else None, seconds)


def unconverged(worker: Worker, before: dict[str, Time], seconds: float) -> list[str]:
    """Return a line for each loop that has gone on since `before`, `seconds` ago."""
    now = progress_of_loops(worker)
    return [
        f"{path!r} goes on without converging: {seconds:g} s ago worker {worker.index} was at {time} in it, "
        f"now it is at {now[path]}"
        for path, time in before.items()
        if path in now and now[path] > time
    ]


def progress_of_loops(worker: Worker) -> dict[str, Time]:
    """Return how far this worker's share of the loops of all its dataflows has come.

    During an activation a message may be neither in one queue nor in the next, so this looks a few times.
    """
    looping = [dataflow for dataflow in worker.dataflows if has_loops(dataflow)]
    found: dict[str, Time] = {}
    for _ in range(_LOOKS if looping else 0):
        found = {path: time for dataflow in looping for path, time in steady(rounds, dataflow).items()}
        if found:
            break
        clock.sleep(0.001)
    return found


def steady(look: Callable[..., Result], *arguments: object) -> Result:
    """Return `look(*arguments)`, called again if the collections it reads change size meanwhile."""
    for _ in range(_ATTEMPTS):
        try:
            return look(*arguments)
        except RuntimeError:
            clock.sleep(0.001)
    return look(*arguments)
