"""Clients of a server for tests, whose transactions change two tables each."""

from __future__ import annotations

import random
import time
from threading import Event, Thread

import psycopg


class Clients:
    """Transactions of clients, which change two tables each, until they are to end."""

    def __init__(self, dsn: str, seed: int) -> None:
        self._dsn, self._chance, self._end = dsn, random.Random(seed), Event()
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._end.is_set():
            try:
                with psycopg.connect(self._dsn) as sql:
                    (number,) = sql.execute("SELECT coalesce(max(number), 0) FROM payments").fetchone()
                    while not self._end.is_set():
                        for _ in range(self._chance.randrange(1, 4)):
                            number += 1
                            self._pay(sql, number)
                        (sql.rollback if self._chance.random() < 0.1 else sql.commit)()
                        time.sleep(self._chance.random() * 0.01)
            except psycopg.Error:
                time.sleep(0.05)

    def _pay(self, sql: psycopg.Connection, number: int) -> None:
        account, amount = self._chance.randrange(20), self._chance.randrange(1, 100)
        sql.execute("INSERT INTO payments VALUES (%s, %s, %s)", [number, account, amount])
        sql.execute(
            "INSERT INTO accounts VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET balance = accounts.balance + %s",
            [account, amount, amount],
        )

    def end(self) -> None:
        self._end.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the clients do not end"
