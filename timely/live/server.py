"""What the page of a run, in its first process, answers.

- `/` is the page, and `/page/...` its files.
- `/stream` is a stream of events for a viewer: `shape` for each dataflow, and `tick` for what changes.
- `/node?dataflow=D&node=N` has the numbers of a node on each worker.
- `/metrics` is what Prometheus reads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from timely.live.guard import PageGuard
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
LINGER_SECONDS = 120.0
"""For how long operators are counted after metrics were read: longer than programs pause before they read again."""


def application(watching: Watching, token: str, host: str, port: int) -> PageGuard:
    files = {str(path.relative_to(FILES)): path for path in FILES.rglob("*") if path.is_file()}

    async def file(request: Request) -> Response:
        path = files.get(request.path_params.get("name", "index.html"))
        if path is None:
            return PlainTextResponse("there is no such file", 404)
        return Response(path.read_bytes(), media_type=TYPES.get(path.suffix, "text/plain"))

    async def stream(request: Request) -> Response:
        if request.method == "HEAD":  # Starlette would look, and send nothing, until the client disconnects
            return Response(media_type="text/event-stream")

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

    routes = [Route("/", file), Route("/page/{name:path}", file), Route("/stream", stream), Route("/node", node)]
    return PageGuard(Starlette(routes=[*routes, _metrics(watching)]), token, host, port)


def metrics_application(watching: Watching, token: str, host: str, port: int) -> PageGuard:
    """Return what answers requests for metrics, and no others."""
    return PageGuard(Starlette(routes=[_metrics(watching)]), token, host, port)


def _metrics(watching: Watching) -> Route:
    async def metrics(request: Request) -> Response:
        if find_spec("prometheus_client") is None:
            return PlainTextResponse("metrics need prometheus_client: pip install 'timely-dataflow[telemetry]'", 501)
        from timely.live.prometheus import exposition

        await watching.look_for(LINGER_SECONDS)
        body, content_type = exposition(watching.state, request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    return Route("/metrics", metrics)
