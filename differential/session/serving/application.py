"""What a session answers over HTTP.

- `GET /` lists the tables and views that may be read, and the tables that may be changed.
- `POST /tables/NAME` commits changes of a table, one JSON object on each line. With the header `Idempotency-Key` it is
  safe to repeat.
- `GET /rows/NAME` returns the rows as of the last commit; `GET /rows/NAME?COLUMN=VALUE` those of a key.
- `GET /changes/NAME` returns a stream of Server-Sent Events, or of messages if it opens a WebSocket: a snapshot and the
  changes of each commit, or the changes after `Last-Event-ID` or `?after=`.

Only requests are answered that have the token, and do not come from a page of another site.

- Every request needs `Authorization: Bearer TOKEN`. Without it, the request is refused before its body is read.
- If only this machine is served, a request that names another host is refused. So a page whose foreign name resolves
  to this address reads nothing. A request from a page of another origin is always refused.
- A body that is longer than the limit is refused, because of its stated length or as soon as more bytes have arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from differential.session.catalog import Catalog
from differential.session.finding import found_by_text
from differential.session.item import Item
from differential.session.serving.form import records, text
from differential.session.serving.incoming import TABLE, Incoming, Reply
from differential.session.serving.outgoing import Cut, SentMessage, SessionHubs
from differential.session.sources.remote import GONE
from timely.errors import DataError, SessionError, TimelyError
from timely.services import Access, headers_of

PAUSE_SECONDS = 15.0
"""After this long without a message, a comment shows that the stream continues, and detects readers that are gone."""
FIRST_SECONDS = 0.5
"""After this long without a message, the answer begins: who resumes may wait for the next commit."""
KEY_LENGTH = 200
"""How many characters an `Idempotency-Key` may have."""
TRY_AGAIN = 1013
"""The code with which a WebSocket is closed whose reader may connect again. If there is nothing to read, it is GONE."""
CLOSING_BYTES = 123
"""How many bytes the reason may have with which a WebSocket is closed."""
PART = 1 << 18
"""An answer is sent in parts of at most this many bytes: a slow client has the whole time for each of them."""

T = TypeVar("T")


class _Name(PathConvertor):
    """The rest of a path, which is a name: of any characters."""

    regex = "(?s:.+)"


register_url_convertor("of_item", _Name())


class Application:
    """Answers requests. `read` and `write` are the names that may be read and written, None for all."""

    def __init__(
        self,
        catalog: Catalog,
        incoming: Incoming,
        hubs: SessionHubs,
        limit: int,
        read: Sequence[str] | None,
        write: Sequence[str] | None,
    ) -> None:
        self._catalog = catalog
        self._incoming = incoming
        self._hubs = hubs
        self._limit = limit
        self._read = read
        self._write = write
        self._end = asyncio.Event()
        routes = [
            Route("/", self._list),
            Route("/tables/{name:of_item}", self._post, methods=["POST"]),
            Route("/rows/{name:of_item}", self._rows),
            WebSocketRoute("/changes/{name:of_item}", self._socket),
            Route("/changes/{name:of_item}", _Events(self)),
        ]
        self.app = Starlette(routes=routes, exception_handlers={HTTPException: _refused})

    @property
    def is_over(self) -> bool:
        """Whether the session ends, so that another one may be served here."""
        return self._catalog.is_over

    def is_final(self, error: Exception) -> bool:
        """Return whether a reader that has received this error would receive it again."""
        return isinstance(error, (DataError, SessionError)) and not self.is_over

    def end(self) -> None:
        """Refuse requests whose body is not complete, and all that follow, because the server ends."""
        self._end.set()

    def readable(self, name: str) -> Item | None:
        """Return the table or view of this name, or None if there is none that may be read."""
        return self._allowed(name, self._read)

    async def entries(self, item: Item, connection: HTTPConnection) -> AsyncIterator[SentMessage]:
        """Yield the messages for a reader. Raises Cut at the end of the stream.

        Raises DataError for an id that is not valid or a column that JSON cannot hold, SessionError if the item failed,
        and StateError if the store of a durable session cannot be read.
        """
        hub = self._hubs.of(item)
        mark = connection.headers.get("last-event-id") or connection.query_params.get("after")
        async for entry in hub.read(mark):
            yield entry

    async def _list(self, request: Request) -> Response:
        items = tuple(self._catalog.items.values())
        shown = [
            {"name": item.name, "kind": item.kind, "rows": item.size, "columns": item.names and item.columns(0)}
            for item in items
            if self.readable(item.name)
        ]
        writable = [item.name for item in items if self._writable(item.name)]
        return _json(200, {"commit": self._catalog.last, "read": shown, "write": writable})

    async def _post(self, request: Request) -> Response:
        item = self._writable(request.path_params["name"])
        if item is None:
            return _json(404, {"error": f"there is no table {request.path_params['name']!r} to change here"})
        key = request.headers.get("idempotency-key")
        if key is not None and not 0 < len(key) <= KEY_LENGTH:
            return _json(400, {"error": f"an Idempotency-Key has 1 to {KEY_LENGTH} characters"})
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            return _json(415, {"error": "the body must be text in UTF-8, not compressed"})
        try:
            body = await _until(self._end.wait(), self._body(request))
        except ClientDisconnect:
            return _json(400, {"error": "the body is not complete"})
        if body is None:
            return _json(503, {"error": "the session has ended, or is no longer served"})
        if len(body) > self._limit:
            return _json(413, {"error": f"a body has at most {self._limit:,} bytes: send several requests"})
        try:
            # In a thread, because it waits for other commits. If the client goes, it continues.
            found = await asyncio.to_thread(self._incoming.commit, item, bytes(body), key)
        except DataError as error:
            found = Reply(422, {"error": str(error)})
        except TimelyError as error:
            found = Reply(503, {"error": str(error)})
        return _json(*found)

    async def _body(self, request: Request) -> bytearray:
        """Return the body of a request, or its beginning if it is longer than the limit."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._limit:
                break
        return body

    async def _rows(self, request: Request) -> Response:
        item = self.readable(request.path_params["name"])
        if item is None:
            return _json(404, {"error": f"there is no table or view {request.path_params['name']!r} to read here"})

        key: dict[str, list[str]] = {}
        for column, value in request.query_params.multi_items():
            key.setdefault(column, []).append(value)

        def rows() -> Response:
            found, commit = found_by_text(self._catalog, item, key) if key else self._catalog.snapshot(item)
            return _json(
                200, {"commit": commit, "columns": found.columns, "rows": records(found.columns, found.arrays())}
            )

        try:
            return await asyncio.to_thread(rows)
        except (DataError, SessionError) as error:
            refused = 400 if key and isinstance(error, DataError) else 409
            return _json(503 if self.is_over else refused, {"error": str(error)})

    async def _socket(self, socket: WebSocket) -> None:
        await socket.accept()
        await _until_gone(socket.receive, self._send(socket, socket.path_params["name"]))

    async def _send(self, socket: WebSocket, name: str) -> None:
        code, reason = GONE, ""
        try:
            item = self.readable(name)
            if item is None:
                raise SessionError(f"there is no table or view {name!r} to read here")
            async for entry in self.entries(item, socket):
                await socket.send_text(entry.text)
                await asyncio.sleep(0)  # as in `_Parts`: sending alone need not wait
        except Cut as cut:
            code, reason = TRY_AGAIN, str(cut)
        except TimelyError as error:
            code, reason = GONE if self.is_final(error) else TRY_AGAIN, str(error)
        await socket.send_text(text({"kind": "end", "error": reason}))
        await socket.close(code, reason.encode()[:CLOSING_BYTES].decode("utf-8", "ignore"))

    def _writable(self, name: str) -> Item | None:
        item = self._allowed(name, self._write)
        return None if item is None or item.kind != "table" else item

    def _allowed(self, name: str, names: Sequence[str] | None) -> Item | None:
        """Return the item of an allowed name, or None; the table of requests is allowed only if `names` has it."""
        is_allowed = name != TABLE if names is None else name in names
        return self._catalog.items.get(name) if is_allowed else None


