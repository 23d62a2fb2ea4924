"""Whoever asks for the live page without its token, from a foreign page, or by a foreign name, is shown nothing."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import stat
import subprocess
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from timely import Config, Worker, execute, new_input
from timely.live.live import FILE
from timely.run.live import serve_live

PATHS = ("/", "/stream", "/node?dataflow=0&node=0", "/metrics", "/page/live.js", "/nothing")


@pytest.fixture
def live() -> Iterator[tuple[int, str]]:
    """Serve a page; yield its port and its token."""
    page = serve_live(0)
    parts = urlsplit(page.url)
    assert parts.port is not None
    try:
        yield parts.port, parse_qs(parts.query)["token"][0]
    finally:
        page.close()


class Answer(NamedTuple):
    status: int
    headers: Message
    text: str

    def getheader(self, name: str) -> str:
        return str(self.headers.get(name, ""))


def ask(port: int, path: str, method: str = "GET", **headers: str) -> Answer:
    """Return the answer to a request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read().decode())
    finally:
        connection.close()


def bearer(token: str) -> str:
    return f"Bearer {token}"


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_shown_without_the_token(live: tuple[int, str], path: str) -> None:
    port, token = live
    wrong = ("", token[:-1], token + "x", "x" * len(token))
    assert ask(port, path).status == 401
    for each in wrong:
        assert ask(port, path, Authorization=bearer(each)).status == 401
        assert ask(port, path, Cookie=f"timely-live-{port}={each}").status == 401
        assert ask(port, f"{path}{'&' if '?' in path else '?'}token={each}").status == 401
    text = ask(port, path).text
    assert "worker" not in text
    assert token not in text


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example", "localhost:1", "", "0.0.0.0"])
def test_a_page_of_a_foreign_name_that_resolves_here_reads_nothing(live: tuple[int, str], host: str) -> None:
    port, token = live
    for path in PATHS:
        answer = ask(port, path, Host=host, Authorization=bearer(token))
        assert answer.status == 421
        assert f"name it localhost:{port} or 127.0.0.1:{port}; a tunnel begins at the same port" in answer.text
    assert ask(port, "/", Host=f"localhost:{port}", Authorization=bearer(token)).status == 200


def test_the_address_that_a_page_has_can_be_named_though_it_is_not_the_usual_one() -> None:
    page = serve_live("127.0.0.2:0")
    try:
        with httpx.Client(follow_redirects=True, trust_env=False) as client:
            assert client.get(page.url).status_code == 200
            assert client.get(page.url, headers={"Host": "127.0.0.3"}).status_code == 421
    finally:
        page.close()


@pytest.mark.parametrize("origin", ["http://attacker.example", "null", "http://localhost:1", "https://127.0.0.1"])
def test_a_page_of_another_site_reads_nothing(live: tuple[int, str], origin: str) -> None:
    port, token = live
    for path in PATHS:
        answer = ask(port, path, Origin=origin, Cookie=f"timely-live-{port}={token}")
        assert answer.status == 403
        assert answer.getheader("access-control-allow-origin") == ""
    assert ask(port, "/", Origin=f"http://127.0.0.1:{port}", Cookie=f"timely-live-{port}={token}").status == 200


def test_a_token_becomes_a_cookie_whatever_characters_it_has() -> None:
    token = "a; b=\"c\", \\d %3B 'e'"
    page = serve_live(0, token=token)
    try:
        parts = urlsplit(page.url)
        assert parts.port is not None
        cookie = ask(parts.port, f"/?{parts.query}").getheader("set-cookie").partition(";")[0]
        assert ask(parts.port, "/", Cookie=cookie).status == 200
        assert ask(parts.port, "/", Authorization=bearer(token)).status == 200
    finally:
        page.close()


