"""Whoever asks a session over HTTP without its token, from a foreign page or for too much neither reads nor changes."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from differential import Session
from differential.session.sources import server_sent_events, websocket
from timely.errors import ConfigError, SessionError

ROW = json.dumps({"insert": {"x": 1}})
REQUESTS = (("GET", "/"), ("GET", "/rows/secrets"), ("GET", "/changes/secrets"), ("POST", "/tables/secrets"))


class Served:
    def __init__(self, db: Session, limit: int) -> None:
        self.table = db.table("secrets", {"x": [4711]})
        db.commit()
        server = db.serve(limit=limit)
        self.url, self.token = server.url, server.token
        self.port = httpx.URL(server.url).port or 0

    def ask(
        self, method: str, path: str, token: str | None = None, content: bytes | str = ROW, **headers: str
    ) -> httpx.Response:
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        # Without `verify`, which would read the certificates of all authorities, as each client does.
        with httpx.Client(base_url=self.url, trust_env=False, verify=False, timeout=20) as http:
            return http.request(method, path, headers=headers, content=content if method == "POST" else None)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Session() as db:
        found = Served(db, 1000)
        yield found
        assert found.table.records() == [(4711,)], "nothing was changed"


def test_a_served_session_answers_nothing_without_the_token(served: Served) -> None:
    for method, path in (*REQUESTS, ("GET", "/nothing")):
        for token in (None, served.token[:-1], served.token + "x", "x" * len(served.token)):
            answer = served.ask(method, path, token)
            assert answer.status_code == 401
            assert "4711" not in answer.text
            assert served.token not in answer.text
        assert served.ask(method, f"{path}?token={served.token}").status_code == 401
        assert served.ask(method, path, Cookie=f"token={served.token}").status_code == 401
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": f"Basic {served.token}"}):
        with pytest.raises(InvalidStatus, match="403"):
            connect(f"ws://127.0.0.1:{served.port}/changes/secrets", additional_headers=headers, proxy=None)


def test_a_body_without_the_token_is_not_read(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as stranger:
        stranger.sendall(b"POST /tables/secrets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{")
        assert stranger.recv(100).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example", "localhost:1", "0.0.0.0"])
def test_a_page_of_a_foreign_name_cannot_use_a_served_session(served: Served, host: str) -> None:
    for method, path in REQUESTS:
        assert served.ask(method, path, served.token, Host=host).status_code == 421
        foreign = {"Origin": f"http://{host}"}
        assert served.ask(method, path, served.token, **foreign).status_code == 403
    headers = {"Authorization": f"Bearer {served.token}"}
    with pytest.raises(InvalidStatus, match="403"):
        connect(
            f"ws://127.0.0.1:{served.port}/changes/secrets",
            additional_headers=headers,
            origin=f"http://{host}",  # type: ignore[arg-type]
            proxy=None,
        )


def test_the_address_at_which_a_session_is_served_can_be_named() -> None:
    with Session() as db:
        server = db.serve(host="127.0.0.2")
        headers = {"Authorization": f"Bearer {server.token}"}
        assert httpx.get(f"{server.url}", headers=headers, trust_env=False).status_code == 200


def test_a_body_over_the_limit_is_refused_however_it_is_sent(served: Served) -> None:
    assert served.ask("POST", "/tables/secrets", served.token, b"x" * 1001).status_code == 413
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as sender:
        head = f"POST /tables/secrets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.token}\r\n"
        sender.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        sender.sendall(b"400\r\n" + b"x" * 0x400 + b"\r\n")
        assert sender.recv(100).startswith(b"HTTP/1.1 413")
    for length in ("-1", "1e3", "9" * 30):
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as sender:
            sender.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
            assert sender.recv(100).startswith((b"HTTP/1.1 400", b"HTTP/1.1 413"))


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 900,
        b'{"insert":' * 90,
        b'{"insert":{"x":1}} {"insert":{"x":1}}',
        b'{"insert":{"x":1e400}}',
        b'{"insert":{"x":' + b"9" * 500 + b"}}",
        b'{"insert":{"x":NaN}}',
        b'{"__class__":{"x":1}}',
        b'{"insert":{"x":1},"insert2":{}}',
        b"\xff\xfe\x00",
        b"null",
    ],
)
def test_a_body_that_is_no_change_is_an_error_and_never_a_row(served: Served, body: bytes) -> None:
    answer = served.ask("POST", "/tables/secrets", served.token, body)
    assert answer.status_code == 422
    assert len(answer.content) < 2000


def test_the_token_is_not_sent_in_the_clear_to_another_machine() -> None:
    with pytest.raises(ConfigError, match="the token would be sent in the clear; use https://"):
        server_sent_events("http://192.0.2.1/changes/secrets", token="x" * 20)
    assert "x" * 20 not in repr(websocket("wss://192.0.2.1/changes/secrets", token="x" * 20))


@pytest.mark.slow
def test_a_session_follows_another_one_only_if_its_certificate_is_trusted(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    make += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    try:
        subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=30)
    except FileNotFoundError:
        pytest.skip("there is no openssl to make a certificate")
    with Session() as db, Session() as other:
        db.table("secrets", {"x": [4711]})
        db.commit()
        server = db.serve(token="a token of the test", certificate=(str(certificate), str(key)))
        copy = other.table("copy", {"x": int})
        for url, source in (
            (f"{server.url}changes/secrets", server_sent_events),
            (f"{server.url.replace('http', 'ws')}changes/secrets", websocket),
        ):
            feed = copy.read_from(source(url, token=server.token, name=f"stranger {url}"))
            with pytest.raises(SessionError, match=r"(?i)certificate.verify.failed"):
                other.run(until=lambda feed=feed: feed.error is not None or feed.rows > 0)  # type: ignore[misc]
            copy.read_from(source(url, token=server.token, authority=str(certificate), name=url))
            before, end = len(copy), time.monotonic() + 20
            other.run(until=lambda: len(copy) > before or time.monotonic() > end)  # noqa: B023
        assert copy.records() == [(4711,), (4711,)]


@pytest.mark.parametrize("option", ["read", "write"])
def test_a_name_that_is_no_list_of_names_opens_no_table(option: str) -> None:
    with Session() as db:
        for names in ("orders_public", ["orders", 3], True, iter(["orders"])):
            with pytest.raises(ConfigError, match=rf"{option} takes names of tables and views, as in {option}="):
                db.serve(**{option: names})  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, -1, "x", None, 1.5])
@pytest.mark.parametrize("limit", ["limit", "backlog", "queue"])
def test_a_limit_that_is_no_number_of_bytes_is_refused(limit: str, number: Any) -> None:
    with Session() as db, pytest.raises(ConfigError, match=rf"{limit} is a number of bytes, at least 1, not"):
        db.serve(**{limit: number})


@pytest.mark.parametrize("port", [-1, 99999, "http", True])
def test_a_port_that_is_none_is_refused(port: Any) -> None:
    with Session() as db, pytest.raises(ConfigError, match="port is a number from 0 to 65535"):
        db.serve(port)


def test_lines_that_are_no_rows_are_neither_skipped_by_mistake_nor_put_into_another_table() -> None:
    with Session() as db:
        table = db.table("stock", {"item": str})
        for wrong in ("Stop", None, True):
            with pytest.raises(SessionError, match=r"on_error is 'stop', 'skip' or a table of db.rejects"):
                db.serve(on_error=wrong)  # type: ignore[arg-type]
        with pytest.raises(SessionError, match="table 'stock' is not a table of rejects"):
            db.serve(on_error=table)
