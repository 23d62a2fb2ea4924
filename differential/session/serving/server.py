"""The server of a session, which runs an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from differential.session.catalog import Catalog
from differential.session.item import Item
from timely.errors import ConfigError, SessionError

if TYPE_CHECKING:
    import uvicorn

    from differential.session.serving.outgoing import Hubs

START_SECONDS = 10.0
STOP_SECONDS = 5.0
END_SECONDS = 0.1
"""How long streams may take to send the reason for their end."""
CONNECTIONS = 256
"""At most this many connections are served at once."""
SHORTEST_TOKEN = 16


class Options(NamedTuple):
    """How a session is served; see `Session.serve`."""

    host: str
    port: int
    token: str | None
    certificate: tuple[str, str] | None
    read: Sequence[str] | None
    write: Sequence[str] | None
    limit: int
    backlog: int
    queue: int


class Server:
    """A session that is served over HTTP, until `close` or the end of the session.

    >>> from differential.session import Session
    >>> with Session() as db:
    ...     server = db.serve()
    ...     print(server.url)
    ...     server.close()
    http://127.0.0.1:.../
    """

    def __init__(self, url: str, token: str, config: uvicorn.Config, listener: socket.socket, hubs: Hubs) -> None:
        self.url = url
        self.token = token
        """What requests send as `Authorization: Bearer TOKEN`."""
        self._config = config
        self._hubs = hubs
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._has_begun = Event()
        self._thread = Thread(target=self._run, args=(listener,), name="timely http", daemon=True)
        self._thread.start()
        if not self._has_begun.wait(START_SECONDS):
            raise SessionError(f"the server of the session did not start within {START_SECONDS:g} s")

    @property
    def is_closed(self) -> bool:
        """Whether the server has ended."""
        return not self._thread.is_alive()

    def close(self) -> None:
        """End all streams and the server."""
        loop, over = self._loop, self._over
        if loop is not None and over is not None and not loop.is_closed():
            loop.call_soon_threadsafe(over.set)
        self._thread.join(STOP_SECONDS)

    def __repr__(self) -> str:
        return f"<Server{', closed' if self.is_closed else ''}: {self.url}>"

    def _run(self, listener: socket.socket) -> None:
        with listener:
            asyncio.run(self._serve(listener))

    async def _serve(self, listener: socket.socket) -> None:
        import uvicorn

        over = asyncio.Event()
        hubs, has_begun = self._hubs, self._has_begun

        class Quiet(uvicorn.Server):
            """A server that wakes up for requests alone, and leaves signals to the program."""

            async def main_loop(self) -> None:
                has_begun.set()
                await over.wait()
                await hubs.close()
                await asyncio.sleep(END_SECONDS)
                self.should_exit = self.force_exit = True

        self._loop, self._over = asyncio.get_running_loop(), over
        await Quiet(self._config).serve([listener])


def serve(catalog: Catalog, requests: Item, rejects: Item | None, stops: bool, options: Options) -> Server:
    """Serve a session, and return the server.

    `requests` is the session's table of the keys of requests, and `rejects` its table of lines that are not rows. If it
    `stops`, such a line refuses its whole request. Raises ConfigError if a library is missing, if the address or the
    token cannot be used, or if other machines can reach the address and there is no token or no certificate.
    """
    try:
        import uvicorn

        from differential.session.serving.application import Application
    except ImportError as error:
        raise ConfigError(f"serving a session needs {error.name}: pip install 'timely-dataflow[http]'") from None
    from differential.session.serving.guard import Guard
    from differential.session.serving.incoming import Incoming
    from differential.session.serving.outgoing import Hubs

    is_local = _checked(options)
    token = options.token or secrets.token_urlsafe(24)
    hubs = Hubs(catalog, options.backlog, options.queue)
    incoming = Incoming(catalog, requests, rejects, stops)
    found = Application(catalog, incoming, hubs, options.limit, options.read, options.write)
    listener = _listen(options)
    port = listener.getsockname()[1]
    certificate, key = options.certificate or (None, None)
    config = uvicorn.Config(
        Guard(found.app, token, port, is_local, options.limit),
        log_config=None,
        access_log=False,
        lifespan="off",
        loop="asyncio",
        http="h11",
        ws="websockets-sansio",
        ws_max_size=1 << 16,
        server_header=False,
        date_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=1,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    host = f"[{options.host}]" if ":" in options.host else options.host
    url = f"http{'s' if certificate else ''}://{host}:{port}/"
    return Server(url, token, config, listener, hubs)


def _checked(options: Options) -> bool:
    """Return whether this machine alone can reach the address. Raises ConfigError for what is refused."""
    try:
        is_local = ip_address(options.host).is_loopback
    except ValueError:
        raise ConfigError(
            f"host must be the IP address of an interface of this machine, such as 0.0.0.0, not {options.host!r:.80}"
        ) from None
    if options.token is not None and len(options.token) < SHORTEST_TOKEN:
        raise ConfigError(f"the token has at least {SHORTEST_TOKEN} characters")
    if not is_local and (options.token is None or options.certificate is None):
        raise ConfigError(
            f"other machines can reach {options.host}, so serving a session there requires a token of your own and a "
            "certificate: db.serve(host=..., token=..., certificate=(file, key)); or serve it at 127.0.0.1 behind a "
            "proxy that has TLS"
        )
    return is_local


def _listen(options: Options) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options.host, options.port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigError(f"nothing can be served at {options.host}:{options.port}: {error.strerror}") from None
    return listener
