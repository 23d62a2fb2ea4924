"""A program, and its server, that are killed again and again: every transaction counts once, on both sides."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from differential.durable import Directory, Shard
from tests.integration.postgresql.server import Server

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
from tests.integration.postgresql.clients import Clients  # noqa: E402

PROGRAM = Path(__file__).with_name("answering.py")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.mark.parametrize("seed", range(2))
def test_each_transaction_counts_once_however_often_programs_are_killed(
    server: Server, dsn: str, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE accounts (id int PRIMARY KEY, balance int)")
        sql.execute("CREATE TABLE payments (number int PRIMARY KEY, account int, amount int)")
    clients = Clients(dsn, seed)
    try:
        for attempt in range(10):
            with subprocess.Popen([sys.executable, str(PROGRAM), dsn, str(tmp_path)], stdout=subprocess.PIPE) as child:
                try:
                    assert child.stdout is not None
                    if chance.random() < 0.8:
                        assert child.stdout.readline() == b"begins\n", "the program has ended"
                    time.sleep(chance.random())
                    if attempt % 3 == 2:
                        server.kill()
                        server.start()
                        time.sleep(chance.random())
                finally:
                    child.kill()
    finally:
        clients.end()
    with psycopg.connect(dsn, autocommit=True) as sql:
        sent = sql.execute("SELECT account, sum(amount) FROM payments GROUP BY 1 ORDER BY 1").fetchall()
        assert sum(amount for _, amount in sent) > 1000
        with subprocess.Popen([sys.executable, str(PROGRAM), dsn, str(tmp_path)]) as child:
            try:
                end, found = time.monotonic() + 60, []
                while found != sent:
                    assert time.monotonic() < end, f"{found} instead of {sent}"
                    time.sleep(0.2)
                    found = sql.execute("SELECT * FROM paid ORDER BY 1").fetchall()
                (tmp_path / "end").touch()
                assert child.wait(60) == 0
            finally:
                child.kill()
        assert sql.execute("SELECT * FROM paid ORDER BY 1").fetchall() == sent
    place = Directory(str(tmp_path / "db"))
    assert not (tmp_path / "torn").exists(), (tmp_path / "torn").read_text()
    assert sorted(Shard("accounts", place.store("accounts")).read()) == sent
