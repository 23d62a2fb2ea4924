"""Begin the live view of a process: its page, and what it sends to a collector."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from timely.errors import ConfigError, TransportError
from timely.live.address import Address, is_url
from timely.live.handle import Live
from timely.live.jobs import FILE
from timely.live.notes import Warnings, current
from timely.live.serving import HttpServer
from timely.live.watching import Find, Here, Watching
from timely.observe.presence import write_privately


def begin_page(
    address: Address, process: int, find: Find, directory: Path, is_launched: bool, resources: ExitStack
) -> Live:
    """Serve the page of a run from this process of it, and note in a private directory where it is.

    `find` returns where the other processes answer. `is_launched`: the process that started this one belongs to the
    run. `resources` are closed with the page.
    """
    _require_server("the live page needs")
    from timely.live.server import application

    listener = address.listen()
    port, certificate = listener.getsockname()[1], address.certificate
    notes = Warnings(address.token)
    resources.callback(notes.close)
    watching = Watching(Here(process, notes), find)
    app = application(watching, address.token, address.host, port)
    server = HttpServer("live page", app, listener, certificate, watching.close, limit_concurrency=64)
    # Each as soon as it is there: whatever fails below, the caller closes all that has begun, the last one first. So
    # the note, by which others find the page, is gone before the page is.
    resources.callback(server.close)
    path = directory / FILE
    resources.callback(partial(path.unlink, missing_ok=True))
    pids = [os.getpid(), *([os.getppid()] if is_launched else [])]
    noted = {"url": server.url, "token": address.token, "processes": pids}
    try:
        write_privately(path, {**noted, "certificate": os.path.abspath(certificate[0]) if certificate else ""})
    except OSError as error:
        raise TransportError(f"cannot note where the live page is: {error.strerror}: {path}") from None
    return Live(f"{server.url}?token={quote(address.token)}", resources.close)


def begin_metrics(address: Address, process: int) -> Callable[[], None]:
    """Serve the metrics of this process until the result is called, at its own port: the given one plus its index."""
    _require_server("metrics need")
    from timely.live.server import metrics_application

    listener = address.at(process).listen()
    notes = current()
    watching = Watching(Here(process, notes), dict)
    app = metrics_application(watching, address.token, address.host, listener.getsockname()[1])
    return HttpServer("metrics", app, listener, address.certificate, watching.close, limit_concurrency=64).close


def _require_server(what: str) -> None:
    for library in ("starlette", "uvicorn"):
        if find_spec(library) is None:
            raise ConfigError(f"{what} {library}: pip install 'timely-dataflow[live]'")


def begin_telemetry(url: str, process: int) -> Callable[[], None]:
    """Send metrics and epochs of this process to a collector of OpenTelemetry until the result is called."""
    if not is_url(url):
        raise ConfigError(
            f"--telemetry takes the address of a collector, such as http://localhost:4318, not {url!r:.80}"
        )
    if find_spec("opentelemetry") is None:
        raise ConfigError("--telemetry needs opentelemetry: pip install 'timely-dataflow[telemetry]'")
    from timely.live.telemetry import begin

    return begin(url, process)
