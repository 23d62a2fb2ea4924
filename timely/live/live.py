"""The live view of a process: the page in the first process, and answers for it in the others.

A process has one view at most, for all its workers, those of a session included.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from timely.errors import ConfigError
from timely.live.address import Address
from timely.live.neighbours import answer
from timely.live.notes import Notes

if TYPE_CHECKING:
    from timely.live.server import PageServer

FILE = "live.json"
"""In the directory of a run: where its page is, with the token, and the processes that it belongs to."""


class Live:
    """The page of a run, for as long as this process runs or until `close`. `url` opens it, with its token."""

    def __init__(self, url: str, server: PageServer, forget: Callable[[], None]) -> None:
        self.url = url
        self._server = server
        self._forget = forget
        self.is_closed = False

    def close(self) -> None:
        """Serve the page no more."""
        if not self.is_closed:
            self.is_closed = True
            self._forget()
            self._server.close()

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank" rel="noreferrer">live view of this process</a>'

    def __repr__(self) -> str:
        return f"<Live, closed: {self.url}>" if self.is_closed else f"<Live: {self.url}>"


def begin_page(address: Address, processes: int, directory: Path) -> Live:
    """Serve the page of a run from this process, its first, and note in a private directory where it is."""
    for library in ("starlette", "uvicorn"):
        if find_spec(library) is None:
            raise ConfigError(f"the live page needs {library}: pip install 'timely-dataflow[live]'")
    from timely.live.server import PageServer, application
    from timely.live.watching import Watching

    listener = address.listen()
    port = listener.getsockname()[1]
    watching = Watching(0, processes, directory, Notes(address.token))
    app = application(watching, address.token, port, address.is_local)
    server = PageServer(watching, listener, app, address.certificate)
    url = address.url(port)
    path = directory / FILE
    _write(path, {"url": url, "token": address.token, "processes": [os.getpid(), os.getppid()]})
    return Live(f"{url}?token={address.token}", server, lambda: path.unlink(missing_ok=True))


def begin_answers(process: int, directory: Path) -> None:
    """Answer the page of a run for this process, another one than the first."""
    answer(directory, process, Notes())


def _write(path: Path, content: dict[str, object]) -> None:
    """Write a file that is complete whenever it is there, and that only its owner can read."""
    part = path.with_suffix(".new")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(content, file)
    part.replace(path)
