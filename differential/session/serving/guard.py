"""Which requests may use a session over HTTP: those that have the token, and do not come from a page of another site.

- Every request needs `Authorization: Bearer TOKEN`. Without it, the request is refused before its body is read.
- If only this machine is served, a request that names another host is refused. So a page whose foreign name resolves
  to this address reads nothing. A request from a page of another origin is always refused.
- A body that is longer than the limit is refused, because of its stated length or as soon as more bytes have arrived.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from differential.session.serving.form import text
from timely.services import Access, headers_of


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
