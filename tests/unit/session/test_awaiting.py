"""What the program awaits in an event loop leaves the loop its turn, and ends with what SIGINT means there."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from differential.session import Change, Changes, Session, awaiting


def change(epoch: int) -> Change:
    return Change(epoch, ("x",), (np.array([epoch]),), np.array([1]))


def send_interrupt() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def send_interrupt_once_awaited() -> None:
    """Send SIGINT from another thread as soon as another handler than now is there, that of what is awaited."""
    before = signal.getsignal(signal.SIGINT)

    def send() -> None:
        deadline = time.monotonic() + 20
        while signal.getsignal(signal.SIGINT) is before:
            if time.monotonic() > deadline:
                return
            time.sleep(0.001)
        send_interrupt()

    threading.Thread(target=send, daemon=True).start()


@pytest.fixture
def a_cell(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let the tasks of this list be those of cells, under a handler that notes what it receives, as a kernel's does."""
    tasks: list[Any] = []
    monkeypatch.setitem(awaiting.sys.modules, "IPython", SimpleNamespace())  # type: ignore[attr-defined]
    monkeypatch.setattr(awaiting, "in_cell", lambda frame: asyncio.current_task() in tasks)
    return tasks


def test_other_tasks_run_while_there_is_always_another_change() -> None:
    async def main() -> int:
        changes = Changes(lambda changes: None)
        is_over = False

        async def other() -> None:
            nonlocal is_over
            is_over = True

        changes.put(change(0))
        task = asyncio.create_task(other())
        async for each in changes:
            if is_over or each.time == 100:
                await task
                return each.time
            changes.put(change(each.time + 1))
        return -1

    assert asyncio.run(main()) < 100


def test_iteration_ends_after_the_last_change() -> None:
    async def main() -> list[int]:
        changes = Changes(lambda changes: None)
        for epoch in range(3):
            changes.put(change(epoch))
        changes.end()
        return [each.time async for each in changes]

    assert asyncio.run(main()) == [0, 1, 2]


def test_an_interrupt_of_a_cell_ends_its_task_with_an_interrupt(a_cell: list[Any]) -> None:
    received: list[int] = []

    async def main() -> tuple[int, object]:
        a_cell.append(task := asyncio.current_task())
        before = signal.signal(signal.SIGINT, lambda signum, frame: received.append(signum))
        try:
            handler = signal.getsignal(signal.SIGINT)
            send_interrupt_once_awaited()
            with pytest.raises(KeyboardInterrupt):
                async for _ in Changes(lambda changes: None):
                    pass
            assert signal.getsignal(signal.SIGINT) is handler
            await asyncio.sleep(0)
            return task.cancelling() if task is not None else -1, received
        finally:
            signal.signal(signal.SIGINT, before)

    assert asyncio.run(main()) == (0, [])


def test_an_interrupt_that_comes_with_the_result_is_raised(a_cell: list[Any]) -> None:
    async def main() -> None:
        a_cell.append(asyncio.current_task())
        with pytest.raises(KeyboardInterrupt), awaiting.interruptible():
            send_interrupt()
        await asyncio.sleep(0)

    asyncio.run(main())


def test_a_cancellation_by_the_program_stays_one(a_cell: list[Any]) -> None:
    async def main() -> None:
        a_cell.append(asyncio.current_task())
        async with asyncio.timeout(0.01):
            async for _ in Changes(lambda changes: None):
                pass

    with pytest.raises(TimeoutError):
        asyncio.run(main())


def giving_up(seconds: float, interrupted: threading.Event) -> Callable[[Callable[[float], bool]], object]:
    return lambda wait: wait(seconds) or interrupted.set()


def test_a_function_that_does_not_end_after_ctrl_c_of_a_program_is_interrupted() -> None:
    interrupted = threading.Event()

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.01, send_interrupt)
        await asyncio.create_task(awaiting.in_thread(lambda: interrupted.wait(5), giving_up(0.05, interrupted)))

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert interrupted.wait(3)


