"""What a session publishes arrives whole and once, from where a reader was, and from nowhere else."""

from __future__ import annotations

import datetime as dt
import gc
import socket
import time as clock
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from typing import Any
from weakref import ref

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from differential import Session
from differential.session.serving import publication as publications
from differential.session.sources import Target, arrow_socket, server_sent_events
from differential.session.transaction import Kind
from timely.communication.curve import make_keys
from timely.errors import SessionError
from timely.lowlevel import typed

COMMITS = st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=4), max_size=5)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_keys(str(tmp_path_factory.mktemp("keys"))).parent)


def run_until(db: Session, condition: Callable[[], bool]) -> None:
    end = clock.monotonic() + 30
    db.run(until=lambda: condition() or clock.monotonic() > end)
    assert condition(), db.status()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commits=COMMITS, upsert=st.booleans(), reopened=st.integers(0, 5))
def test_a_table_that_follows_a_view_has_its_rows(
    keys: str, commits: list[list[tuple[int, int]]], upsert: bool, reopened: int
) -> None:
    with Session() as db, Session() as other:
        numbers = db.table("numbers", {"x": [7], "y": [7]}, key="x")
        last = db.commit()
        publication = numbers.publish("tcp://127.0.0.1:*", keys=keys)
        copy = other.table("copy", {"y": int, "x": int}, key="x")
        position: Any = None
        source = arrow_socket(publication.address, keys=keys)
        feed = copy.read_from(source, upsert=upsert)
        for number, rows in enumerate(commits):
            for x, y in rows:
                numbers.upsert(x=x, y=y)
            if number % 2:
                numbers.delete(x=rows[0][0])
            last = db.commit()
        expected = [(y, x) for x, y in numbers.records()]
        run_until(other, lambda: sorted(copy.records()) == sorted(expected))
        position = feed.position
        assert position is None or int(str(position).rpartition(".")[2]) <= last
        publication.close()


def test_all_types_arrive_as_they_are_and_others_stop_the_source(keys: str) -> None:
    columns = {
        "day": [dt.date(2026, 2, 28), None],
        "price": typed([Decimal("1.50"), None], "decimal(9, 2)"),
        "name": ["é", "nul\0"],
        "lasts": [dt.timedelta(1), None],
        "weight": [float("nan"), float("inf")],
    }
    with Session() as db, Session() as other:
        table = db.table("all", columns)
        db.commit()
        publication = table.publish("tcp://127.0.0.1:*", keys=keys)
        types = {name: table._item.schema.types()[name] for name in columns}
        copy = other.table("copy", {name: typed([], of) for name, of in types.items()} | {"weight": float, "name": str})
        copy.read_from(arrow_socket(publication.address, keys=keys))
        run_until(other, lambda: len(copy) == 2)
        assert repr(copy.records()) == repr(table.records())
        wrong = other.table("wrong", {"name": int})
        wrong.read_from(arrow_socket(publication.address, keys=keys))
        with pytest.raises(SessionError, match="column 'name'"):
            run_until(other, lambda: len(wrong) == 2)
        publication.close()


@pytest.mark.parametrize("tags", [[None, ["a"]], [["a"], None], [None, None], [[], None], [{"a": None}, None]])
def test_a_commit_whose_lists_are_all_null_arrives(keys: str, tags: list[Any]) -> None:
    with Session() as db, Session() as other:
        types = {"id": int, "tags": typed([], "value")}
        table, copy = db.table("t", types), other.table("copy", types)
        publication = table.publish("tcp://127.0.0.1:*", keys=keys)
        copy.read_from(arrow_socket(publication.address, keys=keys))
        for number, each in enumerate(tags):
            table.insert([(number, each)])
            db.commit()
            run_until(other, lambda: len(copy) == len(table))
        assert copy.records() == table.records()
        publication.close()