@pytest.mark.parametrize("other", ['theme={"dark": true}', "flag", "a b=1", "user@host=1", "a=\xe9", "=", ";"])
def test_cookies_of_other_ports_do_not_hide_the_token(live: tuple[int, str], other: str) -> None:
    port, token = live
    for cookie in (f"{other}; timely-live-{port}={token}", f"timely-live-{port}={token}; {other}"):
        assert ask(port, "/", Cookie=cookie).status == 200
        assert ask(port, "/", Cookie=cookie.replace(token, "x" * len(token))).status == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_sent(live: tuple[int, str], method: str) -> None:
    port, token = live
    assert ask(port, "/", method, Authorization=bearer(token)).status == 405


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_can_use(live: tuple[int, str]) -> None:
    port, token = live
    answer = ask(port, f"/?token={token}&dataflow=1")
    assert answer.status == 303
    assert answer.getheader("location") == "/?dataflow=1"
    cookie = answer.getheader("set-cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert ask(port, "/", Cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize(
    "path", ["/page/../server.py", "/page/..%2fserver.py", "/page//etc/passwd", "/page/%2e%2e/%2e%2e/config.py"]
)
def test_only_the_files_of_the_page_are_served(live: tuple[int, str], path: str) -> None:
    port, token = live
    assert ask(port, path, Authorization=bearer(token)).status == 404


def test_answers_forbid_foreign_scripts_frames_and_caches(live: tuple[int, str]) -> None:
    port, token = live
    for path in ("/", "/page/live.js", "/nothing"):
        answer = ask(port, path, Authorization=bearer(token))
        policy = answer.getheader("content-security-policy")
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script" not in policy.replace("'self'", "")
        assert answer.getheader("cache-control") == "no-store"
        assert answer.getheader("x-content-type-options") == "nosniff"


def test_names_of_operators_are_never_markup(live: tuple[int, str]) -> None:
    port, token = live
    is_seen = Event()

    def program(worker: Worker) -> None:
        with worker.dataflow("<script>alert(1)</script>") as scope:
            _, stream = new_input(scope, name='"><img src=x onerror=alert(1)>')
            stream.probe()
        while not is_seen.is_set():
            worker.step_or_park(0.05)

    thread = Thread(target=execute, args=(program, Config()), name="timely test")
    thread.start()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/stream", headers={"Authorization": bearer(token)})
        answer, text = connection.getresponse(), ""
        while "onerror" not in text:
            text = answer.readline().decode()
        assert json.loads(text.removeprefix("data: "))["nodes"][0]["name"] == '"><img src=x onerror=alert(1)>'
        assert answer.getheader("content-type", "").startswith("text/event-stream")
    finally:
        answer.close()
        connection.close()
        is_seen.set()
        thread.join(20)


def test_the_file_with_the_token_is_private_and_removed() -> None:
    page = serve_live(0)
    directory = next(path for path in Path("/tmp").glob("timely-run-*") if _is_of(path, page.url))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / FILE).stat().st_mode) == 0o600
    page.close()
    assert not (directory / FILE).exists()


def _is_of(directory: Path, url: str) -> bool:
    try:
        return url.startswith(json.loads((directory / FILE).read_text())["url"])
    except (OSError, ValueError):
        return False


def test_with_tls_the_token_is_never_sent_in_the_clear(tmp_path: Path) -> None:
    certificate, key = str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, *names],
        capture_output=True,
        timeout=60,
        check=False,
    )
    if made.returncode:
        pytest.skip("no openssl here to make a certificate")
    token = "a token that is long enough"
    page = serve_live("0.0.0.0:0", token=token, certificate=(certificate, key))
    try:
        port = urlsplit(page.url).port
        assert port is not None
        assert page.url.startswith("https://")
        with pytest.raises((http.client.HTTPException, OSError)):
            ask(port, "/", Authorization=bearer(token))
        context = ssl.create_default_context(cafile=certificate)
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
        connection.request("GET", f"/?token={token.replace(' ', '%20')}")
        answer = connection.getresponse()
        assert answer.status == 303
        assert "Secure" in (answer.getheader("set-cookie") or "")
        connection.close()
    finally:
        page.close()


def test_nothing_runs_while_nobody_looks(live: tuple[int, str]) -> None:
    before = os.times()
    Event().wait(1.0)
    after = os.times()
    assert (after.user + after.system) - (before.user + before.system) <= 0.03
