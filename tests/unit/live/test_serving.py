"""A server of HTTP ends however often, and whenever, it is closed."""

from __future__ import annotations

from typing import Any

import pytest

from timely.live.serving import HttpServer, listen


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
