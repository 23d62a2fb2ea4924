"""The server of the page: a thread of the first process, with an event loop of its own.

- `/` is the page, and `/page/...` its files.
- `/stream` is a stream of events for a viewer: `shape` for each dataflow, and `tick` for what changes.
- `/node?dataflow=D&node=N` has the numbers of a node on each worker.
- `/metrics` is what Prometheus reads.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from timely.live.guard import Guard
from timely.live.watching import Watching

FILES = Path(__file__).with_name("page")
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
    ".md": "text/plain",
}
START_SECONDS = 10.0
STOP_SECONDS = 5.0
LINGER_SECONDS = 120.0
"""For how long operators are counted after metrics were read: longer than the pause of whoever reads them again."""


def application(watching: Watching, token: str, port: int, is_local: bool) -> Guard:
    """Return what answers requests."""
    files = {str(path.relative_to(FILES)): path for path in FILES.rglob("*") if path.is_file()}

    async def file(request: Request) -> Response:
        path = files.get(request.path_params.get("name", "index.html"))
        if path is None:
            return PlainTextResponse("there is no such file", 404)
        return Response(path.read_bytes(), media_type=TYPES.get(path.suffix, "text/plain"))

    async def stream(request: Request) -> Response:
        async def messages() -> AsyncIterator[str]:
            viewer = watching.join()
            try:
                while (message := await viewer.messages.get()) is not None:
                    yield message
            finally:
                watching.leave(viewer)

        return StreamingResponse(messages(), media_type="text/event-stream")

    async def node(request: Request) -> Response:
        try:
            dataflow, number = (int(request.query_params[name]) for name in ("dataflow", "node"))
        except (KeyError, ValueError):
            return PlainTextResponse("name a dataflow and a node by their numbers", 400)
        return JSONResponse(watching.state.by_worker(dataflow, number))

    async def metrics(request: Request) -> Response:
        if find_spec("prometheus_client") is None:
            return PlainTextResponse("metrics need prometheus_client: pip install 'timely-dataflow[telemetry]'", 501)
        from timely.live.prometheus import exposition

        await watching.look_for(LINGER_SECONDS)
        body, content_type = exposition(watching.state, request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    routes = [Route("/", file), Route("/page/{name:path}", file), Route("/stream", stream), Route("/node", node)]
    routes.append(Route("/metrics", metrics))
    return Guard(Starlette(routes=routes), token, port, is_local)


class _Server(uvicorn.Server):
    """A server that wakes up for requests alone, and not ten times a second."""

    def __init__(self, config: uvicorn.Config, watching: Watching) -> None:
        super().__init__(config)
        self._watching = watching
        self.loop: asyncio.AbstractEventLoop | None = None
        self.has_begun = Event()
        self._over: asyncio.Event | None = None

    async def main_loop(self) -> None:
        self.loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self.has_begun.set()
        await self._over.wait()
        self.should_exit = self.force_exit = True
        await self._watching.close()

    def stop(self) -> None:
        """End the server, from any thread."""
        if self.loop is not None and self._over is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._over.set)


class PageServer:
    """Serves the page on a socket that listens, until it is closed."""

    def __init__(
        self, watching: Watching, listener: socket.socket, app: Guard, certificate: tuple[str, str] | None
    ) -> None:
        """Start it. `certificate` names the files for TLS, if it is used."""
        certificate_file, key_file = certificate or (None, None)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            loop="asyncio",
            http="h11",
            ws="none",
            server_header=False,
            date_header=False,
            limit_concurrency=64,
            timeout_graceful_shutdown=1,
            ssl_certfile=certificate_file,
            ssl_keyfile=key_file,
        )
        self._server = _Server(config, watching)
        self._thread = Thread(target=self._run, args=(listener,), name="timely live page", daemon=True)
        self._thread.start()
        if not self._server.has_begun.wait(START_SECONDS):
            raise RuntimeError("the server of the live page did not start within 10 s")

    def close(self) -> None:
        """End it, and wait until it has ended."""
        self._server.stop()
        self._thread.join(STOP_SECONDS)

    def _run(self, listener: socket.socket) -> None:
        asyncio.run(self._server.serve([listener]))
