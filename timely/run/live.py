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
from timely.live.handle import ALONE, Live, Others
from timely.observe.notices import notify
from timely.run.directory import run_directory

if TYPE_CHECKING:
    from timely.live.address import Address

_open: list[Live] = []
_begun: set[str] = set()
"""What else this process does for its run."""
_others: dict[str, Others] = {}
"""The processes of runs that were not started by `timely run`, by the generation of their configuration."""


def begin_live(config: Config) -> None:
    """Begin what a configuration asks for, unless this process already does."""
    launched = _launched()
    if config.process:
        if launched is not None:
            answer_looks(launched, config.process)
        return
    others = _others.get(config.generation.partition(".")[0], Others(launched, config.processes))
    if config.live is not None and all(each.is_closed for each in _open):
        from timely.live.address import address_of

        live = _begin(address_of(config.live), others, launched)
        notify(f"live view at {live.url}")
    if config.telemetry is not None and "telemetry" not in _begun:
        from timely.live.live import begin_telemetry

        _begun.add("telemetry")
        atexit.register(begin_telemetry(config.telemetry, others.processes, others.directory))


def answer_looks(directory: Path, process: int) -> None:
    """Answer the process with the page from now on: it asks in a directory, which others cannot read.

    Further calls do nothing.
    """
    if "answers" not in _begun:
        from timely.live.neighbours import answer
        from timely.live.notes import Notes

        _begun.add("answers")
        answer(directory, process, Notes())


def note_others(generation: str, others: Others) -> None:
    """Record for `begin_live` the other processes of a run of this generation, which answer in its own directory."""
    _others[generation] = others


def serve_live(
    address: str | int = "",
    *,
    token: str | None = None,
    certificate: tuple[str, str] | None = None,
    others: Others = ALONE,
) -> Live:
    """Serve a page that shows what the workers of this process do, at a port or HOST:PORT; `.url` opens it.

    It shows the workers of `others`, too.

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
            raise ConfigError(f"the live view of this process is already served at {live.url}: close() that one first")
    return _begin(address_of(str(address), token, certificate), others, None)


def _launched() -> Path | None:
    """Return the directory of the run, if `timely run` has started it."""
    report = os.environ.get(REPORT_VARIABLE)
    return Path(report).parent if report else None


def _begin(address: Address, others: Others, launched: Path | None) -> Live:
    from timely.live.live import begin_page

    resources = ExitStack()
    directory = launched or resources.enter_context(run_directory(1))
    try:
        live = begin_page(address, others, directory, launched is not None, resources)
    except BaseException:
        resources.close()
        raise
    _open[:] = [live]
    atexit.register(live.close)
    resources.callback(atexit.unregister, live.close)
    return live
