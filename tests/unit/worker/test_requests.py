"""Chores: when a worker does them."""

from __future__ import annotations

import pytest

from timely import Config
from timely.worker.requests import QUIET_SECONDS, Requests

ADDRESSES = ("tcp://127.0.0.1:7101", "tcp://127.0.0.1:7111")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_without_other_processes_does_chores_whenever_no_operator_runs(workers: int) -> None:
    assert _done_at(QUIET_SECONDS / 2, Config(workers=workers)) == ["chore"]


def test_a_worker_with_peers_in_other_processes_waits_for_their_next_message_first() -> None:
    alone = Config(processes=2, addresses=ADDRESSES)
    assert _done_at(QUIET_SECONDS / 2, alone) == []
    assert _done_at(QUIET_SECONDS * 2, alone) == ["chore"]


def test_a_worker_that_shares_its_interpreter_does_not_wait_for_other_processes() -> None:
    assert _done_at(QUIET_SECONDS / 2, Config(processes=2, workers=2, addresses=ADDRESSES)) == ["chore"]


def _done_at(seconds: float, config: Config) -> list[str]:
    """Return which chores are done when the worker was busy so many seconds ago."""
    done: list[str] = []

    def chore() -> bool:
        done.append("chore")
        return False

    requests = Requests(lambda: None, config)
    requests.chores.append(chore)
    requests.busy_at = 100.0
    requests.tend(100.0 + seconds)
    assert bool(requests.chores) is not bool(done)
    return done
