"""A server of HTTP ends however often, and whenever, it is closed."""

from __future__ import annotations

import http.client
from typing import Any
from urllib.parse import urlsplit

import pytest

from timely.live.serving import HttpServer, listen
from timely.run.live import serve_live


async def _refused(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("nobody asks")


async def _ended() -> None:
    """Nothing has to end before the connections do."""


def test_a_server_whose_loop_closes_while_it_is_closed_ends_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    server = HttpServer("test", _refused, listen("127.0.0.1", 0), None, _ended)
    server.close()
    assert server.is_closed
    monkeypatch.setattr(server._loop, "is_closed", lambda: False)  # as it was a moment before
    server.close()


@pytest.mark.parametrize("path", ["/", "/stream", "/metrics"])
def test_a_request_for_headers_is_answered_and_the_connection_goes_on(path: str) -> None:
    page = serve_live(0, token="a-token-of-sixteen")
    try:
        parts, headers = urlsplit(page.url), {"Authorization": "Bearer a-token-of-sixteen"}
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        for method in ("HEAD", "GET"):
            connection.request(method, path if method == "HEAD" else "/page/live.js", headers=headers)
            answer = connection.getresponse()
            assert answer.status == 200
            assert bool(answer.read()) == (method == "GET")
        connection.close()
    finally:
        page.close()
