"""Looking goes on after a look that fails, sends slow viewers away, and ends without viewers."""

from __future__ import annotations

import asyncio
import json
import threading
import warnings
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from timely import Config, Worker, execute, new_input
from timely.live import watching as module
from timely.live.client import JobView
from timely.live.looking import DataflowSeen, Looking, ProcessSeen, WorkerSeen
from timely.live.notes import KEPT, Warnings
from timely.live.shape import Box, Diagram, DiagramNode
from timely.live.state import JobState
from timely.live.watching import Here, Viewer, Watching
from timely.observe.notices import notify
from timely.worker.status import running_workers


def ticks(viewer: Viewer) -> list[dict[str, Any]]:
    """Return the ticks that a viewer has received."""
    found = []
    while not viewer.messages.empty():
        message = viewer.messages.get_nowait()
        if message is not None and message.startswith("event: tick"):
            found.append(json.loads(message.partition("data: ")[2]))
    return found


def test_a_look_that_fails_is_noted_and_the_next_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PERIOD", 0.02)
    look, failures = Looking.look, [RuntimeError("changed size"), None, ValueError("odd")]

    def sometimes(self: Looking) -> ProcessSeen:
        error = failures.pop() if failures else None
        if error is not None:
            raise error
        return look(self)

    monkeypatch.setattr(Looking, "look", sometimes)

    async def watch() -> list[dict[str, Any]]:
        kept = Warnings()
        kept.add("notice", "before the first look")
        watching = Watching(Here(0, kept), dict)
        viewer = watching.join()
        await asyncio.sleep(0.5)
        await watching.close()
        return ticks(viewer)

    notes = [text for tick in asyncio.run(watch()) for _, _, _, text in tick["notes"]]
    assert notes == [
        "a look has failed: ValueError: odd",
        "before the first look",
        "a look has failed: RuntimeError: changed size",
    ]


def test_a_viewer_that_does_not_read_is_sent_away_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PERIOD", 0.01)

    async def watch() -> None:
        watching = Watching(Here(0, Warnings()), dict)
        slow, quick = watching.join(), watching.join()
        received = 0
        for _ in range(40):
            await asyncio.sleep(0.02)
            received += len(ticks(quick))
        assert received > 20
        messages = [slow.messages.get_nowait() for _ in range(slow.messages.qsize())]
        assert messages[-1] is None
        assert len(messages) < 20
        await watching.close()

    asyncio.run(watch())


def test_looking_ends_with_the_last_viewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PERIOD", 0.01)
    closed = []
    monkeypatch.setattr(Looking, "close", lambda self: closed.append(self))

    async def watch() -> None:
        watching = Watching(Here(0, Warnings()), dict)
        for turn in range(2):
            viewer = watching.join()
            await asyncio.sleep(0.1)
            watching.leave(viewer)
            await asyncio.sleep(0.1)
            assert len(closed) == turn + 1
        await watching.close()

    asyncio.run(watch())


def test_warnings_and_notices_are_kept_but_not_the_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *_: shown.append(str(message)))
    before = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", before)
        notes = Warnings("the secret")
        warnings.warn("an odd number", UserWarning, stacklevel=1)
        notify("nothing moves")
        notify("open it with the secret")
    kept = notes.since(0)
    assert [(note.kind, note.text.split(" (")[0]) for note in kept] == [
        ("UserWarning", "an odd number"),
        ("notice", "nothing moves"),
    ]
    assert shown == ["an odd number"]
    assert "nothing moves" in capsys.readouterr().err
    for number in range(2 * KEPT):
        notes.add("notice", str(number))
    assert len(notes.since(0)) == KEPT
    assert notes.since(notes.since(0)[-1].number) == []
    notes.close()
    notify("nobody listens")
    assert notes.since(0)[-1].text != "nobody listens"


def test_whoever_waits_for_a_look_receives_the_state_when_looking_ends() -> None:
    async def watch() -> None:
        watching = Watching(Here(0, Warnings()), dict)
        first = asyncio.ensure_future(watching.look_for(5.0))
        await asyncio.sleep(0.01)
        assert not first.done()
        await watching.close()
        await asyncio.wait_for(first, 1.0)
        assert await asyncio.wait_for(watching.looked(), 1.0) is watching.state

    asyncio.run(watch())


