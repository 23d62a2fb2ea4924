"""How processes of a run answer the one with the page."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event

import pytest

from timely.live import neighbours
from timely.live.neighbours import Neighbour, answer
from timely.live.notes import Notes


def test_a_process_answers_where_an_earlier_one_of_its_number_did(tmp_path: Path) -> None:
    async def look() -> int | None:
        neighbour = Neighbour(tmp_path, 1)
        try:
            found = await neighbour.look()
            return None if found is None else found[0].process
        finally:
            await neighbour.close()

    assert asyncio.run(look()) is None
    for _ in range(2):  # each session of a program has a process 1
        answer(tmp_path, 1, Notes())
        assert asyncio.run(look()) == 1


def test_the_warnings_of_a_late_look_are_not_lost_when_something_else_is_asked_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, held_up, notes = neighbours._encode, Event(), Notes()
    monkeypatch.setattr(neighbours, "PATIENCE", 0.05)
    monkeypatch.setattr(neighbours, "_encode", lambda seen: held_up.wait(20) and encode(seen))
    notes.add("notice", "something is wrong")
    answer(tmp_path, 1, notes)

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

    neighbour = Neighbour(tmp_path, 1)
    asyncio.run(ask())
    notes.close()
