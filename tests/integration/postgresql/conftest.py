"""A server for the tests of a run, and a database of its own for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.integration.postgresql.server import Server, installed

_numbers = count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = installed()
    if programs is None:
        pytest.skip("PostgreSQL is not installed, and cannot be")
    running = Server(programs)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def dsn(server: Server) -> Iterator[str]:
    """A new database; its slots are dropped at the end."""
    import psycopg

    name = f"test_{next(_numbers)}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield server.dsn.replace("dbname=postgres", f"dbname={name}")
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = %s AND active", [name]
        )
        for _ in range(50):
            try:
                connection.execute(
                    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s", [name]
                )
                break
            except psycopg.errors.ObjectInUse:
                connection.execute("SELECT pg_sleep(0.1)")
