"""How whoever looks at a run learns of its processes on this machine: it asks them.

The process with the page asks the others, and `timely top` asks all. They answer at sockets in private directories of
this user (`timely.observe.presence`): whoever can connect may look. Requests are lines. `look` is answered by a line of
JSON with the present numbers and new warnings, `held N` by one with what holds dataflow N, `shapes` by one with the
shapes of all dataflows. While nobody is connected, a process has a thread that waits, and no more.
"""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from timely.live.latency import Epoch
from timely.live.looking import DataflowSeen, Looking, ProcessSeen, WorkerSeen, held, shapes
from timely.live.notes import Warnings, current
from timely.live.shape import Diagram, shape_from
from timely.progress.antichain import Antichain

LONGEST_LINE = 1 << 26
PATIENCE = 0.4
"""For how many seconds an answer is waited for; a process that is inside of compiled code gives none."""


def converse(connection: socket.socket) -> None:
    """Answer what is asked over a connection until it ends."""
    # Whatever fails, as a look may at what changes meanwhile: who asks finds the connection closed, and connects again.
    with suppress(Exception), connection:
        _converse(connection, current())


def _converse(connection: socket.socket, notes: Warnings) -> None:
    looking = Looking()
    noted = 0
    try:
        with connection.makefile("rb") as requests:
            for request in requests:
                verb, _, argument = request.decode("ascii").strip().partition(" ")
                if verb == "held":
                    found: Any = held(int(argument))
                elif verb == "shapes":
                    found = [shape.as_data() for shape in shapes()]
                else:
                    fresh = notes.since(noted)
                    noted = fresh[-1].number if fresh else noted
                    found = [_encode(looking.look()), fresh]
                connection.sendall(json.dumps(found).encode() + b"\n")
    finally:
        looking.close()


def _encode(seen: ProcessSeen) -> list[Any]:
    workers = []
    for each in seen.workers:
        dataflows = [[index, of.rows.tolist(), [*of.frontiers.items()]] for index, of in each.dataflows.items()]
        workers.append([each.index, each.doing, each.line, dataflows, each.progress_bytes])
    epochs = [
        [index, [[each.frontier.elements, each.begun, each.ended] for each in of]] for index, of in seen.epochs.items()
    ]
    return [seen.pid, workers, epochs, seen.run]


def _decode(process: int, data: list[Any]) -> ProcessSeen:
    pid, workers, epochs, run = data
    found = []
    for index, doing, line, dataflows, progress_bytes in workers:
        flows = {}
        for number, rows, frontiers in dataflows:
            moved = {operator: tuple(map(tuple, times)) for operator, times in frontiers}
            flows[number] = DataflowSeen(np.array(rows, np.int64).reshape(-1, 7), moved)
        found.append(WorkerSeen(index, doing, line, flows, progress_bytes))
    ended = {
        number: [Epoch(Antichain(map(tuple, times)), begun, end) for times, begun, end in of] for number, of in epochs
    }
    return ProcessSeen(process, pid, found, ended, run)


class Neighbour:
    """A process, as whoever looks at it asks it, over one connection and one question at a time.

    Without a path it does not answer: it belongs to the run, and cannot be looked at yet.

    One connection, because the other process counts for as long as it is connected, and keeps for each connection which
    warnings it has sent. One question at a time, because answers have no numbers: they are matched by their order. So
    until a late answer has come, each `look` waits for it again, and nothing else is asked. Use from one task.
    """

    def __init__(self, process: int, path: Path | None) -> None:
        self.process = process
        self.path = path
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._waiting: tuple[str, asyncio.Task[Any]] | None = None
        """The question that is not answered yet, and what waits for its answer."""
        self._late: Any = None
        """An answer to `look` that came when something else was asked: the next `look` returns it."""

    async def look(self) -> tuple[ProcessSeen, list[list[Any]]] | None:
        """Return what the process does and its new warnings, or None if it does not answer in time."""
        found = self._late if self._late is not None else await self._ask("look")
        self._late = None
        return None if found is None else (_decode(self.process, found[0]), found[1])

    async def shapes(self) -> list[Diagram]:
        """Return the shapes of the dataflows there, or nothing if it does not answer in time."""
        return [shape_from(data) for data in await self._ask("shapes") or []]

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
        # Of many questions, only one waits for a late answer.
        patience = PATIENCE if self._waiting is None or request == "look" else 0
        if self._waiting is None:
            self._waiting = request, asyncio.ensure_future(self._exchange(request))
        asked, task = self._waiting
        done, _ = await asyncio.wait([task], timeout=patience)
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
            if self.path is None:
                raise EOFError
            self._ends = await asyncio.open_unix_connection(str(self.path), limit=LONGEST_LINE)
        reader, writer = self._ends
        writer.write(request.encode() + b"\n")
        line = await reader.readuntil(b"\n")
        return json.loads(line)
