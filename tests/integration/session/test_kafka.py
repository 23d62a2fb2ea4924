"""Topics as sources and sinks, with the cluster that librdkafka plays."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from differential import Session
from differential.session.sinks import Mark
from timely.errors import SessionError
from timely.lowlevel import typed

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
from differential.session.sinks.kafka import kafka as sink
from differential.session.sources.kafka import kafka as source
from tests.integration.session.kafka_cluster import CHANGE, Cluster, two_writers

pytestmark = pytest.mark.slow
QUIET = {"log_level": 0}


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


def committed(db: Session, is_there: Callable[[], bool]) -> None:
    """Commit until something is there."""
    end = time.monotonic() + 20
    while not is_there():
        assert time.monotonic() < end, f"it has not arrived: {db.status()}"
        db.run(until=lambda: is_there() or time.monotonic() > end)


def test_messages_of_all_partitions_count_once_over_several_sessions(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make("orders")
    number = 0
    for _ in range(3):
        for partition in range(4):
            value = json.dumps({"total": number / 2, "ignored": 1}).encode()
            cluster.send("orders", (partition, str(number).encode(), value))
            number += 1
        with Session(state=str(tmp_path)) as db:
            orders = db.table("orders", {"id": int, "total": float}, key="id")
            orders.read_from(source(cluster.servers, "orders", key="id", follow=False, config=QUIET))
            db.run()
            assert orders.records() == [(each, each / 2) for each in range(number)]


def test_a_topic_of_marks_that_the_brokers_do_not_make_is_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # librdkafka's cluster does not answer a request to make a topic.
    monkeypatch.setattr("differential.session.sinks.kafka.SECONDS", 2.0)
    with Session() as db:
        db.table("numbers", {"x": [1]})
        view = db.view("all", lambda t: t.numbers)
        with pytest.raises(SessionError, match="did not make the topic other-marks within 2 s: make it as a compacted"):
            view.write_to(sink(cluster.servers, "changes", marks="other-marks", config=QUIET), patience=0)


@pytest.mark.parametrize(("form", "value"), [("csv", b'"a,b",7'), ("json", b'{"note": "a,b", "pieces": 7}')])
def test_forms_of_values(cluster: Cluster, form: str, value: bytes) -> None:
    topic = f"form_{form}"
    cluster.send(topic, (0, None, value))
    with Session() as db:
        rows = db.table("rows", {"note": str, "pieces": int})
        rows.read_from(source(cluster.servers, topic, form, config=QUIET))  # type: ignore[arg-type]
        committed(db, lambda: len(rows) > 0)
        assert rows.records() == [("a,b", 7)]


def test_a_message_with_two_records_of_csv_is_rejected(cluster: Cluster) -> None:
    cluster.send("two", *((0, None, value) for value in (b"a,1\nb,2", b'"a', b'"a\nb",3')))
    with Session() as db:
        rows = db.table("rows", {"note": str, "pieces": int})
        rows.read_from(source(cluster.servers, "two", "csv", follow=False, config=QUIET), on_error=db.rejects())
        db.run()
        assert rows.records() == [("a\nb", 3)]
        assert [record[-1] for record in db["rejects"].records()] == [
            "the end of a line is in a field without quotes: quote the field, or remove the character",
            "unexpected end of data",
        ]


def test_raw_values_are_bytes_or_text(cluster: Cluster) -> None:
    cluster.send("raw", (0, b"\xff", b"text"))
    with Session() as db:
        rows = db.table("rows", {"value": str, "key": bytes}, key="key")
        rows.read_from(source(cluster.servers, "raw", "raw", key="key", follow=False, config=QUIET))
        db.run()
        assert rows.records() == [("text", b"\xff")]
        wide = db.table("wide", {"key": int, "a": str, "b": str})
        with pytest.raises(SessionError, match="the value of a message is one column, but table 'wide' has a, b"):
            wide.read_from(source(cluster.servers, "raw", "raw", key="key"))


def test_a_message_without_a_value_deletes_the_row_of_its_key(cluster: Cluster) -> None:
    cluster.send(
        "stock", (0, b"nut", b'{"n": 1}'), (0, b"cog", b'{"n": 2}'), (0, b"nut", None), (0, b"cog", b'{"n": 3}')
    )
    with Session() as db:
        stock = db.table("stock", {"item": str, "n": int}, key="item")
        stock.read_from(source(cluster.servers, "stock", key="item", config=QUIET), upsert=True)
        committed(db, lambda: stock.records() == [("cog", 3)])
        cluster.send("stock", (0, b"cog", None), (0, b"rod", b'{"n": 4}'))
        committed(db, lambda: stock.records() == [("rod", 4)])
        other = db.table("other", {"item": str, "n": int}, key="n")
        with pytest.raises(SessionError, match="a message's key must be the key of table 'other'"):
            other.read_from(source(cluster.servers, "stock", key="item", config=QUIET), upsert=True)


BAD = [(0, b"1", b'{"n": 1}'), (0, b"x", b'{"n": 2}'), (0, b"3", b"[]"), (0, b"4", b'{"n": "y"}'), (0, b"5", None)]


def test_messages_that_are_no_rows_are_rejected_or_stop_the_source(cluster: Cluster, tmp_path: Path) -> None:
    cluster.send("bad", *BAD, (0, b"6", b'{"n": 6}'))
    for on_error in ("rejects", "stop", "stop"):
        with Session(state=str(tmp_path / on_error)) as db:
            rows = db.table("rows", {"key": int, "n": int})
            topic = source(cluster.servers, "bad", key="key", follow=False, config=QUIET)
            if on_error == "rejects":
                rows.read_from(topic, on_error=db.rejects())
                db.run()
                assert rows.records() == [(1, 1), (6, 6)]
                found = db["rejects"].to_arrow().to_pylist()
                assert [(each["place"], each["line"]) for each in found] == [("bad[0]", n) for n in range(1, 5)]
                assert [each["error"] for each in sorted(found, key=lambda each: each["line"])] == [
                    "column 'key' (int64) cannot be b'x'",
                    "the value is not a JSON object",
                    "column 'n' (int64) cannot be 'y'",
                    "a message without a value: with upsert=True it deletes the row of its key",
                ]
            else:
                rows.read_from(topic)
                with pytest.raises(SessionError, match=r"has stopped at bad\[0\], line 1: column 'key'"):
                    db.run()
                assert rows.records() == [(1, 1)]


def test_a_topic_that_does_not_answer_is_one_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("differential.session.sources.kafka.ANSWER_SECONDS", 1.0)
    with Session() as db:
        rows = db.table("rows", {"x": int})
        config = {"socket.connection.setup.timeout.ms": 1000}
        with pytest.raises(SessionError, match=r"topic nothing at 127\.0\.0\.1:1"):
            rows.read_from(source("127.0.0.1:1", "nothing", config=config))
    assert capfd.readouterr().err == ""


def test_a_property_that_librdkafka_does_not_have_is_named(cluster: Cluster) -> None:
    wrong = {**QUIET, "no.such": "1"}
    with Session() as db:
        rows = db.table("rows", {"x": [1]})
        refused = 'topic orders: No such configuration property: "no.such"'
        with pytest.raises(SessionError, match=rf"source 'orders' of table 'rows' \(at .*\) cannot be read: {refused}"):
            rows.read_from(source(cluster.servers, "orders", config=wrong))
        view = db.view("all", lambda t: t.rows)
        with pytest.raises(SessionError, match=rf"sink 'orders' of view 'all' \(at .*\) has stopped: {refused}"):
            view.write_to(sink(cluster.servers, "orders", config=wrong))


def test_the_state_of_a_source_names_that_no_broker_answers() -> None:
    brokers = Cluster()
    brokers.send("orders", (0, None, b'{"x": 1}'))
    with Session() as db:
        rows = db.table("rows", {"x": int})
        feed = rows.read_from(source(brokers.servers, "orders", config=QUIET))
        committed(db, lambda: len(rows) == 1)
        assert feed.state == "reads"
        brokers.end()
        committed(db, lambda: feed.state.startswith("reads; is not connected: "))


def test_each_commit_is_in_a_topic_once(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make("changes", "upserts", "timely-commits")
    for number in range(3):
        with Session(state=str(tmp_path)) as db:
            numbers = db.table("numbers", {"key": int, "price": typed([], "decimal(9, 2)")}, key="key")
            view = db.view("all", lambda t: t.numbers, durable=True)
            view.write_to(sink(cluster.servers, "changes", config=QUIET))
            view.write_to(sink(cluster.servers, "upserts", key="key", config=QUIET))
            numbers.upsert(key=[number, 7], price=typed([Decimal("1.50"), number], "decimal(9, 2)"))
            assert db.commit() == number + 1
            if number == 2:
                numbers.delete(key=7)
                db.commit()
                rows = numbers.records()
    found = [tuple(json.loads(value).values()) for _, value in cluster.read("changes")]
    added = [(n, "1.50", n + 1, 1) for n in range(3)] + [(7, f"{n}.00", n + 1, 1) for n in range(3)]
    assert sorted(found) == sorted([*added, *((7, f"{n}.00", n + 2, -1) for n in range(3))])
    with Session() as db:
        copy = db.table("copy", {"key": int, "price": typed([], "decimal(9, 2)")}, key="key")
        topic = source(cluster.servers, "upserts", key="key", follow=False, config=QUIET)
        copy.read_from(topic, upsert=True)
        db.run()
        assert copy.records() == rows
    assert len(cluster.read("upserts")) == 7


def test_a_second_writer_of_a_name_goes_on_after_the_first(cluster: Cluster) -> None:
    cluster.make("fenced", "timely-commits")
    first, second = two_writers(sink(cluster.servers, "fenced", config=QUIET))
    second.write([CHANGE._replace(time=2)], Mark("a", 2))
    first.close()
    assert second.mark() == Mark("a", 2)
    with pytest.raises(SessionError, match="cannot be emptied"):
        second.clear()
    second.close()


def test_each_message_counts_once_however_often_the_program_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    chance, number, bad = random.Random(1), 0, 0
    program = [sys.executable, str(Path(__file__).with_name("consuming.py")), cluster.servers, str(tmp_path)]
    cluster.make("numbers")
    for _ in range(10):
        with subprocess.Popen(program, stdout=subprocess.PIPE) as child:
            try:
                assert child.stdout is not None
                assert child.stdout.readline() == b"begins\n"
                for _ in range(chance.randrange(1, 12)):
                    for _ in range(chance.randrange(100)):
                        cluster.send("numbers", (chance.randrange(4), str(number).encode(), b'{"at": 1}'))
                        number += 1
                    cluster.send("numbers", (chance.randrange(4), b"x", b"%d" % bad))
                    bad += 1
                    time.sleep(chance.random() * 0.05)
            finally:
                child.kill()
    (tmp_path / "end").touch()
    with Session(state=str(tmp_path / "db")) as db:
        topic = source(cluster.servers, "numbers", key="n", follow=False, config=QUIET)
        numbers = db.table("numbers", {"n": int, "at": int}, key="n")
        numbers.read_from(topic, on_error=db.rejects())
        total = db.view("total", lambda t: t.numbers.map(lambda n, at: n).named("n"), durable=True)
        db.run()
        assert total.records() == [(each,) for each in range(number)]
        assert sorted(db["rejects"].to_arrow()["record"].to_pylist()) == sorted(f"x: {each}" for each in range(bad))


def test_no_commit_is_lost_however_often_the_program_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    """The cluster shows aborted transactions as if they were read uncommitted, so changes may be there twice."""
    chance, sums = random.Random(1), Counter[str]()
    cluster.make("sums", "changes-of-sums", "timely-commits")
    program = [sys.executable, str(Path(__file__).with_name("producing.py")), cluster.servers, str(tmp_path)]
    path = tmp_path / "numbers.jsonl"
    path.touch()
    kills = 6
    for _ in range(kills):
        with subprocess.Popen(program, stdout=subprocess.PIPE) as child:
            try:
                assert child.stdout is not None
                assert child.stdout.readline() == b"begins\n"
                for _ in range(chance.randrange(1, 12)):
                    group, n = f"group {chance.randrange(5)}", chance.randrange(100)
                    sums[group] += n
                    with path.open("a") as file:
                        file.write(json.dumps({"group": group, "n": n}) + "\n")
                    time.sleep(chance.random() * 0.1)
            finally:
                child.kill()
    (tmp_path / "end").touch()
    subprocess.run(program, check=True, timeout=60, stdout=subprocess.DEVNULL)
    last = {key.decode(): json.loads(value)["sum"] for key, value in cluster.read("sums")}
    assert last == sums
    changes = Counter(tuple(json.loads(value).items()) for _, value in cluster.read("changes-of-sums"))
    twice = {dict(change)["time"] for change, count in changes.items() if count > 1}
    assert len(twice) <= kills
    totals: Counter[tuple[str, int]] = Counter()
    for change in changes:
        row = dict(change)
        totals[row["group"], row["sum"]] += row["diff"]
    assert {key: count for key, count in totals.items() if count} == dict.fromkeys(sums.items(), 1)
