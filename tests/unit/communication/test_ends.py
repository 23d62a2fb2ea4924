"""A process's ZeroMQ context: its thread gives way to workers if the system permits it."""

from __future__ import annotations

import os
import sys
import time as clock
from pathlib import Path

import pytest
import zmq

from timely.communication.ends import SharedContext

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="scheduling policies are Linux's")


def policies(context: SharedContext) -> list[int]:
    """Return the scheduling policies of the threads with which a context moves messages."""
    before = threads()
    end = clock.monotonic() + 10
    with context.zmq.socket(zmq.PULL):  # they are made with the first socket, and named when they have their policy
        while not (moving := [task for task in threads() - before if "IO" in (task / "comm").read_text()]):
            assert clock.monotonic() < end, f"no thread has the name of one that moves messages: {threads() - before}"
        return [os.sched_getscheduler(int(task.name)) for task in moving]


def threads() -> set[Path]:
    return set(Path("/proc/self/task").iterdir())


@pytest.fixture
def context() -> SharedContext:
    made = SharedContext(sockets=8)
    made.acquire()
    return made


def test_messages_are_moved_by_a_thread_that_preempts_no_worker(context: SharedContext) -> None:
    own = os.sched_getscheduler(0)
    assert policies(context) == [os.SCHED_BATCH if own == os.SCHED_OTHER else own]
    assert os.sched_getscheduler(0) == own
    context.release()


def test_a_process_of_another_policy_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getscheduler", lambda _: os.SCHED_IDLE)
    context = SharedContext(sockets=8)
    context.acquire()
    monkeypatch.undo()
    assert policies(context) == [os.sched_getscheduler(0)]
    context.release()


def test_a_refused_policy_stays_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("not here")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    context = SharedContext(sockets=8)
    context.acquire()
    assert policies(context) == [os.sched_getscheduler(0)]
    context.release()


def test_the_calling_thread_tries_the_policy_and_then_restores_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "sched_getscheduler", lambda _: os.SCHED_OTHER)
    monkeypatch.setattr(
        os, "sched_setscheduler", lambda thread, policy, of: asked.append((thread, policy, of.sched_priority))
    )
    SharedContext(sockets=8).zmq.term()
    assert asked == [(0, os.SCHED_BATCH, 0), (0, os.SCHED_OTHER, 0)]


def test_a_context_ends_with_its_last_user(context: SharedContext) -> None:
    context.acquire()
    context.release()
    assert not context.zmq.closed
    context.release()
    assert context.zmq.closed
