"""A viewer that is a program: reads the stream of a page, and keeps the numbers as the page does.

Without a page it asks the processes of a run on this machine itself (`looks`).
"""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from timely.errors import TransportError
from timely.live.jobs import LiveJob, RunProcesses
from timely.live.state import decoded
from timely.live.watching import Viewer, Watching

SILENT_SECONDS = 15.0
"""A page sends something twice a second, so after this it has ended."""


class Mirror:
    """A dataflow as a viewer knows it: totals and rates of its nodes, frontiers, latency, and what holds it."""

    def __init__(self, shape: dict[str, Any]) -> None:
        self.name: str = shape["name"]
        self.nodes: list[dict[str, Any]] = shape["nodes"]
        self.totals: list[list[int]] = [[0] * 7 for _ in self.nodes]
        self.rates: list[list[float]] = [[0.0] * 7 for _ in self.nodes]
        self.frontiers: dict[int, str] = {}
        self.epochs: tuple[int, int, int, int] | None = None
        """Of the last half second with any: how many have ended, the median, 99th percentile and maximum."""
        self.held: list[str] = []
        self.is_over = False

    def take(self, changes: dict[str, Any], seconds: float) -> None:
        """Take in what has changed in `seconds`; with 0, everything as it is."""
        self.rates = [[0.0] * 7 for _ in self.nodes]
        for node, *row in decoded(changes.get("rows", "")):
            if seconds > 0:
                self.rates[node] = [(now - before) / seconds for now, before in zip(row, self.totals[node])]
            self.totals[node] = row
        moved = changes.get("frontiers", ())
        self.frontiers.update((node, text) for text, *nodes in moved for node in nodes)
        # The page sends what holds a dataflow only if something does. Once a frontier has moved, what was held is over.
        self.held = changes.get("held", [] if moved else self.held)
        if "epochs" in changes:
            self.epochs = tuple(changes["epochs"])


class JobView:
    """A whole job as a viewer knows it."""

    def __init__(self) -> None:
        self.dataflows: dict[int, Mirror] = {}
        self.workers: list[list[Any]] = []
        self.notes: list[list[Any]] = []
        self.seconds = 0.0
        self.ticks = 0

    def take(self, event: str, data: dict[str, Any]) -> bool:
        """Take in an event; return whether there is something new to show."""
        if event == "shape":
            self.dataflows[data["dataflow"]] = Mirror(data)
            return False
        elapsed = 0.0 if data.get("is_first") else data["seconds"] - self.seconds
        self.seconds, self.workers = data["seconds"], data["workers"]
        self.notes = [*self.notes, *data["notes"]][-200:]
        for index in data["gone"]:
            self.dataflows.pop(index, None)
        for index, mirror in self.dataflows.items():
            mirror.take(data["dataflows"].get(str(index), {}), elapsed)
            mirror.is_over = mirror.is_over or index in data["over"]
        self.ticks += 1
        return True


def events(job: LiveJob) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a job's page until the job ends; raise TransportError if the page does not answer."""
    with closing(_connection(job)) as connection:
        try:
            connection.request("GET", "/stream", headers={"Authorization": f"Bearer {job.token}"})
            answer = connection.getresponse()
        except ssl.SSLCertVerificationError as error:
            raise TransportError(
                f"the certificate of the page at {job.url} is not trusted here ({error.verify_message}): set "
                "SSL_CERT_FILE to the file of the certificate, or of the authority that signed it"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise TransportError(f"the page at {job.url} does not answer ({error}): has the job ended?") from None
        if answer.status != 200:
            reason = answer.read(1000).decode(errors="replace")
            raise TransportError(f"the page at {job.url} answers with status {answer.status}: {reason}")
        yield from _parsed(answer)


def _connection(job: LiveJob) -> http.client.HTTPConnection:
    parts = urlsplit(job.url)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=SILENT_SECONDS)
    try:
        context = ssl.create_default_context(cafile=job.certificate or None)
    except OSError as error:
        raise TransportError(f"cannot read the certificate {job.certificate} of the page: {error}") from None
    if job.certificate:
        # The job has noted its own certificate, so that one is trusted, whoever has signed it and for whatever name.
        context.check_hostname = False
        context.verify_flags = ssl.VERIFY_X509_PARTIAL_CHAIN
    return http.client.HTTPSConnection(host, port, timeout=SILENT_SECONDS, context=context)


def _parsed(answer: http.client.HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
    event = ""
    while True:
        try:
            line = answer.readline().decode()
        except (OSError, http.client.HTTPException):
            return
        if not line:
            return
        name, _, value = line.rstrip("\n").partition(": ")
        if name == "event":
            event = value
        elif name == "data":
            yield event, json.loads(value)


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
