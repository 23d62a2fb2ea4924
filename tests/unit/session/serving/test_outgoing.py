"""Streams of changes: a snapshot and each commit, from where a reader was, and none without bounds."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import math
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from differential import Session
from differential.session.serving import application, form, outgoing
from differential.session.serving.outgoing import Cut, SessionHubs, commit_of
from differential.session.storage import SessionStorage
from timely.errors import DataError, StoreError
from timely.lowlevel import typed

COMMITS = st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=6)


class Follower:
    """A reader that applies what it has received, and goes on where it was."""

    def __init__(self) -> None:
        self.rows: Counter[Any] = Counter()
        self.mark: str | None = None
        self.pending: list[Any] = []

    async def read(self, hub: Any, until: int, seconds: float = 0.05) -> None:
        """Read up to a commit, which may change nothing, or what the stream has in so many seconds."""
        async with aclosing(hub.read(self.mark)) as entries:
            self.pending = []
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    async for entry in entries:
                        self.take(json.loads(entry.text))
                        if entry.commit >= until and not self.pending:
                            return

    def take(self, message: Any) -> None:
        self.pending.append(message)
        if message["more"]:
            return
        if message["kind"] == "snapshot":
            self.rows.clear()
        for part in self.pending:
            for row, diff in zip(part["rows"], part["diffs"], strict=True):
                self.rows[tuple(row)] += diff
        self.pending, self.mark = [], message["id"]


@settings(max_examples=15, deadline=None)
@given(COMMITS, st.lists(st.booleans(), min_size=6, max_size=6), st.sampled_from([0, 300, 1 << 20]))
def test_a_reader_that_comes_and_goes_has_what_the_view_has(
    commits: list[list[int]], reads: list[bool], backlog: int
) -> None:
    async def program(db: Session) -> None:
        hub = SessionHubs(db._catalog, backlog, 1 << 20).of(db._catalog.items["double"])
        follower = Follower()
        for values, is_read in zip(commits, reads):
            for value in values:
                numbers.upsert(x=value, y=value * len(values))
            number = await asyncio.to_thread(db.commit)
            if is_read:
                await follower.read(hub, number)
        await asyncio.to_thread(lambda: (numbers.upsert(x=9, y=len(commits)), db.commit()))
        await follower.read(hub, db._catalog.last, seconds=30)
        assert +follower.rows == Counter(view.records())
        await hub.close("over")

    with Session() as db:
        numbers = db.table("numbers", {"x": int, "y": int}, key="x")
        view = db.view("double", lambda t: t.numbers.map(lambda x, y: y * 2).named("y"))
        form_rows, form.ROWS = form.ROWS, 2
        try:
            asyncio.run(program(db))
        finally:
            form.ROWS = form_rows


def test_a_reader_that_is_too_slow_is_cut_off_and_the_others_go_on() -> None:
    async def program(db: Session) -> None:
        hub = SessionHubs(db._catalog, 1 << 20, 2_000).of(db._catalog.items["numbers"])
        slow, quick = hub.read(None), hub.read(None)
        await anext(slow)
        await anext(quick)
        for number in range(3):
            numbers.insert(x=list(range(number * 300, number * 300 + 150)))
            await asyncio.to_thread(db.commit)
            assert (await anext(quick)).commit == number + 1
        with pytest.raises(Cut, match="more than 2,000 bytes wait for this reader, which is too slow"):
            await anext(slow)
        await quick.aclose()
        await hub.close("over")

    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        asyncio.run(program(db))


def test_the_streams_of_a_view_end_with_it_and_its_marks_begin_anew() -> None:
    async def program(db: Session) -> None:
        hubs = SessionHubs(db._catalog, 1 << 20, 1 << 20)
        hub = hubs.of(db._catalog.items["all"])
        entries = hub.read(None)
        mark = (await anext(entries)).mark
        db.view("all", lambda t: t.numbers.filter(lambda x: x > 1))
        with pytest.raises(Cut, match="view 'all' was dropped or replaced"):
            await anext(entries)
        other = hubs.of(db._catalog.items["all"])
        assert other is not hub
        assert commit_of(mark, other) is None
        assert commit_of("7", other) == commit_of(f"{other.label}.7", other) == 7
        with pytest.raises(DataError, match="is neither the id of a message"):
            commit_of("x.y", other)
        await hubs.close()

    with Session() as db:
        db.table("numbers", {"x": [1, 2]})
        db.view("all", lambda t: t.numbers)
        db.commit()
        asyncio.run(program(db))


def test_values_that_json_has_no_form_for_are_texts_or_refused() -> None:
    columns = [
        np.array([float("inf"), float("-inf")]),
        typed([dt.date(2026, 2, 28), None], "date"),
        typed([Decimal("1.50"), Decimal("2")], "decimal(9, 2)"),
        typed([dt.datetime(2026, 2, 28, 12), None], "timestamp[us]"),
    ]
    assert json.loads(form.text(form.records("abcd", columns))) == [
        ["Infinity", "2026-02-28", "1.50", "2026-02-28T12:00:00"],
        ["-Infinity", None, "2.00", None],
    ]
    with pytest.raises(DataError, match="column 'a' is of type duration"):
        form.records("a", [typed([dt.timedelta(1)], "duration[us]")])


def test_values_in_lists_and_structs_have_the_forms_of_columns() -> None:
    def refused(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    inner = {"f": [1.5, math.nan], "b": b"\0", "d": dt.datetime(2026, 2, 28, 12), "n": None}
    found = json.loads(form.text(form.records("a", [typed([inner], "value")])), parse_constant=refused)
    assert found == [[{"f": [1.5, "NaN"], "b": "AA==", "d": "2026-02-28T12:00:00", "n": None}]]


def test_a_message_is_small_unless_a_single_row_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "LENGTH", 100)
    values = np.array(["a", "b" * 90, "c", "é" * 500, "d", "e"], np.dtypes.StringDType())
    found = [json.loads(text) for _, text in form.messages("changes", 1, "a", ["x"], [values], [1] * 6)]
    assert [value for message in found for (value,) in message["rows"]] == values.tolist()
    assert [len(message["diffs"]) for message in found] == [len(message["rows"]) for message in found]
    assert all(len(message["rows"]) == 1 or len(form.text(message["rows"])) <= 100 for message in found)
    assert [message.get("id") for message in found] == [None] * (len(found) - 1) + ["a.1"]
    assert [message["more"] for message in found] == [True] * (len(found) - 1) + [False]


def test_an_id_with_too_many_digits_is_refused() -> None:
    with Session() as db:
        db.table("numbers", {"x": [1]})
        server = db.serve()
        headers = {"Authorization": f"Bearer {server.token}"}
        url = f"{server.url}changes/numbers?after={'9' * 5000}"
        answer = httpx.get(url, headers=headers, timeout=20, trust_env=False)
        assert (answer.status_code, "is neither the id of a message" in answer.json()["error"]) == (409, True)


def test_a_reader_that_came_before_the_first_commit_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def program(db: Session, number: int) -> None:
        numbers = db.table("numbers", {"x": int})
        hub = SessionHubs(db._catalog, 1 << 20, 1 << 20).of(db._catalog.items["numbers"])
        if number == 0:
            await follower.read(hub, 0)
        for _ in range(2):
            numbers.insert(x=number)
            commit = await asyncio.to_thread(db.commit)
            if number:
                await follower.read(hub, commit)
        assert not number or follower.rows == {(each,): 2 for each in range(number + 1)}
        await hub.close("the test ends")

    follower = Follower()
    snapshots = 0

    def take(message: Any) -> None:
        nonlocal snapshots
        snapshots += message["kind"] == "snapshot"
        Follower.take(follower, message)

    follower.take = take  # type: ignore[method-assign]
    for number in range(3):
        with Session(state=str(tmp_path / "db"), keep=10) as db:
            asyncio.run(program(db, number))
    assert snapshots == 1


def test_a_text_with_separators_of_lines_stays_in_one_line() -> None:
    values = np.array(["a\x85b\u2028c\u2029d", "é\n\r\x0b\x0c\x1c\x1d\x1e"], np.dtypes.StringDType())
    ((_, text),) = form.messages("changes", 1, "a", ["x"], [values], [1, 1])
    assert len(text.splitlines()) == 1
    assert [value for (value,) in json.loads(text)["rows"]] == values.tolist()


def test_an_answer_begins_before_there_is_something_to_resume_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "FIRST_SECONDS", 0.05)
    with Session() as db:
        numbers = db.table("numbers", {"x": [1]})
        db.commit()
        server = db.serve()
        headers = {"Authorization": f"Bearer {server.token}"}
        url = f"{server.url}changes/numbers"
        with httpx.Client(headers=headers, timeout=20, trust_env=False) as http:
            with http.stream("GET", url) as events:
                lines = events.iter_lines()
                mark = next(line for line in lines if line.startswith("id: "))[4:]
            with http.stream("GET", url, headers={"Last-Event-ID": mark}) as events:
                lines = events.iter_lines()
                assert (events.status_code, next(lines)) == (200, ": waits")
                numbers.insert(x=2)
                db.commit()
                data = next(line for line in lines if line.startswith("data: "))
                assert json.loads(data[6:])["rows"] == [[2]]
            assert http.get(url, params={"after": "x.y"}).status_code == 409


def test_a_reader_that_comes_while_the_session_ends_is_asked_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(hub: outgoing.Hub, mark: str | None) -> AsyncIterator[outgoing.SentMessage]:
        raise outgoing.Cut("the session is no longer served")
        yield

    monkeypatch.setattr(outgoing.Hub, "read", read)
    with Session() as db:
        db.table("numbers", {"x": [1]})
        server = db.serve()
        headers = {"Authorization": f"Bearer {server.token}"}
        answer = httpx.get(f"{server.url}changes/numbers", headers=headers, timeout=20, trust_env=False)
        assert (answer.status_code, answer.json()) == (503, {"error": "the session is no longer served"})


def test_a_reader_that_comes_while_the_store_fails_is_asked_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(state=str(tmp_path)) as db:
        db.table("numbers", {"x": [1]})
        db.commit()
        server = db.serve()
        url, headers = f"{server.url}changes/numbers", {"Authorization": f"Bearer {server.token}"}
        with monkeypatch.context() as broken, httpx.Client(headers=headers, timeout=20, trust_env=False) as http:

            def past(self: Any, item: Any) -> None:
                raise StoreError("the disk does not answer")

            broken.setattr(SessionStorage, "past", past)
            answer = http.get(url)
            assert (answer.status_code, answer.json()) == (503, {"error": "the disk does not answer"})
            with connect(url.replace("http", "ws", 1), additional_headers=headers, proxy=None) as socket:
                assert json.loads(socket.recv(20)) == {"kind": "end", "error": "the disk does not answer"}
                with pytest.raises(ConnectionClosed):
                    socket.recv(20)
                assert socket.close_code == application.TRY_AGAIN
        with httpx.stream("GET", url, headers=headers, timeout=20, trust_env=False) as events:
            assert next(line for line in events.iter_lines() if line.startswith("id: "))


def test_an_unexpected_error_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def snapshot(hub: outgoing.Hub) -> None:
        raise ZeroDivisionError("of a snapshot")

    monkeypatch.setattr(outgoing.Hub, "_snapshot", snapshot)
    with Session() as db:
        db.table("numbers", {"x": [1]})
        server = db.serve()
        url, headers = f"{server.url}changes/numbers", {"Authorization": f"Bearer {server.token}"}
        assert httpx.get(url, headers=headers, timeout=20, trust_env=False).status_code == 500
        socket = connect(url.replace("http", "ws", 1), additional_headers=headers, proxy=None)
        with socket, pytest.raises(ConnectionClosed):
            socket.recv(20)
    logged = [str(each.exc_info[1]) for each in caplog.records if each.exc_info]
    assert logged == ["of a snapshot"] * 2


def test_a_durable_table_that_json_cannot_hold_is_refused_again_and_again_and_not_followed(tmp_path: Path) -> None:
    with Session(state=str(tmp_path), keep=None) as db:
        stays = db.table("stays", {"time_of": dt.timedelta})
        stays.insert(time_of=dt.timedelta(hours=1))
        db.commit()
        server = db.serve()
        for _ in range(2):
            headers = {"Authorization": f"Bearer {server.token}"}
            answer = httpx.get(f"{server.url}changes/stays", headers=headers, timeout=20, trust_env=False)
            assert (answer.status_code, "is of type duration" in answer.json()["error"]) == (409, True)
        assert db._catalog.items["stays"].followers == ()