class Built(Here):
    """A process that has built a dataflow, and calls a function while it is asked what holds that up."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__(0, Warnings())
        self._meanwhile = meanwhile
        self._given: list[list[Any]] = [[1, 5.0, "notice", "an odd number"]]

    async def look(self) -> tuple[ProcessSeen, list[list[Any]]]:
        flow = DataflowSeen(np.zeros((1, 7), np.int64), {0: ((0,),)})
        notes, self._given = self._given, []
        return ProcessSeen(0, 1, [WorkerSeen(0, "waits", "", {0: flow})], {}), notes

    async def shapes(self) -> list[Diagram]:
        return [Diagram(0, "words", [Box("words", -1, False)], [DiagramNode("count", 0, "job.py:3", "operator", True)])]

    async def held(self, dataflow: int) -> list[str]:
        self._meanwhile()
        return []


@pytest.mark.parametrize("is_failing", [False, True])
def test_a_viewer_receives_each_shape_and_each_warning_once(is_failing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PERIOD", 0.01)
    monkeypatch.setattr(module, "HELD_EVERY", 1)
    monkeypatch.setattr(JobState, "still", lambda state: [*state.dataflows])
    viewers: list[Viewer] = []

    async def watch() -> list[tuple[int, int]]:
        def join() -> None:
            if len(viewers) < 3:
                viewers.append(watching.join())
                if is_failing:
                    raise RuntimeError("changed size")

        watching = Watching(Built(join), dict)
        viewers.append(watching.join())
        await asyncio.sleep(0.2)
        await watching.close()
        received = [[each.messages.get_nowait() for _ in range(each.messages.qsize())] for each in viewers]
        return [
            (sum(str(message).startswith("event: shape") for message in each), str(each).count("an odd number"))
            for each in received
        ]

    assert asyncio.run(watch()) == [(1, 1)] * 3


def test_a_viewer_learns_of_the_end_of_a_dataflow_though_a_look_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PERIOD", 0.01)
    monkeypatch.setattr(module, "HELD_EVERY", 1)
    monkeypatch.setattr(JobState, "still", lambda state: [index for index in state.dataflows if index == 1])
    looks, failures = [], [RuntimeError("changed size")]

    class Ending(Built):
        """A process whose first dataflow has ended at the third look."""

        async def look(self) -> tuple[ProcessSeen, list[list[Any]]]:
            looks.append(1)
            flows = {each: DataflowSeen(np.zeros((1, 7), np.int64), {}) for each in (0, 1) if each or len(looks) < 3}
            return ProcessSeen(0, 1, [WorkerSeen(0, "waits", "", flows)], {}), []

        async def shapes(self) -> list[Diagram]:
            (shape,) = await super().shapes()
            return [shape, replace(shape, dataflow=1)]

    def fail_once() -> None:
        if len(looks) == 3 and failures:
            raise failures.pop()

    async def watch() -> list[dict[str, Any]]:
        watching = Watching(Ending(fail_once), dict)
        viewer = watching.join()
        await asyncio.sleep(0.2)
        await watching.close()
        return ticks(viewer)

    assert [tick["over"] for tick in asyncio.run(watch()) if tick["over"]] == [[0]]


def program(name: str, maps: int, ends: threading.Event) -> Callable[[Worker], None]:
    """Return a program with a dataflow that has this many operators more than two, and runs until an event."""

    def build(worker: Worker) -> None:
        with worker.dataflow(name) as scope:
            input, stream = new_input(scope)
            for _ in range(maps):
                stream = stream.exchange(lambda x: x)
            stream.probe()
        while not ends.wait(0.005):
            worker.step()
        input.close()

    return build


class Following:
    """A view of what this process does, and the events that end the programs that it runs."""

    def __init__(self) -> None:
        self.watching = Watching(Here(0, Warnings()), dict)
        self.viewer, self.view = self.watching.join(), JobView()
        self.ends: list[tuple[threading.Event, asyncio.Future[Any]]] = []

    def run(self, name: str, maps: int, workers: int = 1) -> None:
        """Run a program on threads until `end`."""
        ends = threading.Event()
        started = asyncio.to_thread(execute, program(name, maps, ends), Config(workers=workers))
        self.ends.append((ends, asyncio.ensure_future(started)))

    async def end(self) -> None:
        """End the programs."""
        while self.ends:
            ends, running = self.ends.pop()
            ends.set()
            await running

    async def shown(self, ticks: int = 3) -> list[tuple[str, int]]:
        """Return, after some ticks, the names of the dataflows that run, and how many nodes each has."""
        while ticks:
            message = await asyncio.wait_for(self.viewer.messages.get(), 20)
            assert message is not None
            head, _, data = message.rstrip("\n").partition("\n")
            ticks -= self.view.take(head.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        return [(each.name, len(each.totals)) for each in self.view.dataflows.values() if not each.is_over]


def follow(body: Callable[[Following], Coroutine[Any, Any, None]]) -> None:
    """Run a test that follows what runs."""

    async def main() -> None:
        following = Following()
        try:
            await body(following)
        finally:
            await following.end()
            await following.watching.close()

    asyncio.run(main())


def test_runs_that_follow_each_other_are_shown_each_with_its_own_dataflows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PERIOD", 0.02)

    async def body(following: Following) -> None:
        for maps in (1, 4, 2):
            following.run(f"run {maps}", maps)
            async with asyncio.timeout(20):
                while (f"run {maps}", maps + 2) not in await following.shown(1):
                    pass
            if maps > 1:  # the first tick of a run that follows another one comes at once after the end of that one
                assert {rate for each in following.view.dataflows.values() for row in each.rates for rate in row} == {0}
            assert await following.shown() == [(f"run {maps}", maps + 2)]
            assert (len(following.view.workers), following.view.notes) == (1, [])
            await following.end()

    follow(body)


def test_of_several_runs_at_once_the_first_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PERIOD", 0.02)

    async def body(following: Following) -> None:
        following.run("first", 1)
        async with asyncio.timeout(20):
            while not await following.shown(1):
                pass
            following.run("second", 5, workers=2)
            while len(running_workers()) < 3:
                await asyncio.sleep(0.01)
        assert await following.shown() == [("first", 3)]
        assert (len(following.view.workers), following.view.notes) == (1, [])

    follow(body)
