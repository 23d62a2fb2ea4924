"""Rounds of tables of one slot: whatever arrives when, all tables are as of the same place in the log."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from differential.session.sources.pgoutput import Keepalive
from differential.session.sources.source import Target
from timely.errors import StoreError

pytest.importorskip("psycopg", reason="psycopg is not installed")
from differential.session.sources import postgresql
from differential.session.sources.postgresql import Database, TableReader
from differential.session.sources.postgresql_stream import TableColumn, TableInfo

TABLES = ("a", "b")
INT4 = 23
INT4_TYPE = struct.pack("!Ii", INT4, -1)
INFOS = {table: TableInfo("public", table, "f", (TableColumn("n", "int4", INT4, False),)) for table in TABLES}


def relation(number: int) -> bytes:
    name = TABLES[number].encode() + b"\0"
    return b"R" + struct.pack("!I", number) + b"public\0" + name + b"f" + struct.pack("!HB", 1, 0) + b"n\0" + INT4_TYPE


def insertion(number: int, value: int) -> bytes:
    text = str(value).encode()
    return b"I" + struct.pack("!I", number) + b"N" + struct.pack("!HcI", 1, b"t", len(text)) + text


class Server:
    """A server whose transaction `n` is at the places from 10 n to 10 n + 10, and inserts `n` into both tables."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.transactions = 0
        self.confirmed = 0
        self.now = 0.0
        self.loss = 0.05
        """How often the connection is lost instead of a message."""

    def prepare(self, *_: Any) -> int:
        return self.confirmed

    def snapshot(self, _: str, queries: list[Any]) -> tuple[int, list[list[tuple[str]]]]:
        return 10 * self.transactions, [[(str(n),) for n in range(self.transactions)] for _ in queries]

    def monotonic(self) -> float:
        self.now += self.chance.choice([0.1, 20.0])
        return self.now

    def connect(self, _: str) -> Stream:
        return Stream(self)


class Stream:
    """What the server sends from the confirmed place on, with pauses and with losses of the connection."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._messages = self._sent()

    def _sent(self) -> Iterator[bytes | Keepalive | None]:
        number = self._server.confirmed // 10
        yield from (relation(0), relation(1))
        while True:
            while number < self._server.transactions:
                yield b"B" + struct.pack("!QQI", 10 * number + 5, 0, 1)
                yield from (insertion(0, number), insertion(1, number))
                yield b"C\0" + struct.pack("!QQQ", 10 * number + 5, 10 * number + 10, 0)
                number += 1
            yield Keepalive(10 * number, False)
            yield None

    def start(self, *_: Any) -> None:
        pass

    def received(self) -> bytes | Keepalive | None:
        if self._server.chance.random() < self._server.loss:
            raise StoreError("the connection is lost")
        return next(self._messages) if self._server.chance.random() < 0.9 else None

    def confirm(self, confirmed: int) -> None:
        self._server.confirmed = confirmed

    def close(self) -> None:
        pass


def round_of(database: Database, rows: dict[str, list[int]]) -> None:
    """Poll all tables as a commit does, add what they deliver, and confirm it."""
    batches = {}
    for table, reader in database.readers.items():
        while (batch := reader.poll()) is not None:
            batches[table] = batch
            for _, columns in batch.changes:
                rows[table] += columns[0].tolist()
    for table, batch in batches.items():
        database.readers[table].confirm(batch.position)


@pytest.mark.parametrize("seed", range(10))
def test_a_table_that_is_added_has_the_transactions_of_the_others(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    server = Server(chance)
    for name, value in {
        "prepare": server.prepare,
        "snapshot": server.snapshot,
        "Replication": server.connect,
        "clock": SimpleNamespace(monotonic=server.monotonic),
        "ROWS": chance.choice([4, 1000]),
    }.items():
        monkeypatch.setattr(postgresql, name, value)
    server.transactions = chance.randrange(1, 4)
    known = server.confirmed = 10 * server.transactions
    database = Database("", TABLES, "slot", "slot", 1e9)
    for table in chance.sample(TABLES, 2):
        target = Target(table, ("n",), ("int64",), 1)
        database.readers[table] = TableReader(
            database, table, INFOS[table], target, None if table == "b" else server.confirmed
        )
    server.transactions += chance.randrange(5)
    rows: dict[str, list[int]] = {"a": list(range(known // 10)), "b": []}
    for _ in range(100):
        server.transactions += chance.randrange(3)
        round_of(database, rows)
        assert rows["a"] == list(range(len(rows["a"])))
        assert rows["b"] in ([], rows["a"])
    expected, server.loss = list(range(server.transactions)), 0.0
    for _ in range(1000):
        round_of(database, rows)
        if rows == {"a": expected, "b": expected}:
            break
    assert rows == {"a": expected, "b": expected}
