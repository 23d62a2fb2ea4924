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
_running: set[Worker] = set()


@contextmanager
def running(worker: Worker) -> Iterator[None]:
    """Register a worker that runs in this thread."""
    _running.add(worker)
    try:
        with engaged():
            yield
    finally:
        _running.discard(worker)


def running_workers() -> list[Worker]:
    """Return the workers of this process, in the order of their indices."""
    # `sorted` copies the set in one step, before it looks at a worker, so other threads may add and remove some.
    return sorted(_running, key=lambda worker: worker.index)


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
