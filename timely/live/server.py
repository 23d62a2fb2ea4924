"""What the page of a run, in its first process, answers.

- `/` is the page, and `/page/...` its files.
- `/stream` is a stream of events for a viewer: `shape` for each dataflow, and `tick` for what changes.
- `/node?dataflow=D&node=N` has the numbers of a node on each worker.
- `/metrics` is what Prometheus reads.

Who may see it: whoever has the token, from a page of the same origin, by the name of this machine.

- Every request needs the token: as a cookie, as `Authorization: Bearer TOKEN`, or in the address. A page that is opened
  with it in the address keeps it in a cookie that scripts cannot read and other sites cannot send, and forgets the
  address. Without it, other accounts on this machine see nothing, though they can connect.
- A request that names another host than this machine is refused (see `Access`), and so is one that comes from a page of
  another origin.
- Only GET and HEAD are answered. Nothing that is sent changes anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlencode

from starlette.applications import Starlette
from starlette.requests import Request, cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from timely.live.serving import Access, headers_of
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


HEADERS = (
    (b"content-security-policy", b"default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class PageGuard:
    """Passes the requests that may see the page to `app`, which is served at `host`."""

    def __init__(self, app: ASGIApp, token: str, host: str, port: int) -> None:
        self._app = app
        self._token = token
        self._cookie = f"timely-live-{port}"
        self._access = Access(token, host, port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0].lower() not in dict(HEADERS)]
                message = {**message, "headers": [*kept, *HEADERS]}
            await send(message)

        await self._app_for(scope)(scope, receive, sending)

    def _app_for(self, scope: Scope) -> ASGIApp:
        """Return what answers a request."""
        if refused := self._refusal(scope, headers_of(scope)):
            status, reason = refused
            return PlainTextResponse(reason, status)
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["path"] != "/" or not query.pop("token", [""])[0]:
            return self._app
        secure = "; Secure" if scope["scheme"] == "https" else ""
        cookie = f"{self._cookie}={quote(self._token)}; HttpOnly; SameSite=Strict; Path=/{secure}"
        target = "/" + (f"?{urlencode(query, doseq=True)}" if query else "")
        return PlainTextResponse("", 303, {"set-cookie": cookie, "location": target})

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return the status and the reason with which a request is refused, or None."""
        if refused := self._access.refusal("this page", headers):
            return refused
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{headers.get('host', '')}":
            return 403, "another site's page asks for this"
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "nothing can be changed here"
        if not self._has_token(scope, headers):
            return 401, "open the address that the run has printed: it has a token, and without it nothing is shown"
        return None

    def _has_token(self, scope: Scope, headers: dict[str, str]) -> bool:
        given = [parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]]
        # Browsers send the cookies of all ports of this machine, in any form: `SimpleCookie` gives up at `a={"b": 1}`.
        given.append(unquote(cookie_parser(headers.get("cookie", "")).get(self._cookie, "")))
        return self._access.has_token(headers, *given)
