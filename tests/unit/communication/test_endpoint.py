"""Endpoints: which address is bound, which is this machine's, and the advice about those that cannot be bound."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import Any

import pytest

from timely.communication import endpoint
from timely.communication.endpoint import advice, bindable, is_here

HERE = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))
HERE_TOO = (socket.AF_INET6, socket.SOCK_STREAM, 0, "", ("::1", 0, 0, 0))
ELSEWHERE = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("192.0.2.1", 0))
"""Addresses as the system resolves them; the last is reserved for documentation."""


def named(monkeypatch: pytest.MonkeyPatch, *found: Any) -> list[tuple[str, int]]:
    """Resolve every host to the given addresses; return the list of hosts and ports that are resolved."""
    asked = []

    def find(host: str, port: int, *, type: int) -> list[Any]:
        asked.append((host, port))
        assert type == socket.SOCK_STREAM
        return list(found)

    monkeypatch.setattr(endpoint.socket, "getaddrinfo", find)
    return asked


def test_a_path_without_a_listener_is_bound_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "worker"
    assert bindable(f"ipc://{path}") == f"ipc://{path}"
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(path))
    assert bindable(f"ipc://{path}") == f"ipc://{path}"


def test_a_path_with_a_listener_is_in_use(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "worker"))
        other.listen()
        with pytest.raises(OSError, match="in use") as error:
            bindable(f"ipc://{tmp_path / 'worker'}")
    assert error.value.errno == errno.EADDRINUSE


def test_a_host_is_bound_at_its_ipv4_address_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = named(monkeypatch, HERE_TOO, HERE)
    assert bindable("tcp://this-one:2101") == "tcp://127.0.0.1:2101"
    named(monkeypatch, HERE, HERE_TOO)
    assert bindable("tcp://this-one:2101") == "tcp://127.0.0.1:2101"
    assert asked == [("this-one", 2101)]


def test_an_ipv6_address_is_bound_in_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = named(monkeypatch, HERE_TOO)
    assert bindable("tcp://[::1]:2101") == "tcp://[::1]:2101"
    assert asked == [("::1", 2101)]


def test_a_host_is_here_if_any_address_of_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, here in (([ELSEWHERE, HERE], True), ([HERE], True), ([ELSEWHERE], False), ([], False)):
        asked = named(monkeypatch, *found)
        assert is_here("tcp://[some-host]:2101") == here
        assert asked == [("some-host", 0)]  # any port: that of the endpoint may be in use


def test_a_host_without_an_address_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(endpoint.socket, "getaddrinfo", find)
    assert not is_here("tcp://no-such-host:2101")


@pytest.mark.parametrize(
    ("number", "advised"),
    [
        (errno.EADDRINUSE, "another program uses it"),
        (errno.EADDRNOTAVAIL, "not an address of this machine"),
        (errno.ENODEV, "not an address of this machine"),
        (socket.EAI_NONAME, "not an address of this machine"),
        (errno.ENOENT, "make the directory first"),
        (errno.ENOTDIR, "make the directory first"),
        (errno.EACCES, "choose another address"),
        (None, "choose another address"),
    ],
)
def test_each_error_has_its_advice(number: int | None, advised: str) -> None:
    assert advised in advice(number)
    assert (advice(number) == "choose another address") == (advised == "choose another address")
