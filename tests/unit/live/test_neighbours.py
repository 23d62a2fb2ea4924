"""How processes of a run answer the one with the page."""

from __future__ import annotations

import asyncio
from pathlib import Path

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
