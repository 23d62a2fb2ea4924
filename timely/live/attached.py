"""A viewer that needs no page: it asks the processes of a run on this machine itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from timely.live.jobs import RunProcesses
from timely.live.watching import Viewer, Watching


def looks(run: RunProcesses) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events that the page of a run would send, until no process of it is left."""
    with asyncio.Runner() as runner:
        watching = Watching(None, run.find)

        async def join() -> Viewer:
            return watching.join()

        viewer = runner.run(join())
        try:
            while run.find():
                message = runner.run(viewer.messages.get())
                if message is None:  # whoever takes the events was too slow
                    viewer = runner.run(join())
                    continue
                head, _, data = message.rstrip("\n").partition("\n")
                yield head.removeprefix("event: "), json.loads(data.removeprefix("data: "))
        finally:
            runner.run(watching.close())