@pytest.mark.parametrize("mixed", [[1, "a"], [1 << 70]])
def test_a_row_that_arrow_cannot_represent_stops_its_readers_and_not_the_publication(
    keys: str, mixed: list[Any]
) -> None:
    with Session() as db, Session() as other:
        types = {"id": int, "tags": typed([], "value")}
        table = db.table("t", types, key="id")
        publication = table.publish("tcp://127.0.0.1:*", keys=keys)
        source = arrow_socket(publication.address, keys=keys)
        early, late, last = (other.table(name, types) for name in ("early", "late", "last"))
        table.insert([(1, None)])
        db.commit()
        early.read_from(source)
        run_until(other, lambda: len(early) == 1)
        table.insert([(2, mixed)])
        refused = rf"answers: commit {db.commit()} of table 't' cannot be converted to Arrow: column 'tags': "
        for reader in (early, late):
            if reader is late:
                late.read_from(source)
            with pytest.raises(SessionError, match=refused):
                run_until(other, lambda: False)
        table.delete(id=2)
        db.commit()
        last.read_from(source)
        run_until(other, lambda: len(last) == 1)
        table.insert([(3, None)])
        db.commit()
        run_until(other, lambda: len(last) == 2)
        assert (early.records(), late.records(), last.records()) == ([(1, None)], [], [(1, None), (3, None)])
        publication.close()


def test_a_session_that_is_opened_again_goes_on_or_stops_if_too_little_is_kept(keys: str, tmp_path: Path) -> None:
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        publication = publications.Publication(db._catalog, numbers._item, "tcp://127.0.0.1:*", keys, backlog=2_000)
        source = arrow_socket(publication.address, keys=keys, name="numbers")

        def follow(expected: int) -> None:
            with Session(state=str(tmp_path / "db")) as other:
                copy = other.table("copy", {"x": int})
                copy.read_from(source)
                run_until(other, lambda: len(copy) == expected)
                assert copy.records() == numbers.records()

        for number in range(2):
            numbers.insert(x=number)
            db.commit()
            follow(number + 1)
        for number in range(2, 12):
            numbers.insert(x=number)
            db.commit()
        with pytest.raises(SessionError, match="no longer has the changes after"):
            follow(12)
        publication.close()


@pytest.mark.slow
@pytest.mark.parametrize("is_view", [False, True])
@pytest.mark.parametrize("form", ["arrow", "events"])
def test_a_follower_goes_on_when_the_durable_session_that_it_follows_is_opened_again(
    keys: str, tmp_path: Path, form: str, is_view: bool
) -> None:
    with Session() as other:
        copy = other.table("copy", {"y": int, "x": int})
        position: Any = None
        for number in range(3):
            with Session(state=str(tmp_path / "db"), keep=4) as db:
                numbers = db.table("numbers", {"x": int, "y": int}, key="y")
                doubled = db.view("doubled", lambda t: t.numbers.select("x", "y"), durable=True)
                for each in range(number + 1):  # one commit that the follower has missed, then one more
                    numbers.insert(x=number, y=each)
                    db.commit()
                source: Any
                if form == "arrow":
                    shown = doubled if is_view else numbers
                    source = arrow_socket(shown.publish("tcp://127.0.0.1:*", keys=keys).address, keys=keys, name="all")
                else:
                    server = db.serve()
                    name = "doubled" if is_view else "numbers"
                    source = server_sent_events(f"{server.url}changes/{name}", token=server.token, name="all")
                target = Target("copy", copy.columns, ("int64", "int64"), 1)
                reader = source.open(target, position)
                end = clock.monotonic() + 30
                while len(copy) < len(numbers):
                    assert clock.monotonic() < end
                    batch = reader.poll()
                    if batch is not None:
                        position = batch.position
                        for kind, (ys, xs) in batch.changes:
                            assert kind is Kind.INSERT
                            copy.insert(x=xs, y=ys)
                        other.commit()
                    clock.sleep(0.01)
                reader.close()
                assert sorted((x, y) for y, x in copy.records()) == sorted(numbers.records())


def test_a_column_named_time_arrives_and_one_named_diff_is_refused(keys: str) -> None:
    with Session() as db, Session() as other:
        visits = db.table("visits", {"page": ["home"], "time": [7]})
        db.commit()
        publication = visits.publish("tcp://127.0.0.1:*", keys=keys)
        copy = other.table("copy", {"page": str, "time": int})
        copy.read_from(arrow_socket(publication.address, keys=keys))
        visits.insert(page="help", time=8)
        db.commit()
        run_until(other, lambda: copy.records() == [("help", 8), ("home", 7)])
        publication.close()
        db.table("changes", {"diff": [1]})
        with pytest.raises(SessionError, match="table 'changes' has a column 'diff', the name of one that readers"):
            db.table("changes").publish("tcp://127.0.0.1:*", keys=keys)


