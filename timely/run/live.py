"""Serve the live view of a process when a run begins that asks for it (`timely run --live`), once for each process."""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from timely.communication.notes import REPORT_VARIABLE
from timely.config import Config
from timely.errors import ConfigError
from timely.observe.notices import notify
from timely.run.directory import run_directory

if TYPE_CHECKING:
    from timely.live.address import Address
    from timely.live.handle import Live

_open: list[Live] = []
_begun: set[str] = set()
"""What else this process does for its run."""


def begin_live(config: Config) -> None:
    """Begin what a configuration asks for, unless this process does it already."""
    report = os.environ.get(REPORT_VARIABLE)
    directory = Path(report).parent if report else None
    if config.process:
        if directory is not None and "answers" not in _begun:
            from timely.live.neighbours import answer
            from timely.live.notes import Notes

            _begun.add("answers")
            answer(directory, config.process, Notes())
        return
    if config.live is not None and all(each.is_closed for each in _open):
        from timely.live.address import address_of

        live = _begin(address_of(config.live), config.processes, directory)
        notify(f"live view at {live.url}")
    if config.telemetry is not None and "telemetry" not in _begun:
        from timely.live.live import begin_telemetry

        _begun.add("telemetry")
        atexit.register(begin_telemetry(config.telemetry, config.processes, directory))


def serve_live(
    address: str | int = "", *, token: str | None = None, certificate: tuple[str, str] | None = None
) -> Live:
    """Serve a page that shows what the workers of this process do, at a port or HOST:PORT; `.url` opens it.

    Without an address it is the first free port from 8400 on. Other machines can reach a HOST that is not loopback, so
    that takes a `token` of the caller's and a `certificate`: the files of a certificate and its key. Raises ConfigError
    if the page is served already at another address, or cannot be served there.

    >>> live = serve_live(0)
    >>> live.url
    'http://127.0.0.1:.../?token=...'
    >>> live.close()
    """
    from timely.live.address import address_of

    for live in _open:
        if not live.is_closed:
            if address == "":
                return live
            raise ConfigError(f"the live view of this process is served already, at {live.url}: close() that one first")
    return _begin(address_of(str(address), token, certificate), 1, None)


def _begin(address: Address, processes: int, directory: Path | None) -> Live:
    from timely.live.live import begin_page

    resources, is_launched = ExitStack(), directory is not None
    if directory is None:
        # Nobody else is in this run, as far as this machine knows; the file of the page is in a directory of its own.
        processes, directory = 1, resources.enter_context(run_directory(1))
    try:
        live = begin_page(address, processes, directory, is_launched)
    except BaseException:
        resources.close()
        raise
    _open[:] = [live]
    atexit.register(resources.close)
    atexit.register(live.close)
    return live
