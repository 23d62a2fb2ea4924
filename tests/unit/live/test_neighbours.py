"""How processes of a run answer the one with the page."""

from __future__ import annotations

import asyncio
import socket
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from timely.live import neighbours, watching
from timely.live.looking import Looking
from timely.live.neighbours import Neighbour, converse
from timely.live.notes import Warnings
from timely.live.state import JobState
from timely.live.watching import Watching


@contextmanager
def answering(path: Path) -> Iterator[Path]:
    """Answer one connection at a time there."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            with suppress(OSError):
                while True:
                    converse(listener.accept()[0])

        thread = Thread(target=answer, name="timely test", daemon=True)
        thread.start()
        try:
            yield path
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            assert not thread.is_alive(), "a conversation goes on though the other side has closed it"


def test_what_is_asked_is_answered_by_whoever_is_at_the_path(tmp_path: Path) -> None:
    async def look(path: Path | None) -> int | None:
        neighbour = Neighbour(7, path)
        try:
            found = await neighbour.look()
            assert await neighbour.shapes() == []
            return None if found is None else found[0].process
        finally:
            await neighbour.close()

    assert asyncio.run(look(None)) is None
    assert asyncio.run(look(tmp_path / "process.1")) is None
    with answering(tmp_path / "process.1") as path:
        assert asyncio.run(look(path)) == 7


def test_processes_that_begin_and_end_are_looked_at_for_as_long_as_they_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "PERIOD", 0.01)
    places: dict[int, Path | None] = {1: None}

    async def until(state: JobState, condition: Callable[[], bool]) -> None:
        end = clock.monotonic() + 20
        while not condition():
            assert clock.monotonic() < end, (state.silent, places)
            await looker.looked()

    async def ask(first: Path, second: Path) -> None:
        looker.join()
        await until(looker.state, lambda: looker.state.silent.keys() == {1})
        places.update({1: first, 2: second})
        await until(looker.state, lambda: looker._looks > 8 and not looker.state.silent)
        del places[2]
        await until(looker.state, lambda: [*looker._neighbours] == [1])
        await looker.close()

    looker = Watching(None, lambda: places)
    with answering(tmp_path / "process.1") as first, answering(tmp_path / "process.2") as second:
        asyncio.run(ask(first, second))


def test_the_warnings_of_a_late_look_are_not_lost_when_something_else_is_asked_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, held_up, notes = neighbours._encode, Event(), Warnings()
    monkeypatch.setattr(neighbours, "PATIENCE", 0.05)
    monkeypatch.setattr(neighbours, "_encode", lambda seen: held_up.wait(20) and encode(seen))
    monkeypatch.setattr(neighbours, "current", lambda: notes)
    notes.add("notice", "something is wrong")

    async def texts() -> list[str] | None:
        found = await neighbour.look()
        return None if found is None else [text for *_, text in found[1]]

    async def ask() -> None:
        assert await texts() is None
        held_up.set()
        monkeypatch.setattr(neighbours, "PATIENCE", 20.0)
        await neighbour.held(0)
        assert await texts() == ["something is wrong"]
        assert await texts() == []
        monkeypatch.setattr(neighbours, "PATIENCE", 0.05)
        held_up.clear()
        assert await texts() is None
        held_up.set()
        monkeypatch.setattr(neighbours, "PATIENCE", 20.0)
        await neighbour.held(0)
        await neighbour.close()
        assert await texts() == ["something is wrong"], "a new conversation begins anew"
        await neighbour.close()

    with answering(tmp_path / "process.1") as path:
        neighbour = Neighbour(1, path)
        asyncio.run(ask())
    notes.close()


def test_many_questions_wait_for_a_late_answer_as_long_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encode, held_up, notes = neighbours._encode, Event(), Warnings()
    monkeypatch.setattr(neighbours, "PATIENCE", 0.2)
    monkeypatch.setattr(neighbours, "_encode", lambda seen: held_up.wait(20) and encode(seen))
    monkeypatch.setattr(neighbours, "current", lambda: notes)
    notes.add("notice", "something is wrong")

    async def ask() -> None:
        begun = clock.monotonic()
        assert await neighbour.look() is None
        for dataflow in range(50):
            assert await neighbour.held(dataflow) == []
        assert clock.monotonic() - begun < 5
        held_up.set()
        assert neighbour._waiting is not None
        await asyncio.wait([neighbour._waiting[1]], timeout=20)
        assert await neighbour.held(0) == []
        found = await neighbour.look()
        assert found is not None
        assert [text for *_, text in found[1]] == ["something is wrong"]
        await neighbour.close()

    with answering(tmp_path / "process.1") as path:
        neighbour = Neighbour(1, path)
        asyncio.run(ask())
    notes.close()


def test_a_look_that_fails_ends_the_conversation_and_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(self: Looking) -> None:
        raise KeyError("a dataflow that has ended")

    monkeypatch.setattr(Looking, "look", fail)
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(b"look\n")
        converse(theirs)
        assert ours.recv(1) == b""
    assert capsys.readouterr().err == ""
