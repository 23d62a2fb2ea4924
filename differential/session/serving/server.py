"""The server of a session: where it listens, who may use it, and how it ends."""

from __future__ import annotations

import secrets
from collections.abc import Container, Iterable, Sequence
from ipaddress import ip_address
from numbers import Integral
from typing import Any, NamedTuple

from differential.extra import needed_for
from differential.session.catalog import Catalog
from differential.session.item import Item
from timely.errors import ConfigError, SessionError
from timely.services import WRITE_SECONDS, Access, HttpServer, listen

CONNECTIONS = 256
"""At most this many connections are served at once."""


ANSWER_SECONDS = 1.5
"""A session that is closed waits this long for answers. What they wait for then ends."""


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
    write_seconds: float = WRITE_SECONDS
    """How long a client may leave unread what is sent to it."""


class Server:
    """A session that is served over HTTP, until `close` or the end of the session.

    >>> from differential.session import Session
    >>> with Session() as db:
    ...     server = db.serve()
    ...     print(server.url)
    ...     server.close()
    http://127.0.0.1:.../
    """

    def __init__(self, server: HttpServer, token: str) -> None:
        self.url = server.url
        self.token = token
        """What requests send as `Authorization: Bearer TOKEN`."""
        self._server = server

    @property
    def is_closed(self) -> bool:
        """Whether the server has ended."""
        return self._server.is_closed

    def close(self) -> None:
        """End all streams and the server."""
        self._server.close()

    def _stop(self) -> None:
        """End all streams and the server, and wait for answers as long as they have before they are aborted."""
        self._server.close(ANSWER_SECONDS)

    def __repr__(self) -> str:
        return f"<Server{', closed' if self.is_closed else ''}: {self.url}>"


def serve(catalog: Catalog, requests: Item, rejects: Item | None, stops: bool, options: Options) -> Server:
    """Serve a session, and return the server.

    `requests` is the session's table of the keys of requests, and `rejects` its table of lines that are not rows. If it
    `stops`, such a line refuses its whole request. Raises ConfigError if a library is missing, if the address or the
    token cannot be used, or if other machines can reach the address and there is no token or no certificate, and
    SessionError if `requests` is another table of this name.
    """
    with needed_for("serving a session", "http"):
        import uvicorn  # noqa: F401

        from differential.session.serving.application import Application
    from differential.session.serving.application import Guard
    from differential.session.serving.incoming import REQUESTS, Incoming
    from differential.session.serving.outgoing import SessionHubs

    _check(options)
    if requests.names != tuple(REQUESTS):
        raise SessionError(
            f"serving a session needs a table {requests.name!r} of its own for the keys of requests, and there is "
            f"already a {requests}: db.drop({requests.name!r}) drops it"
        )
    token = options.token or secrets.token_urlsafe(24)
    hubs = SessionHubs(catalog, options.backlog, options.queue)
    incoming = Incoming(catalog, requests, rejects, stops)
    found = Application(catalog, incoming, hubs, options.limit, options.read, options.write)
    try:
        listener = listen(options.host, options.port)
    except OSError as error:
        raise ConfigError(f"nothing can be served at {options.host}:{options.port}: {error.strerror}") from None

    async def ending() -> None:
        found.end()
        await hubs.close()

    app = Guard(found.app, token, options.host, listener.getsockname()[1], options.limit)
    more: dict[str, Any] = {"ws": "websockets-sansio", "ws_max_size": 1 << 16, "limit_concurrency": CONNECTIONS}
    server = HttpServer("session", app, listener, options.certificate, ending, options.write_seconds, **more)
    return Server(server, token)


def _check(options: Options) -> None:
    if isinstance(options.port, bool) or not isinstance(options.port, Integral) or not 0 <= options.port < 1 << 16:
        raise ConfigError(f"port is a number from 0 to 65535, not {options.port!r:.80}")
    for option in ("limit", "backlog", "queue"):
        number = getattr(options, option)
        if isinstance(number, bool) or not isinstance(number, Integral) or number < 1:
            raise ConfigError(f"{option} is a number of bytes, at least 1, not {number!r:.80}")
    for option in ("read", "write"):
        names = getattr(options, option)
        are_names = isinstance(names, Container) and isinstance(names, Iterable) and not isinstance(names, str)
        if names is not None and (not are_names or not all(isinstance(name, str) for name in names)):
            shown = repr(names) if isinstance(names, str) else type(names).__name__
            raise ConfigError(f"{option} takes names of tables and views, as in {option}=['orders'], not {shown}")
    try:
        is_local = ip_address(options.host).is_loopback
    except ValueError:
        raise ConfigError(
            f"host must be the IP address of an interface of this machine, such as 0.0.0.0, not {options.host!r:.80}"
        ) from None
    if options.token is not None:
        Access.check_token("the token", options.token)
    if not is_local and (options.token is None or options.certificate is None):
        raise ConfigError(
            f"other machines can reach {options.host}, so serving a session there requires a token of your own and a "
            "certificate: db.serve(host=..., token=..., certificate=(file, key)); or serve it at 127.0.0.1 behind a "
            "proxy that has TLS"
        )