class _Events:
    """The stream of events as an ASGI application."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        name = request.path_params["name"]
        item = self._application.readable(name)
        if request.method != "GET":
            raise HTTPException(405)
        if item is None:
            await _json(404, {"error": f"there is no table or view {name!r} to read here"})(scope, receive, send)
            return
        await _until_gone(receive, self._send(request, item, scope, receive, send))

    async def _send(self, request: Request, item: Item, scope: Scope, receive: Receive, send: Send) -> None:
        entries = self._application.entries(item, request)
        following: asyncio.Task[SentMessage] = asyncio.ensure_future(anext(entries))
        reason = ""
        try:
            done, _ = await asyncio.wait((following,), timeout=FIRST_SECONDS)
            refusal = following.exception() if done else None
            if isinstance(refusal, (TimelyError, Cut)):
                status = 409 if self._application.is_final(refusal) else 503
                await _json(status, {"error": str(refusal)})(scope, receive, send)
                return
            if refusal is not None:
                raise refusal
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while True:
                await _write(send, _event(following.result()) if done else ": waits\n\n")
                # One at a time: during a pause it goes on, and a message that it then has is not lost.
                following = asyncio.ensure_future(anext(entries)) if done else following
                done, _ = await asyncio.wait((following,), timeout=PAUSE_SECONDS)
        except (Cut, TimelyError) as error:
            reason = str(error)
        finally:
            following.cancel()
        await _write(send, f"event: end\ndata: {text({'kind': 'end', 'error': reason})}\n\n")
        await send({"type": "http.response.body", "body": b""})


async def _write(send: Send, data: str) -> None:
    await send({"type": "http.response.body", "body": data.encode(), "more_body": True})


def _event(entry: SentMessage) -> str:
    return f"{'' if entry.mark is None else f'id: {entry.mark}{chr(10)}'}data: {entry.text}\n\n"


async def _refused(request: Request, error: Exception) -> Response:
    """Answer a request for which there is no function: of another path, or by another method."""
    assert isinstance(error, HTTPException)
    where = f"{request.url.path!r:.200} here: there are /, /tables/NAME, /rows/NAME and /changes/NAME"
    why = f"there is no {where}" if error.status_code == 404 else f"{request.method} is not answered at {where}"
    made = _json(error.status_code, {"error": why})
    made.headers.update(error.headers or {})
    return made


class _Parts(Response):
    """An answer that is sent in parts, each after the client has received the one before."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for start in range(0, len(self.body), PART):
            await send({"type": "http.response.body", "body": self.body[start : start + PART], "more_body": True})
            await asyncio.sleep(0)  # the server learns that the client has gone: asyncio warns of further parts
        await send({"type": "http.response.body", "body": b""})


