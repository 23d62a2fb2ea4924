"""Serve the live view of a process when a run begins that asks for it (`timely run --live`), once for each process."""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from timely.communication.notes import REPORT_VARIABLE
from timely.config import Config, is_loopback, split_tcp
from timely.errors import ConfigError
from timely.live.handle import Live
from timely.observe.notices import notify
from timely.run.answering import answer_looks, own_runs
from timely.run.directory import run_directory

if TYPE_CHECKING:
    from timely.live.address import Address

_open: list[Live] = []
_begun: set[str] = set()
"""What else this process does for its run."""


def begin_live(config: Config) -> None:
    """Begin what a configuration asks for, unless this process already does."""
    answer_looks(config, at_once=True)
    if config.process:
        from timely.live.notes import current

        current()  # from the beginning: the page has the warnings of all processes
    elif config.live is not None and all(each.is_closed for each in _open):
        from timely.live.address import address_of

        is_here = all(each.startswith("ipc://") or is_loopback(split_tcp(each)[0]) for each in config.addresses)
        live = _begin(address_of(config.live), config.processes if is_here else 0)
        notify(f"live view at {live.url}")
    if config.metrics is not None and "metrics" not in _begun:
        from timely.live.address import metrics_address
        from timely.live.live import begin_metrics

        end = begin_metrics(metrics_address(config.metrics, config.processes), config.process)
        # Once it has begun: after an error the next run tries again.
        _begun.add("metrics")
        atexit.register(end)
    if config.telemetry is not None and "telemetry" not in _begun:
        from timely.live.live import begin_telemetry

        atexit.register(begin_telemetry(config.telemetry, config.process))
        _begun.add("telemetry")


def serve_live(
    address: str | int = "",
    *,
    token: str | None = None,
    certificate: tuple[str, str] | None = None,
) -> Live:
    """Serve a page that shows what the workers of this process do, at a port or HOST:PORT; `.url` opens it.

    It also shows the other processes on this machine of the runs that this process takes part in.

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
    answer_looks(Config(), at_once=True)
    return _begin(address_of(str(address), token, certificate), 0)


def _begin(address: Address, expected: int) -> Live:
    """Serve the page of this process, and of those below `expected`, which are on this machine."""
    from timely.live.jobs import others
    from timely.live.live import begin_page

    resources = ExitStack()
    report = os.environ.get(REPORT_VARIABLE)
    directory = Path(report).parent if report else resources.enter_context(run_directory(1))
    process = min(own_runs().values(), default=0)
    try:
        live = begin_page(address, process, lambda: others(own_runs(), expected), directory, bool(report), resources)
    except BaseException:
        resources.close()
        raise
    _open[:] = [live]
    atexit.register(live.close)
    # Or `atexit` would keep all pages that a program has opened and closed.
    resources.callback(atexit.unregister, live.close)
    return live