def test_a_follower_waits_for_a_session_that_was_closed_and_not_for_a_view_that_was_dropped(
    keys: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("differential.session.sources.arrow_socket"), "ANSWER_SECONDS", 0.5)
    address = "tcp://127.0.0.1:*"
    with Session() as other:
        copy = other.table("copy", {"x": int})
        for number in range(3):
            with Session(state=str(tmp_path / "db"), keep=10) as db:
                numbers = db.table("numbers", {"x": int})
                view = db.view("all", lambda t: t.numbers, durable=True)
                numbers.insert(x=number)
                db.commit()
                publication = view.publish(address, keys=keys)
                if number == 0:
                    address = publication.address
                    copy.read_from(arrow_socket(address, keys=keys))
                run_until(other, lambda: len(copy) == len(numbers))  # noqa: B023
                if number == 2:
                    db.drop("all")
                    with pytest.raises(SessionError, match="answers: view 'all' was dropped or replaced"):
                        run_until(other, lambda: False)


@pytest.mark.parametrize("ends", ["in a block", "in a callback", "during a commit"])
def test_a_session_that_is_closed_does_not_wait_for_readers(
    keys: str, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_asked, may_go, is_closed = Event(), Event(), Event()
    shop = Session()

    answer = publications.Publication._answer

    def asked(self: publications.Publication, question: bytes) -> list[bytes] | None:
        is_asked.set()
        return answer(self, question)

    def slow(x: Any) -> Any:
        if (x > 1).any():
            may_go.wait(40)
        return x

    def close() -> None:
        feeds.append(copy.read_from(arrow_socket(publication.address, keys=keys)))
        assert is_asked.wait(20), "nobody asks"
        shop.close()
        is_closed.set()

    def run() -> None:
        with suppress(SessionError):
            if ends == "in a block":
                with shop.transaction():
                    close()
            elif ends == "in a callback":
                numbers.watch(lambda change: close())
                shop.commit()
            else:
                shop.view("slow", lambda t: t.numbers.map(slow))
                numbers.insert(x=2)
                shop.commit()

    feeds: list[Any] = []
    numbers = shop.table("numbers", {"x": [1]})
    if ends != "in a callback":
        shop.commit()
    monkeypatch.setattr(publications.Publication, "_answer", asked)
    publication = numbers.publish("tcp://127.0.0.1:*", keys=keys)
    with Session() as office:
        copy = office.table("copy", {"x": int})
        thread = Thread(target=run, daemon=True)
        thread.start()
        try:
            if ends == "during a commit":
                end = clock.monotonic() + 20
                while not shop.status().computing:
                    assert clock.monotonic() < end, "the commit does not compute"
                Thread(target=close, daemon=True).start()
            assert is_closed.wait(20), "close() waits for a reader, which waits for the session"
        finally:
            may_go.set()
            feeds[0].close()
        thread.join(20)
        assert not thread.is_alive(), "the thread goes on"


def test_nothing_keeps_a_publication_that_is_closed_and_its_threads_keep_another(keys: str) -> None:
    with Session() as db, Session() as office:
        numbers = db.table("numbers", {"x": [1]})
        db.commit()
        closed = numbers.publish("tcp://127.0.0.1:*", keys=keys)
        address = numbers.publish("tcp://127.0.0.1:*", keys=keys).address
        closed.close()
        gone = ref(closed)
        del closed
        gc.collect()
        assert gone() is None
        copy = office.table("copy", {"x": int})
        copy.read_from(arrow_socket(address, keys=keys))
        run_until(office, lambda: copy.records() == [(1,)])


def test_the_state_of_a_source_names_that_nobody_answers(keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source_module = import_module("differential.session.sources.arrow_socket")
    monkeypatch.setattr(source_module, "ANSWER_SECONDS", 0.05)
    with Session() as db:
        numbers = db.table("numbers", {"x": [1]})
        db.commit()
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        copy = db.table("copy", {"x": int})
        feed = copy.read_from(arrow_socket(address, keys=keys))
        end = clock.monotonic() + 20
        while feed.state == "reads" and clock.monotonic() < end:
            clock.sleep(0.01)
        assert feed.state == "reads; is not connected: no answer within 0.05 s"
        monkeypatch.setattr(source_module, "ANSWER_SECONDS", 5.0)
        numbers.publish(address, keys=keys)
        db.run(until=lambda: len(copy) > 0 or clock.monotonic() > end)
        assert (copy.records(), feed.state) == ([(1,)], "reads")