def test_a_function_that_the_program_no_longer_awaits_goes_on() -> None:
    interrupted = threading.Event()

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(
                awaiting.in_thread(lambda: interrupted.wait(0.2), giving_up(0.01, interrupted)), 0.01
            )

    asyncio.run(main())
    assert not interrupted.wait(0.1)


def test_a_function_that_does_not_end_after_an_interrupt_is_interrupted(a_cell: list[Any]) -> None:
    ends, interrupted = threading.Event(), threading.Event()

    async def main() -> None:
        a_cell.append(asyncio.current_task())
        send_interrupt_once_awaited()
        with pytest.raises(KeyboardInterrupt):
            await awaiting.in_thread(lambda: ends.wait(20), giving_up(0.01, interrupted))
        assert await asyncio.to_thread(interrupted.wait, 20)

    asyncio.run(main())
    ends.set()


@pytest.mark.parametrize("is_cell", [True, False])
def test_an_interrupt_that_does_not_wake_the_loop_takes_effect(is_cell: bool, a_cell: list[Any]) -> None:
    """As one that comes just before the loop goes to sleep: Python notes it, and handles it when the loop wakes."""
    ends = threading.Event()

    def function() -> None:
        time.sleep(0.1)  # until the loop sleeps
        signal.raise_signal(signal.SIGINT)  # delivered to this thread
        ends.wait(20)

    async def main() -> None:
        if is_cell:
            a_cell.append(asyncio.current_task())
        await awaiting.in_thread(function, lambda wait: ends.set())

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert time.monotonic() < started + 15, "it took effect when the function had ended"


def test_the_loop_of_a_notebook_wakes_for_a_task_that_is_not_a_cell(
    a_cell: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaiting, "BEAT", 0.01)

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        before = signal.signal(signal.SIGINT, lambda signum, frame: loop.call_soon(task.cancel))  # it does not wake it
        timer = threading.Timer(0.02, send_interrupt)
        timer.start()
        try:
            with pytest.raises(asyncio.CancelledError):
                async for _ in Changes(lambda changes: None):
                    pass
        finally:
            signal.signal(signal.SIGINT, before)

    asyncio.run(main())


class Closing(asyncio.SelectorEventLoop):
    """A loop that another thread finds open, and that is closed when the thread uses it."""

    is_gone = False

    def call_soon_threadsafe(self, *arguments: Any, **options: Any) -> asyncio.Handle:
        if self.is_gone:
            raise RuntimeError("Event loop is closed")
        return super().call_soon_threadsafe(*arguments, **options)

    def run_to_the_end(self, task: asyncio.Task[Any]) -> None:
        """Cancel a task, and close the loop."""
        self.is_gone = False
        task.cancel()
        self.run_until_complete(asyncio.wait([task]))
        self.run_until_complete(self.shutdown_asyncgens())
        self.close()


async def begun(awaited: Awaitable[Any], is_begun: Callable[[], object]) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.ensure_future(awaited)  # type: ignore[arg-type]
    async with asyncio.timeout(20):
        while not is_begun():
            await asyncio.sleep(0)
    return task


def test_a_loop_that_closes_as_a_change_comes_leaves_the_session_as_it_is() -> None:
    with Session() as db:
        numbers = db.table("numbers", {"x": [1]})
        changes, loop = numbers.changes(), Closing()
        task = loop.run_until_complete(begun(anext(aiter(changes)), lambda: changes._awaiting))
        loop.is_gone = True
        thread = threading.Thread(target=db.commit, daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive(), "the commit waits for ever"
        loop.run_to_the_end(task)
        assert (numbers.records(), len(changes.read_nowait())) == ([(1,)], 1)


def test_a_loop_that_closes_as_a_function_ends_leaves_its_thread_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    loop, may_end, running = Closing(), threading.Event(), list[threading.Thread]()

    def function() -> None:
        running.append(threading.current_thread())
        assert may_end.wait(20), "the loop is not gone"

    task = loop.run_until_complete(begun(awaiting.in_thread(function, lambda wait: None), lambda: running))
    loop.is_gone = True
    may_end.set()
    running[0].join(20)
    assert not running[0].is_alive(), "the function does not end"
    loop.run_to_the_end(task)
    assert failures == []