def _json(status: int, body: object) -> Response:
    return _Parts(text(body), status, media_type="application/json")


async def _until(end: Coroutine[Any, Any, object], working: Coroutine[Any, Any, T]) -> T | None:
    """Return what a coroutine returns or raise its error, or cancel it and return None if another one ends before."""
    tasks = asyncio.create_task(end), asyncio.create_task(working)
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return None if tasks[1].cancelled() else tasks[1].result()


async def _until_gone(receive: Receive, sending: Coroutine[Any, Any, None]) -> None:
    """Send to a reader until everything is sent, or the reader disconnects. Raises what sending raises before that."""

    async def gone() -> None:
        while (await receive())["type"] not in ("http.disconnect", "websocket.disconnect"):
            pass

    # While something is sent, only what is received shows that the reader has gone.
    with suppress(OSError, WebSocketDisconnect):
        await _until(gone(), sending)


class Guard:
    """Passes the requests that are allowed to `app`, and refuses the others."""

    def __init__(self, app: ASGIApp, token: str, host: str, port: int, limit: int) -> None:
        self._app = app
        self._access = Access(token, host, port)
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        refused = self._refusal(headers_of(scope))
        if refused is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()  # the handshake, which must come before its answer
            await answer(send, 403, refused[1], "websocket.http.response")
        else:
            await answer(send, *refused)

    def _refusal(self, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return the status and the reason with which a request is refused, or None if it is allowed."""
        if refused := self._access.refusal("this session", headers):
            return refused
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != headers.get("host", ""):
            return 403, "another site's page asks for this"
        if not self._access.has_token(headers):
            return 401, "the token is missing or wrong: send it as `Authorization: Bearer TOKEN`"
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal() or int(length) > self._limit:
            return 413, f"a body has at most {self._limit:,} bytes: send the changes in several requests"
        return None


async def answer(send: Send, status: int, error: str, kind: str = "http.response") -> None:
    """Send an error as JSON; `kind` is the type of the answer in ASGI."""
    body = text({"error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
