"""What a process prints while its workers wait for their peers."""

from __future__ import annotations

from typing import Any, cast

import pytest

from timely.communication.link import Link
from timely.communication.meeting import Waiting


class Peer:
    """A stand-in for the link to a worker of another process."""

    def __init__(self, peer: int) -> None:
        self.peer = peer

    def state(self, now: float) -> str:
        return "nobody listens there"

    def __str__(self) -> str:
        return f"process {self.peer // 2} (worker {self.peer})"


def links(*peers: int) -> list[Link]:
    return [cast(Any, Peer(peer)) for peer in peers]


def test_a_line_every_four_seconds_names_whom_all_workers_wait_for(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = Waiting(0)
    printed = []
    for now in (100.0, 103.9, 104.0, 104.1, 107.9, 108.0, 125.0, 127.9, 128.0):
        waiting.note(0, links(2, 3), now)
        waiting.note(1, links(3), now)
        printed.append(capsys.readouterr().err.count("\n"))
    assert printed == [0, 0, 1, 0, 0, 1, 1, 0, 1]


def test_each_missing_peer_is_named_once_with_its_address_and_state(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = Waiting(0)
    waiting.note(1, links(3), 100.0)
    waiting.note(0, links(3, 2), 104.0)
    peers = "process 1 (worker 2): nobody listens there; process 1 (worker 3): nobody listens there"
    assert capsys.readouterr().err == f"timely: process 0 has waited 4 s for its peers; {peers}\n"


def test_nothing_is_printed_when_all_have_met(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = Waiting(0)
    waiting.note(0, links(2), 100.0)
    waiting.note(0, [], 101.0)
    waiting.note(0, [], 106.0)
    assert capsys.readouterr().err == ""
