"""Protocols of uvicorn that do not wait for a client that does not read, or does not ask.

`close` of a transport first sends what its buffer holds, which never ends if the other side does not read. So if a
buffer does not become empty within some seconds, its connection is aborted: the buffer is discarded, the socket is
closed, and the application learns that the client has disconnected. An application waits until the buffer is empty
before it sends more, so one that sends in parts never has more than one of them in the buffer.

A connection on which no request begins within as many seconds is aborted, too: few are served at once, and clients that
only connect would keep out all others.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


_errors = logging.getLogger("uvicorn.error.timely")
_errors.setLevel(logging.ERROR)
"""The log of errors without warnings, which any client could write on standard error by sending what is not HTTP."""


class _Impatient(asyncio.Protocol):
    """A mixin for protocols: aborts the connection if its buffer does not become empty within `seconds`."""

    seconds: float
    logger: logging.Logger
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.logger = _errors
        self.transport.set_write_buffer_limits(high=1)
        if self.transport.get_write_buffer_size():  # left by the protocol that had the connection before an upgrade
            self.pause_writing()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self._abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _abort(self) -> None:
        self._timer = None
        if self.transport.get_protocol() is self:  # otherwise the connection was upgraded, and another one waits
            self.transport.abort()


def http_protocol(write_seconds: float) -> type[H11Protocol]:
    """Return a protocol for HTTP whose clients must read what is sent, and send requests, within some seconds."""

    class Http(_Impatient, H11Protocol):
        seconds = write_seconds
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self._await_request()

        def on_response_complete(self) -> None:
            self._await_request()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
            super().connection_lost(exc)

        def _await_request(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
            self._deadline = self.loop.call_later(self.seconds, self._end_without_request)

        def _end_without_request(self) -> None:
            # uvicorn has a cycle from the end of a request's head on.
            if self.cycle is None or self.cycle.response_complete:
                self._abort()

    return Http


def websocket_protocol(write_seconds: float) -> type[WebSocketsSansIOProtocol]:
    """Return a protocol for WebSockets whose clients must read what is sent within some seconds."""
    from uvicorn.protocols.utils import ClientDisconnected
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    class WebSocket(_Impatient, WebSocketsSansIOProtocol):
        seconds = write_seconds

        async def run_asgi(self) -> None:
            """Run the application, which may refuse a client: uvicorn would log an error, on standard error."""
            app = self.app

            async def run(scope: Any, receive: Any, send: Any) -> None:
                await app(scope, receive, send)
                if not self.handshake_complete:
                    raise ClientDisconnected

            self.app = run
            await super().run_asgi()

    return WebSocket
