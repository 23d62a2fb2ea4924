"""How the process with the page learns of the other processes on its machine: it asks them.

They answer at sockets in the directory of the run, which is private to the user (`timely.run.directory`): whoever can
connect may look. Requests are lines. `look` is answered by a line of JSON with the present numbers and new warnings,
`held N` by one with what holds dataflow N. While nobody is connected, a process has a thread that waits, and no more.
"""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from timely.live.looking import DataflowSeen, Looking, ProcessSeen, WorkerSeen, held
from timely.live.notes import Notes

LONGEST_LINE = 1 << 26
PATIENCE = 0.4
"""For how many seconds an answer is waited for; a process that is inside of compiled code gives none."""


def place(directory: Path, process: int) -> Path:
    """Return where a process answers."""
    return directory / f"live.{process}"


def answer(directory: Path, process: int, notes: Notes) -> None:
    """Answer whoever connects, in a thread, for as long as this process runs."""
    listener = socket.socket(socket.AF_UNIX)
    place(directory, process).unlink(missing_ok=True)  # of the process of an earlier session
    listener.bind(str(place(directory, process)))
    listener.listen()

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            Thread(target=converse, args=(connection,), name="timely live answers", daemon=True).start()

    def converse(connection: socket.socket) -> None:
        with suppress(OSError, ValueError), connection:
            _converse(connection, process, notes)

    Thread(target=accept, name="timely live", daemon=True).start()


def _converse(connection: socket.socket, process: int, notes: Notes) -> None:
    looking = Looking(process)
    noted = 0
    try:
        with connection.makefile("rb") as requests:
            for request in requests:
                verb, _, argument = request.decode("ascii").strip().partition(" ")
                if verb == "held":
                    found: Any = held(int(argument))
                else:
                    fresh = notes.since(noted)
                    noted = fresh[-1].number if fresh else noted
                    found = [_encode(looking.look()), fresh]
                connection.sendall(json.dumps(found).encode() + b"\n")
    finally:
        looking.close()


def _encode(seen: ProcessSeen) -> list[Any]:
    workers = [
        [each.index, each.doing, each.line, [[index, flow.rows.tolist()] for index, flow in each.dataflows.items()]]
        for each in seen.workers
    ]
    return [seen.process, seen.pid, workers]


def _decode(data: list[Any]) -> ProcessSeen:
    process, pid, workers = data
    found = []
    for index, doing, line, dataflows in workers:
        rows = {number: DataflowSeen(np.array(rows, np.int64).reshape(-1, 7), {}) for number, rows in dataflows}
        found.append(WorkerSeen(index, doing, line, rows))
    return ProcessSeen(process, pid, found, {})


class Neighbour:
    """Another process, as the one with the page asks it, over one connection and one question at a time.

    One connection, because the other process counts for as long as it is connected, and keeps for each connection which
    warnings it has sent. One question at a time, because answers have no numbers: they are matched by their order. So
    until a late answer has come, each call waits for it again, and asks nothing else. Use from one task.
    """

    def __init__(self, directory: Path, process: int) -> None:
        self.process = process
        self._path = place(directory, process)
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._waiting: tuple[str, asyncio.Task[Any]] | None = None
        """The question that is not answered yet, and what waits for its answer."""
        self._late: Any = None
        """An answer to `look` that came when something else was asked: the next `look` returns it."""

    async def look(self) -> tuple[ProcessSeen, list[list[Any]]] | None:
        """Return what the process does and its new warnings, or None if it does not answer in time."""
        found = self._late if self._late is not None else await self._ask("look")
        self._late = None
        return None if found is None else (_decode(found[0]), found[1])

    async def held(self, dataflow: int) -> list[str]:
        """Return what holds a dataflow up there, or nothing if it does not answer in time."""
        return await self._ask(f"held {dataflow}") or []

    async def close(self) -> None:
        """Disconnect, so that the process counts nothing more."""
        if self._waiting is not None:
            self._waiting[1].cancel()
            self._waiting = None
        self._late = None
        if self._ends is not None:
            self._ends[1].close()
            self._ends = None

    async def _ask(self, request: str) -> Any:
        if self._waiting is None:
            self._waiting = request, asyncio.ensure_future(self._exchange(request))
        asked, task = self._waiting
        done, _ = await asyncio.wait([task], timeout=PATIENCE)
        if not done:
            return None
        self._waiting = None
        try:
            found = task.result()
        except (OSError, EOFError, ValueError):
            await self.close()  # it has ended, or has not begun; the next time we connect again
            return None
        if asked == request:
            return found
        if asked == "look":
            self._late = found  # kept, because no other answer has the warnings that were new then
        return None

    async def _exchange(self, request: str) -> Any:
        if self._ends is None:
            self._ends = await asyncio.open_unix_connection(str(self._path), limit=LONGEST_LINE)
        reader, writer = self._ends
        writer.write(request.encode() + b"\n")
        line = await reader.readuntil(b"\n")
        return json.loads(line)
