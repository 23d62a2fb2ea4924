"""What the workers of this process are doing, as seen from another thread.

A worker that is stuck cannot be asked: it may be inside a long operator, or in the user's program. So nothing here
needs its cooperation. Where it is, is read off its stack; what it holds, off its dataflows while it may be changing
them, which is tried again when that shows. Nothing of this costs a running worker anything.

>>> execute_directly(lambda worker: print(doing(worker, get_ident()).text))
worker 0 of 1 (process 0, pid ...) is in the program, at ...
"""

from __future__ import annotations

import os
import sys
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from timely.dataflow.explain import explain_here, rounds
from timely.order import Time
from timely.origin import Origin, is_installed, is_ours

if TYPE_CHECKING:
    from timely.dataflow.dataflow import Dataflow
    from timely.worker.worker import Worker

Result = TypeVar("Result")

PAUSE_SECONDS = 0.2
"""How long to watch loops, to see whether they go on."""

_ATTEMPTS = 50
_LOOKS = 20
_running: dict[Worker, int] = {}
_MEETING = {
    "connect": "waits for its peers to connect",
    "_exchange_farewells": "has completed its dataflows and waits for its peers to do so",
}
"""What a worker does inside our functions of these names."""


class Doing(NamedTuple):
    """What a worker does, in words, and whether it is inside an operator."""

    text: str
    is_in_operator: bool


@contextmanager
def running(worker: Worker) -> Iterator[None]:
    """Know of a worker that runs in this thread."""
    _running[worker] = get_ident()
    try:
        yield
    finally:
        del _running[worker]


def running_workers() -> list[tuple[Worker, int]]:
    """Return the workers of this process and the threads they run in."""
    return sorted(_running.items(), key=lambda entry: entry[0].index)


def report() -> str:
    """Return, for people, what each worker of this process does now, and what it and its dataflows wait for."""
    workers = running_workers()
    if not workers:
        return f"no worker runs in this process (pid {os.getpid()})"
    doings = [doing(worker, thread).text for worker, thread in workers]
    before = [steady(lambda worker=worker: progress_of_loops(worker)) for worker, _ in workers]  # type: ignore[misc]
    if any(before):
        clock.sleep(PAUSE_SECONDS)
    texts = []
    for (worker, _), line, loops in zip(workers, doings, before):
        held = [steady(lambda dataflow=dataflow: explain_here(dataflow)) for dataflow in worker.dataflows]  # type: ignore[misc]
        texts += [line, *held, *going_round(worker, loops, PAUSE_SECONDS), *worker.explainer.refusals()]
    return "\n".join(texts)


def doing(worker: Worker, thread: int) -> Doing:
    """Return where a worker is: in an operator, waiting, or in the user's program; and since when, or at which line."""
    config = worker.config
    who = f"worker {worker.index} of {worker.peers} (process {config.process}, pid {os.getpid()})"
    line: Origin | None = None
    is_stepping = is_parked = False
    frame = sys._current_frames().get(thread)
    while frame is not None:
        code = frame.f_code
        if line is None and not is_ours(code.co_filename) and not is_installed(code.co_filename):
            line = Origin(code.co_filename, frame.f_lineno)
        if code.co_name in _MEETING and is_ours(code.co_filename):
            return Doing(f"{who} {_MEETING[code.co_name]}", False)
        if code.co_name == "_step" and _is_of(frame, worker):
            for dataflow in worker.dataflows:
                if dataflow.running is not None:
                    return Doing(f"{who} is in {dataflow.running}{_at(line)}, {_since(worker)}", True)
            is_stepping = True
        is_parked = is_parked or (code.co_name == "_park" and _is_of(frame, worker))
        frame = frame.f_back
    if is_stepping:
        return Doing(f"{who} moves messages and progress, {_since(worker)}", False)
    if is_parked:
        return Doing(f"{who} has nothing to do and waits for messages, since {_seconds(worker)} ago", False)
    return Doing(f"{who} is in the program{_at(line)}", False)


def going_round(worker: Worker, before: dict[str, Time], seconds: float) -> list[str]:
    """Return a line for each loop that has gone on since `before`, `seconds` ago."""
    now = steady(lambda: progress_of_loops(worker))
    return [
        f"{path!r} goes on without converging: {seconds:g} s ago worker {worker.index} was at {time} in it, "
        f"now it is at {now[path]}"
        for path, time in before.items()
        if path in now and now[path] > time
    ]


def progress_of_loops(worker: Worker) -> dict[str, Time]:
    """Return how far this worker's share of the loops of all its dataflows has come.

    In the midst of an activation a message may be neither in one queue nor in the next, so it looks a few times.
    """
    for _ in range(_LOOKS):
        found = {path: time for dataflow in worker.dataflows for path, time in rounds(dataflow).items()}
        if found or not any(map(has_loops, worker.dataflows)):
            break
        clock.sleep(0.001)
    return found


def has_loops(dataflow: Dataflow) -> bool:
    """Return whether a dataflow has operators in loops."""
    return any(operator.scope.width > operator.scope.outer for operator in dataflow.operators)


def steady(look: Callable[[], Result]) -> Result:
    """Return what `look()` returns, tried again while its collections change size under it."""
    for _ in range(_ATTEMPTS):
        try:
            return look()
        except RuntimeError:
            clock.sleep(0.001)
    return look()


def _is_of(frame: FrameType, worker: Worker) -> bool:
    return frame.f_locals.get("self") is worker


def _at(line: Origin | None) -> str:
    return "" if line is None else f", at {line}"


def _since(worker: Worker) -> str:
    return f"in a step that began {_seconds(worker)} ago"


def _seconds(worker: Worker) -> str:
    return f"{clock.monotonic() - worker.step_began:.1f} s"
