"""Applications over HTTP: each in a thread and an event loop of its own, on a socket that listens.

The page of a run and a session (`Session.serve`) are served so. `Access` makes the checks that precede every answer.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from timely.config import bracketed, is_loopback
from timely.errors import ConfigError, TransportError

if TYPE_CHECKING:
    import asyncio

    import uvicorn
    from starlette.types import ASGIApp, Scope

START_SECONDS = 10.0
STOP_SECONDS = 5.0
WRITE_SECONDS = 20.0
"""After this long, a connection whose client does not read what was sent, or sends no request, is aborted."""
END_SECONDS = 1.0
"""How long answers may take to end after `close`, before their connections are aborted."""
POLL_SECONDS = 0.01
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an interface of this machine, given by its number. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or asyncio sets no TCP_NODELAY
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


class Access:
    """Who may ask at `host`: clients that have the token and, if only this machine can reach it, name it in requests.

    Otherwise a page of a foreign name that resolves to this address (DNS rebinding) would read what is served.
    """

    SHORTEST_TOKEN = 16
    """A token that others may try to guess has at least this many characters."""

    def __init__(self, token: str, host: str, port: int) -> None:
        self._token = token.encode()
        self._names = f"localhost:{port} or {bracketed(host)}:{port}"
        names = (*_LOOPBACK, bracketed(host))
        self._hosts = {each for name in names for each in (name, f"{name}:{port}")} if is_loopback(host) else None

    @staticmethod
    def check_token(what: str, token: str, shortest: int = SHORTEST_TOKEN) -> None:
        """Raise ConfigError, which begins with `what`, if a token is too short, or if no header can hold it as it is.

        >>> Access.check_token("the token", "short")
        Traceback (most recent call last):
        timely.errors.ConfigError: the token must have at least 16 characters
        """
        if len(token) < shortest:
            raise ConfigError(f"{what} must have at least {shortest} characters")
        if not token.isascii() or not token.isprintable() or token != token.strip():
            raise ConfigError(
                f"{what} must be printable ASCII without leading or trailing spaces, because it is sent in a header"
            )

    def refusal(self, what: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Return the status and the reason with which a request is refused that names another host, or None."""
        if self._hosts is None or headers.get("host", "").lower() in self._hosts:
            return None
        return 421, f"{what} is served to this machine alone: name it {self._names}; a tunnel begins at the same port"

    def has_token(self, headers: Mapping[str, str], *others: str) -> bool:
        """Return whether the token is in the header `Authorization`, or among other places where it may stand."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        tokens = (given.strip(), *others) if scheme.lower() == "bearer" else others
        return any(hmac.compare_digest(each.encode(), self._token) for each in tokens)


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request, by their names in lower case."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


class HttpServer:
    """Serves an application on a socket, which it closes, from now on until `close`. It then awaits `ending`.

    After `ending`, which asks the application to end its answers, connections on which an answer has not ended within
    END_SECONDS are aborted. A connection is also aborted if its client does not read for `write_seconds`, or begins no
    request for as long.

    `certificate` names the files for TLS, if it is used; `options` are others of uvicorn. Raises ConfigError if these
    files cannot be used, TransportError if the server does not start.
    """

    def __init__(
        self,
        name: str,
        app: ASGIApp,
        listener: socket.socket,
        certificate: tuple[str, str] | None,
        ending: Callable[[], Awaitable[None]],
        write_seconds: float = WRITE_SECONDS,
        **options: Any,
    ) -> None:
        import uvicorn

        from timely.live.protocols import http_protocol, websocket_protocol

        file, key = certificate or (None, None)
        if file is not None:
            import ssl

            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file, key, password="")  # refuses passwords
            except OSError as error:
                listener.close()
                raise ConfigError(f"cannot use the certificate {file} with the key {key}: {error}") from None
        if options.setdefault("ws", "none") == "websockets-sansio":
            options["ws"] = websocket_protocol(write_seconds)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            loop="asyncio",
            http=http_protocol(write_seconds),
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=1,
            ssl_certfile=file,
            ssl_keyfile=key,
            **options,
        )
        host, port = listener.getsockname()[:2]
        self.url = f"http{'' if certificate is None else 's'}://{bracketed(host)}:{port}/"
        """The address, without the token."""
        self._ending = ending
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._has_begun = Event()
        self._thread = Thread(target=self._run, args=(config, listener), name=f"timely {name}", daemon=True)
        self._thread.start()
        if not self._has_begun.wait(START_SECONDS):
            raise TransportError(f"the server of the {name} did not start within {START_SECONDS:g} s")

    @property
    def is_closed(self) -> bool:
        return not self._thread.is_alive()

    def close(self, seconds: float = STOP_SECONDS) -> None:
        """End it, from any thread, and wait until it has ended, but no longer than some seconds."""
        if self._loop is not None and self._over is not None:
            with suppress(RuntimeError):  # the loop is closed, perhaps just now
                self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(seconds)

    def _run(self, config: uvicorn.Config, listener: socket.socket) -> None:
        import asyncio

        with listener:
            asyncio.run(self._serve(config, listener))

    async def _serve(self, config: uvicorn.Config, listener: socket.socket) -> None:
        import asyncio

        import uvicorn

        # Before `has_begun` is set, for which the constructor waits: so `close` finds both.
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        over, has_begun, ending = self._over, self._has_begun, self._ending

        class Quiet(uvicorn.Server):
            """A server that wakes up for requests alone, not ten times a second."""

            async def main_loop(self) -> None:
                has_begun.set()
                await over.wait()
                for each in self.servers:
                    each.close()
                await ending()
                await _end_connections(self.server_state)
                self.should_exit = self.force_exit = True

        await Quiet(config).serve([listener])


async def _end_connections(state: uvicorn.server.ServerState) -> None:
    """Wait until all answers have ended and are sent, abort connections after END_SECONDS, and wait for their requests.

    No request is left that the event loop would cancel as it ends: uvicorn prints a traceback of each.
    """
    import asyncio

    def is_busy() -> bool:
        return bool(state.tasks) or any(each.transport.get_write_buffer_size() for each in state.connections)

    loop = asyncio.get_running_loop()
    end = loop.time() + END_SECONDS
    while is_busy() and loop.time() < end:
        await asyncio.sleep(POLL_SECONDS)
    while state.tasks or state.connections:
        for each in tuple(state.connections):
            each.transport.abort()
        await asyncio.sleep(POLL_SECONDS)
