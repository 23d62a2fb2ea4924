"""How connections end: of clients that do not read, and all of them with the server."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import ssl
import struct
import subprocess
import threading
import time as clock
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from differential import Session
from tests.served import TOKEN, serve_impatiently

pytestmark = pytest.mark.timeout(60)

ROWS = 40_000
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


@pytest.fixture
def db() -> Iterator[Session]:
    """A session with a table of more text than the buffers of a connection hold."""
    with Session() as db:
        table = db.table("texts", {"x": int, "text": str}, key="x")
        table.insert(x=list(range(ROWS)), text=["x" * 500] * ROWS)
        db.commit()
        yield db


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Require that nothing is logged, which a program without logging would see on standard error."""
    yield
    records = [*caplog.get_records("call"), *caplog.records]
    assert [each.getMessage() for each in records if each.levelno >= logging.WARNING] == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate and its key."""
    directory = tmp_path_factory.mktemp("certificate")
    files = str(directory / "certificate.pem"), str(directory / "key.pem")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    try:
        subprocess.run([*make, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True, timeout=30)
    except FileNotFoundError:
        pytest.skip("there is no openssl to make a certificate")
    return files


def connect(url: str, request: str, more: str = "") -> socket.socket:
    """Return a connection that has sent a request, with a small buffer for what it receives."""
    host = httpx.URL(url)
    client = socket.socket()
    client.settimeout(20)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    client.connect((host.host, host.port or 0))
    if host.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        client = context.wrap_socket(client)
    client.sendall(f"{request} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n{more}\r\n".encode())
    return client


def received(client: socket.socket, pause: float = 0.0) -> bytes:
    """Return all that is received until the connection ends."""
    found = bytearray()
    try:
        while data := client.recv(1 << 18):
            found += data
            clock.sleep(pause)
    except (ConnectionResetError, ssl.SSLError):
        pass
    return bytes(found)


def is_served(client: socket.socket) -> bool:
    """Return whether this process has the other end of a connection."""
    for descriptor in map(int, os.listdir("/dev/fd")):
        with suppress(OSError):  # it is not a socket, or not connected
            found = socket.socket(fileno=descriptor)
            try:
                if found.getpeername() == client.getsockname():
                    return True
            finally:
                found.detach()
    return False


@pytest.mark.parametrize("has_tls", [False, True])
@pytest.mark.parametrize(("path", "more"), [("rows", ""), ("changes", ""), ("changes", UPGRADE)])
def test_a_client_that_does_not_read_is_disconnected(
    db: Session, path: str, more: str, has_tls: bool, certificate: tuple[str, str]
) -> None:
    server = serve_impatiently(db, 0.5, certificate=certificate if has_tls else None)
    with connect(server.url, f"GET /{path}/texts", more) as client:
        assert client.recv(10)
        end = clock.monotonic() + 20
        while is_served(client) and clock.monotonic() < end:
            clock.sleep(0.05)
        assert not is_served(client), "the server has closed its socket"
        assert len(received(client)) < ROWS * 500, "the connection ends before all of it was sent"


@pytest.mark.parametrize("has_tls", [False, True])
@pytest.mark.parametrize("sent", ["", "GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_client_that_does_not_ask_is_disconnected(
    db: Session, sent: str, has_tls: bool, certificate: tuple[str, str]
) -> None:
    server = serve_impatiently(db, 0.5, certificate=certificate if has_tls else None)
    with connect(server.url, "GET /none") as client:
        while b"}" not in client.recv(1 << 12):
            pass
        client.sendall(sent.encode() or b"G")
        assert received(client) == b""
    url = httpx.URL(server.url)
    if not has_tls:
        with socket.create_connection((url.host, url.port or 0), timeout=20) as client:
            client.sendall(sent.encode())
            assert received(client) == b""


def test_what_is_not_http_is_refused_and_not_logged(db: Session) -> None:
    url = httpx.URL(db.serve(token=TOKEN).url)
    for sent in (b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"):
        with socket.create_connection((url.host, url.port or 0), timeout=20) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            assert received(client)[:13] in (b"", b"HTTP/1.1 400 ")


def test_a_commit_that_takes_longer_than_a_client_may_need_to_ask_is_answered(db: Session) -> None:
    server = serve_impatiently(db, 0.2)
    body = b'{"insert": {"x": -1, "text": "y"}}'
    with connect(server.url, "POST /tables/texts", f"Content-Length: {len(body)}\r\nConnection: close\r\n") as client:
        with db._catalog.exclusive():
            client.sendall(body)
            clock.sleep(1.0)
        assert received(client).startswith(b"HTTP/1.1 200 ")


def test_a_websocket_that_is_refused_is_answered(db: Session) -> None:
    wrong = UPGRADE + "Origin: http://example.org\r\n"
    with connect(db.serve(token=TOKEN).url, "GET /changes/texts", wrong) as client:
        assert b"another site's page asks for this" in received(client)


@pytest.mark.parametrize(("path", "more"), [("rows", ""), ("changes", ""), ("changes", UPGRADE)])
def test_a_client_that_resets_its_connection_is_disconnected(db: Session, path: str, more: str) -> None:
    server = db.serve(token=TOKEN)
    for pause in (0.0, 0.0, 0.0, 0.05, 0.1):  # after one, the buffers are full, and the server waits
        with connect(server.url, f"GET /{path}/texts", more) as client:
            assert client.recv(10)
            clock.sleep(pause)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    clock.sleep(0.2)


def test_connections_do_not_wait_for_an_acknowledgement_before_they_send(
    db: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, made = [], H11Protocol.connection_made

    def noted(self: H11Protocol, transport: asyncio.Transport) -> None:
        accepted = transport.get_extra_info("socket")
        found.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        made(self, transport)

    monkeypatch.setattr(H11Protocol, "connection_made", noted)
    assert httpx.get(db.serve(token=TOKEN).url, timeout=20).status_code
    assert len(found) == 1
    assert found[0]


def test_a_client_that_reads_slowly_receives_all_rows(db: Session) -> None:
    server = serve_impatiently(db, 0.5)
    start = clock.monotonic()
    with connect(server.url, "GET /rows/texts", "Connection: close\r\n") as client:
        found = received(client, 0.005)
    assert clock.monotonic() - start > 0.5
    assert len(json.loads(found.partition(b"\r\n\r\n")[2])["rows"]) == ROWS


def test_a_request_whose_body_is_not_complete_when_the_server_ends_is_refused(db: Session) -> None:
    server = db.serve(token=TOKEN)
    with connect(server.url, "POST /tables/texts", "Content-Length: 99\r\n") as client:
        client.sendall(b"{")
        clock.sleep(0.3)
        db.close()
        head, _, body = received(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert json.loads(body) == {"error": "the session has ended, or is no longer served"}


@pytest.mark.parametrize("more", ["", UPGRADE])
def test_a_reader_that_is_behind_when_the_server_ends_receives_the_reason(db: Session, more: str) -> None:
    server = db.serve(token=TOKEN)
    with connect(server.url, "GET /changes/texts", more) as client:
        found = b""
        while b"snapshot" not in found:
            found += client.recv(1 << 12)
        ending = threading.Thread(target=server.close)
        ending.start()
        deadline, over = clock.monotonic() + 20, server._server._over
        assert over is not None
        while not over.is_set():  # or a client that reads fast could have everything before
            assert clock.monotonic() < deadline, "the server does not begin to end"
            clock.sleep(0.001)
        found += received(client)
        ending.join(20)
    assert server.is_closed
    assert len(found) < ROWS * 500
    assert b'{"kind":"end","error":"the session is no longer served"}' in found[-500:]


@pytest.mark.parametrize("has_tls", [False, True])
@pytest.mark.parametrize(("path", "more"), [("rows", ""), ("changes", ""), ("changes", UPGRADE)])
def test_clients_that_do_not_read_do_not_hold_up_the_end_of_the_server(
    db: Session, path: str, more: str, has_tls: bool, certificate: tuple[str, str]
) -> None:
    server = db.serve(token=TOKEN, certificate=certificate if has_tls else None)
    with connect(server.url, f"GET /{path}/texts", more) as client:
        assert client.recv(10)
        clock.sleep(0.3)
        start = clock.monotonic()
        db.close()
        assert clock.monotonic() - start < 4
        assert server.is_closed
        received(client)


def test_a_server_that_ends_waits_for_a_commit_that_has_begun(db: Session) -> None:
    server = db.serve(token=TOKEN)
    body = b'{"insert": {"x": -1, "text": "y"}}'
    with connect(server.url, "POST /tables/texts", f"Content-Length: {len(body)}\r\n") as client:
        with db._catalog.exclusive():
            client.sendall(body)
            clock.sleep(0.3)
            ending = threading.Thread(target=server.close)
            ending.start()
            clock.sleep(1.5)
            assert not server.is_closed
        ending.join(20)
        assert server.is_closed
        assert received(client) == b"", "its answer came too late"
    assert len(db["texts"]) == ROWS + 1


def test_a_session_that_is_closed_ends_the_commits_of_requests_that_wait_for_its_workers() -> None:
    begins, ends = threading.Event(), threading.Event()

    def wait(row: Any) -> object:
        if len(row.x):
            begins.set()
            while not ends.wait(0.01):
                pass
        return row.x

    with Session(progress=False) as db:
        db.table("numbers", {"x": int})
        db.view("slow", lambda tables: tables.numbers.select(y=wait))
        server = db.serve(token=TOKEN)
        body = b'{"insert": {"x": 1}}'
        with connect(server.url, "POST /tables/numbers", f"Content-Length: {len(body)}\r\n") as client:
            client.sendall(body)
            assert begins.wait(20)
            start = clock.monotonic()
            db.close()
            took = clock.monotonic() - start
        ends.set()
        assert took < 4
        assert server.is_closed
