"""A topic as a source has the messages of committed transactions, and its position passes over everything else."""

from __future__ import annotations

import json
import random
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from differential import Session
from timely.errors import SessionError

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
from differential.session import Table
from differential.session.sources import kafka as module
from differential.session.sources.feed import Feed
from differential.session.sources.kafka import kafka
from tests.integration.session.kafka_log import Broker, Log, Message

pytestmark = [pytest.mark.lengthy, pytest.mark.timeout(120)]
QUIET = {"log_level": 0}


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.close()


def numbered(*numbers: int) -> list[Message]:
    return [(None, b"%d" % number) for number in numbers]


def reading(db: Session, broker: Broker, *, follow: bool = False) -> tuple[Table, Feed]:
    rows = db.table("rows", {"n": int})
    return rows, rows.read_from(kafka(broker.servers, "topic", "raw", follow=follow, config=QUIET))


def offset_of(feed: Feed) -> int:
    """Return the offset of the next message as of the last commit; 0 before the first one."""
    return 0 if feed.position is None else int(json.loads(str(feed.position))["0"])


def run_until(db: Session, is_there: Callable[[], bool]) -> None:
    end = clock.monotonic() + 20
    db.run(until=lambda: is_there() or clock.monotonic() > end)
    assert is_there(), f"it has not arrived: {db.status()}"


def test_messages_of_aborted_transactions_are_left_out(broker: Broker) -> None:
    log = broker.logs["topic"] = Log()
    log.write(1, *numbered(1, 2))
    log.write(2, *numbered(30, 40))
    log.write(1, *numbered(3))
    log.finish(2, is_committed=False)
    log.finish(1, is_committed=True)
    log.write(2, *numbered(50))
    log.finish(2, is_committed=False)
    with Session() as db:
        rows, feed = reading(db, broker)
        db.run()
        assert rows.records() == [(1,), (2,), (3,)]
        assert offset_of(feed) == log.end == 9


def test_messages_of_a_transaction_wait_for_its_end(broker: Broker) -> None:
    log = broker.logs["topic"] = Log()
    log.write(1, *numbered(1))
    log.finish(1, is_committed=True)
    log.write(2, *numbered(2))
    log.write(1, *numbered(3))
    log.finish(1, is_committed=True)
    with Session() as db:
        rows, feed = reading(db, broker, follow=True)
        run_until(db, lambda: rows.records() == [(1,)])
        assert offset_of(feed) <= log.stable == 2
        log.finish(2, is_committed=True)
        run_until(db, lambda: rows.records() == [(1,), (2,), (3,)])


def test_the_position_passes_over_the_end_of_an_aborted_transaction(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PASSED_SECONDS", 0.0)
    log = broker.logs["topic"] = Log()
    log.write(1, *numbered(1))
    log.finish(1, is_committed=True)
    with Session(state=str(tmp_path)) as db:
        rows, feed = reading(db, broker, follow=True)
        run_until(db, lambda: offset_of(feed) == log.end)
        log.write(1, *numbered(2))
        log.finish(1, is_committed=False)
        run_until(db, lambda: offset_of(feed) == log.end)
        number = db.commit()
        assert (rows.records(), number) == ([(1,)], number)
    log.start = log.end  # the broker removes what nobody will read
    with Session(state=str(tmp_path)) as db:
        rows, feed = reading(db, broker)
        db.run()
        assert (rows.records(), offset_of(feed)) == ([(1,)], log.end)
        assert feed.error is None


def test_a_position_before_the_records_that_remain_is_an_error(broker: Broker, tmp_path: Path) -> None:
    log = broker.logs["topic"] = Log()
    log.write(1, *numbered(1))
    log.finish(1, is_committed=True)
    with Session(state=str(tmp_path)) as db:
        reading(db, broker)
        db.run()
    log.write(1, *numbered(2, 3))
    log.finish(1, is_committed=True)
    log.start = log.end
    with Session(state=str(tmp_path)) as db:
        reading(db, broker)
        with pytest.raises(SessionError, match="no longer has offset 2 of partition 0"):
            db.run()


def test_transactions_without_messages_make_no_commits(broker: Broker) -> None:
    log = broker.logs["topic"] = Log()
    log.write(1, *numbered(1))
    log.finish(1, is_committed=True)
    with Session() as db:
        rows, _ = reading(db, broker, follow=True)
        run_until(db, lambda: len(rows) == 1)
        for number in range(5):
            log.write(1, *numbered(number))
            log.finish(1, is_committed=False)
        log.write(1, *numbered(2))
        log.finish(1, is_committed=True)
        run_until(db, lambda: len(rows) == 2)
        assert db.commit() == 3


@pytest.mark.parametrize("seed", range(8))
def test_the_table_has_what_is_committed_before_the_last_stable_offset(
    broker: Broker, tmp_path: Path, seed: int
) -> None:
    chance, number, log = random.Random(seed), 0, broker.logs.setdefault("topic", Log())
    written: dict[int, list[tuple[int, int]]] = {}
    committed: dict[int, int] = {}
    for _ in range(3):
        for _ in range(chance.randrange(1, 25)):
            producer = chance.randrange(3)
            if producer in written and chance.random() < 0.4:
                is_committed = chance.random() < 0.5
                log.finish(producer, is_committed=is_committed)
                done = written.pop(producer)
                committed |= dict(done) if is_committed else {}
            else:
                count = chance.randrange(1, 4)
                written.setdefault(producer, []).extend((log.end + at, number + at) for at in range(count))
                log.write(producer, *numbered(*range(number, number + count)))
                number += count
        with Session(state=str(tmp_path)) as db:
            rows, feed = reading(db, broker)
            db.run()
            expected = [(value,) for offset, value in sorted(committed.items()) if offset < log.stable]
            assert rows.records() == expected
            assert offset_of(feed) == log.stable


def test_reading_what_is_not_committed_is_refused() -> None:
    with pytest.raises(SessionError, match=r"isolation\.level='read_uncommitted' would add messages of aborted"):
        kafka("localhost:9092", "topic", config={"isolation.level": "read_uncommitted"})
    kafka("localhost:9092", "topic", config={"isolation.level": "read_committed"})
