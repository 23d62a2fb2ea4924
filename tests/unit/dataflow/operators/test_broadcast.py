"""Tests of `broadcast`."""

from __future__ import annotations

from tests.unit.dataflow.running import collect, on_workers, only_on_the_first


@on_workers
def test_every_worker_gets_every_record(workers: int) -> None:
    found = collect(lambda scope: only_on_the_first(scope, range(4)).broadcast(), workers)
    assert found == [[((0,), number) for number in range(4)]] * workers
