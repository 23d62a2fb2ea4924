"""Looks at all processes of a run twice a second while somebody watches, and passes on what has changed.

A *viewer* is a page, a terminal, or a program that reads metrics now and then. Without viewers nothing runs and nothing
is counted.
"""

from __future__ import annotations

import asyncio
import json
import time as clock
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from timely.live.looking import Looking, ProcessSeen, held, shapes
from timely.live.neighbours import Neighbour
from timely.live.notes import Warnings
from timely.live.shape import Diagram
from timely.live.state import JobState, StateChanges

PERIOD = 0.5
HELD_EVERY = 4
"""After this many looks, whoever looks asks again which processes there are, and what holds dataflows still."""
Find = Callable[[], Mapping[int, Path | None]]
"""Returns where other processes of the run answer, by their index; None for one that does not answer yet."""
_BEHIND = 16
"""A viewer that is this many messages behind is disconnected; when it returns, it receives everything."""


class Viewer:
    """Receives what changes, after what there is in the beginning; `messages` ends with None."""

    def __init__(self, messages: Iterable[str]) -> None:
        self.messages: asyncio.Queue[str | None] = asyncio.Queue()
        for message in messages:
            self.messages.put_nowait(message)
        self._room = self.messages.qsize() + _BEHIND

    def give(self, message: str) -> bool:
        """Pass on a message, or disconnect a viewer that has too many already; return whether it stays connected."""
        # What a viewer receives in the beginning, however much, does not count as being behind.
        goes_on = self.messages.qsize() < self._room
        self.messages.put_nowait(message if goes_on else None)
        return goes_on

    def end(self) -> None:
        self.messages.put_nowait(None)


class Here:
    """The process that looks, if it belongs to the run: looked at directly, as `Neighbour` looks at others."""

    def __init__(self, process: int, notes: Warnings) -> None:
        self.process = process
        self._looking: Looking | None = None
        self._notes = notes
        self._noted = 0

    async def look(self) -> tuple[ProcessSeen, list[list[Any]]]:
        if self._looking is None:
            self._looking = Looking(self.process)
        seen = self._looking.look()  # first: if it fails, the next look returns the warnings
        fresh = self._notes.since(self._noted)
        self._noted = fresh[-1].number if fresh else self._noted
        return seen, [[*note] for note in fresh]

    async def shapes(self) -> list[Diagram]:
        return shapes()

    async def held(self, dataflow: int) -> list[str]:
        return held(dataflow)

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.close()
            self._looking = None


