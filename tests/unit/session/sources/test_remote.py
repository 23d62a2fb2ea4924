"""A session that follows another one: what cannot be followed stops the source with the reason, and never waits."""

from __future__ import annotations

import datetime as dt
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from urllib.parse import quote

import pytest

from differential import Session
from differential.session.serving import form
from differential.session.sources import remote, server_sent_events, websocket
from timely.errors import ConfigError, SessionError

WAIT = 20.0
Make = Callable[..., remote.Remote]


@pytest.fixture(params=["http", "ws"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def db() -> Iterator[Session]:
    with Session() as found:
        found.table("numbers", {"x": [1, 2]})
        found.commit()
        yield found


def source(db: Session, scheme: str, path: str, token: str | None = None) -> remote.Remote:
    server = db.serve()
    make = websocket if scheme == "ws" else server_sent_events
    return make(f"{server.url.replace('http', scheme)}{path}", token=token or server.token)


def run(given: remote.Remote, rows: int, **types: type) -> list[tuple[object, ...]]:
    """Follow until there are this many rows. Raises SessionError if the source stops."""
    with Session() as other:
        table = other.table("copy", types or {"x": int})
        feed = table.read_from(given)
        end = time.monotonic() + WAIT
        other.run(until=lambda: len(table) >= rows or time.monotonic() > end)
        assert len(table) >= rows, feed.state
        return table.records()


@pytest.mark.parametrize(
    ("path", "token", "message"),
    [
        ("changes/nothing", None, "there is no .*'nothing'"),
        ("changes/" + quote("\U0001f600" * 70), None, "there is no "),
        ("changes/durations", None, "column 'x' is of type duration"),
        ("changes/numbers", "y" * 20, "the token is missing or wrong"),
        ("rows/numbers", None, "/rows/numbers"),
        ("changes/numbers?after=x", None, "is neither the id of a message"),
    ],
)
def test_what_cannot_be_followed_stops_the_source(
    db: Session, scheme: str, path: str, token: str | None, message: str
) -> None:
    db.table("durations", {"x": dt.timedelta})
    with pytest.raises(SessionError, match=message):
        run(source(db, scheme, path, token), 1)


def test_a_name_with_a_slash_is_followed(db: Session, scheme: str) -> None:
    db.table("a/b", {"x": [7]})
    db.commit()
    assert run(source(db, scheme, f"changes/{quote('a/b', safe='')}"), 1) == [(7,)]


def test_bytes_are_followed(db: Session, scheme: str) -> None:
    db.table("files", {"x": bytes}).insert(x=b"\0\xff")
    db.commit()
    assert run(source(db, scheme, "changes/files"), 1, x=bytes) == [(b"\0\xff",)]


def test_a_message_that_is_too_large_for_a_websocket_stops_the_source(
    db: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "LARGEST", 1000)
    db.table("texts", {"x": str}).insert(x="y" * 2000)
    db.commit()
    with pytest.raises(SessionError, match="a message of more than 1,000 bytes"):
        run(source(db, "ws", "changes/texts"), 1, x=str)


def test_rows_that_are_larger_than_a_message_are_followed(
    db: Session, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(form, "LENGTH", 2000)
    monkeypatch.setattr(remote, "LARGEST", 5000)
    texts = [f"{number} " + "y" * 900 for number in range(20)]
    db.table("texts", {"x": texts})
    db.commit()
    assert run(source(db, scheme, "changes/texts"), 20, x=str) == sorted((text,) for text in texts)


def test_an_authority_that_is_no_certificate_is_refused(tmp_path: Path, scheme: str) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    make = websocket if scheme == "ws" else server_sent_events
    for authority in (junk, tmp_path / "absent.pem"):
        with pytest.raises(ConfigError, match=str(authority)):
            make(f"{scheme}s://127.0.0.1:9/changes/numbers", token="x" * 16, authority=str(authority))


def test_a_token_that_no_header_can_have_is_refused(scheme: str) -> None:
    make = websocket if scheme == "ws" else server_sent_events
    with pytest.raises(ConfigError, match="must be printable ASCII"):
        make(f"{scheme}://127.0.0.1:9/changes/numbers", token="é" * 16)


@pytest.mark.parametrize("diff", [1 << 63, -(1 << 63), 1 << 70])
def test_a_diff_beyond_64_bits_stops_the_source(diff: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"kind": "changes", "commit": 1, "columns": ["x"], "rows": [[1]], "diffs": [diff]}
    message = json.dumps(fields | {"more": False, "id": "a.1"})
    monkeypatch.setattr(remote.RemoteReader, "_events", lambda reader: iter([message]))
    with pytest.raises(SessionError, match="not a message of a session"):
        run(server_sent_events("http://127.0.0.1:9/changes/numbers", token="x" * 16), 1)


def test_the_state_of_a_source_names_why_it_cannot_connect(scheme: str) -> None:
    make = websocket if scheme == "ws" else server_sent_events
    with Session() as db:
        feed = db.table("copy", {"x": int}).read_from(make(f"{scheme}://127.0.0.1:9/changes/numbers", token="x" * 16))
        end = time.monotonic() + WAIT
        while feed.state == "reads" and time.monotonic() < end:
            time.sleep(0.01)
        assert "not connected" in feed.state
        assert "refused" in feed.state


def test_sources_whose_server_does_not_answer_are_closed_at_once(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as accepted:
        server.settimeout(WAIT)
        make = websocket if scheme == "ws" else server_sent_events
        url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}/changes/numbers"
        with Session() as other:
            copy = other.table("copy", {"x": int})
            feeds = [copy.read_from(make(url, token="y" * 20, name=str(number))) for number in range(3)]
            connections = [accepted.enter_context(server.accept()[0]) for _ in feeds]
            requests = [connection.recv(1000) for connection in connections]
            begun = time.monotonic()
        took = time.monotonic() - begun
        assert all(request.startswith(b"GET ") for request in requests)
        assert [connection.recv(1000) for connection in connections] == [b""] * 3
        assert took < remote.CLOSING, f"closing 3 sources took {took:.1f} s"


def test_threads_that_do_not_end_are_waited_for_together(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "CLOSING", 0.5)
    over = Event()
    monkeypatch.setattr(remote.RemoteReader, "_follow", lambda reader: over.wait(WAIT))
    make = websocket if scheme == "ws" else server_sent_events
    with Session() as other:
        copy = other.table("copy", {"x": int})
        for number in range(4):
            copy.read_from(make(f"{scheme}://127.0.0.1:1/changes/numbers", token="y" * 20, name=str(number)))
        begun = time.monotonic()
        other.drop("copy")
        took = time.monotonic() - begun
    over.set()
    assert took < 2 * remote.CLOSING, f"4 sources took {took:.1f} s"
