"""A session that is served to clients who must read at once."""

from __future__ import annotations

from differential import Session
from differential.session.serving.incoming import REQUESTS, TABLE
from differential.session.serving.server import Options, Server, serve

TOKEN = "a token of the test"


def serve_impatiently(
    db: Session, write_seconds: float, queue: int = 8 << 20, certificate: tuple[str, str] | None = None
) -> Server:
    """Serve a session, which ends the server, and disconnect clients that do not read for this long."""
    options = Options("127.0.0.1", 0, TOKEN, certificate, None, None, 16 << 20, 16 << 20, queue, write_seconds)
    server = serve(db._catalog, db._once(TABLE, REQUESTS)._item, None, True, options)
    db._catalog.ends.append(server.close)
    return server