class Watching:
    """Looks at the process that looks, if there is one, and at those that `find` returns, while there are viewers.

    All of this runs in one event loop.
    """

    def __init__(self, here: Here | None, find: Find) -> None:
        self.state = JobState()
        self._here = [] if here is None else [here]
        self._find = find
        self._neighbours: dict[int, Neighbour] = {}
        self._kept: list[list[Any]] = []
        self._viewers: set[Viewer] = set()
        self._changes = StateChanges(self.state)
        self._task: asyncio.Task[None] | None = None
        self._until = 0.0
        self._looks = 0
        self._unsent: list[list[Any]] = []
        """Warnings that have not been sent, and looks that have failed, as notes."""
        self._looked = asyncio.Event()
        self._is_closed = False

    def join(self) -> Viewer:
        """Return a new viewer, who first receives everything that is known."""
        known = self.state.dataflows.items()
        over = [index for index, each in known if each.is_over]
        everything = {**StateChanges(self.state).as_data(self._kept, over), "is_first": True}
        viewer = Viewer([*(_event("shape", each.shape.as_data()) for _, each in known), _event("tick", everything)])
        self._viewers.add(viewer)
        self._begin()
        return viewer

    def leave(self, viewer: Viewer) -> None:
        self._viewers.discard(viewer)

    async def look_for(self, seconds: float) -> None:
        """Look for `seconds` more although nobody views; return when the state is that of now."""
        self.keep_looking(max(seconds, 4 * PERIOD))
        is_new = self._task is None or self._task.done()
        await asyncio.wait_for(self.looked(), 5.0)
        if is_new:  # the first look only begins to count
            await asyncio.wait_for(self.looked(), 5.0)

    def keep_looking(self, seconds: float) -> None:
        """Look for `seconds` more although nobody views."""
        self._until = max(self._until, clock.monotonic() + seconds)

    async def looked(self) -> JobState:
        """Wait for the next look, unless this is closed; return the state after it."""
        if not self._is_closed:
            self._looked.clear()
            self._begin()
            await self._looked.wait()
        return self.state

    async def close(self) -> None:
        """Stop looking, and disconnect the viewers. Viewers that wait for a look receive the state as it is."""
        self._is_closed = True
        self._looked.set()
        # `end` only sends a message: the viewers leave later, when they receive it.
        for viewer in self._viewers:
            viewer.end()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        try:
            due = clock.monotonic()
            while self._viewers or clock.monotonic() < self._until:
                try:
                    await self._look()
                except Exception as error:
                    # What is looked at changes meanwhile. The next look is another chance, and the log states why.
                    text = f"a look has failed: {type(error).__name__}: {error}"
                    self._unsent.append([clock.time(), self._here[0].process if self._here else 0, "live view", text])
                self._looked.set()
                due = max(due + PERIOD, clock.monotonic() + PERIOD / 4)
                await asyncio.sleep(due - clock.monotonic())
        finally:
            # Nothing in here waits, so nobody can join between the end of the loop and that of the task, and wait in
            # vain.
            for each in self._asked():
                await each.close()

    async def _look(self) -> None:
        state = self.state
        if self._looks % HELD_EVERY == 0:
            await self._meet()
        self._looks += 1
        asked = self._asked()
        if self._looks % HELD_EVERY == 0:
            for index in state.still():
                found = await asyncio.gather(*(each.held(index) for each in asked))
                state.dataflows[index].held = [line for lines in found for line in lines]
        answers = await asyncio.gather(*(each.look() for each in asked))
        seen = []
        for each, answer in zip(asked, answers):
            if answer is None:
                state.silent.setdefault(each.process, clock.monotonic())
            else:
                seen.append(answer[0])
                self._unsent += [[at, each.process, kind, text] for _, at, kind, text in answer[1]]
        former = state.begin_run(seen)
        if former:
            self._send([_event("tick", self._changes.as_data([], former, former))])
        seen = state.of_run(seen)
        if state.unknown(seen):
            answering = {each.process for each in seen}
            first = next(each for each in asked if each.process in answering)
            # Sent at once: whoever joins from now on receives them as known.
            known = set(state.dataflows)
            state.add_shapes(await first.shapes())
            new = [each.shape.as_data() for index, each in state.dataflows.items() if index not in known]
            self._send(_event("shape", shape) for shape in new)
        # From here on nobody is asked, and nothing fails: what is taken in is also sent. In this order, a dataflow that
        # ends in this look is shown as complete before it is forgotten. A process that has built more than the one that
        # was asked for shapes is taken in next time.
        gone = state.forget()
        over = state.take(each for each in seen if not state.unknown([each]))
        notes, self._unsent = self._unsent, []
        self._kept = [*self._kept, *notes][-200:]
        state.warnings.update(kind for _, _, kind, _ in notes)
        # After the tick above no time has passed over which a viewer could compute rates.
        self._send([_event("tick", {**self._changes.as_data(notes, over, gone), "is_first": bool(former)})])

    def _asked(self) -> list[Here | Neighbour]:
        return [*self._here, *self._neighbours.values()]

    async def _meet(self) -> None:
        """Find which other processes there are now, and where they answer."""
        places = self._find()
        for process in self._neighbours.keys() - places.keys():
            await self._neighbours.pop(process).close()
        for process, path in sorted(places.items()):
            known = self._neighbours.get(process)
            if known is None or known.path != path:
                if known is not None:
                    await known.close()
                self._neighbours[process] = Neighbour(process, path)

    def _send(self, messages: Iterable[str]) -> None:
        for message in messages:
            for viewer in tuple(self._viewers):
                if not viewer.give(message):
                    self.leave(viewer)


def _event(name: str, data: dict[str, Any]) -> str:
    """Return a message in the form of server-sent events."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"
