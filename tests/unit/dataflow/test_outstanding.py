"""Messages sent but not taken: how much workers owe, when it is too much, and when taken messages are reported."""

from __future__ import annotations

import pytest

from timely.communication.message import Taken
from timely.dataflow.outstanding import Ledger, Outstanding
from timely.errors import FrameError

Reports = list[tuple[int, Taken]]


def outstanding(queue_bytes: int = 800) -> tuple[Outstanding, Ledger, Reports]:
    """Return the outstanding messages of worker 0 of two, the ledger of one channel, and the reports of worker 0."""
    reports: Reports = []
    whole = Outstanding(2, queue_bytes, lambda peer, taken: reports.append((peer, taken)))
    return whole, Ledger(whole, 0, 2, 3, 4), reports


def test_a_worker_that_owes_more_than_its_share_is_over_the_bound() -> None:
    whole, ledger, _ = outstanding()
    assert (whole.share, whole.allowance, whole.quantum) == (400, 100, 50)
    ledger.send(1, 400)
    assert (ledger.owed, whole.over) == ([0, 400], set())
    ledger.send(1, 401)
    ledger.send(1, 400)
    assert (ledger.owed, whole.over) == ([0, 1201], {1})
    ledger.settle(1, 1)
    assert (ledger.owed, whole.over) == ([0, 801], {1})
    ledger.settle(1, 1)
    assert (ledger.owed, whole.over) == ([0, 400], set())


def test_a_share_is_at_least_a_byte() -> None:
    assert outstanding(1)[0].share == 1


def test_an_operator_that_drains_its_input_takes_more_bytes_as_one_batch() -> None:
    whole, _, _ = outstanding(1 << 20)
    assert (whole.joined(drains=True), whole.joined(drains=False)) == (1 << 16, 1 << 12)
    whole, _, _ = outstanding(1 << 10)
    assert whole.joined(drains=True) == whole.joined(drains=False) == 1 << 6


def test_taken_messages_are_reported_once_they_exceed_the_quantum() -> None:
    _, ledger, reports = outstanding()
    for size in (50, 1, 51):
        assert len(reports) == (size == 51)
        ledger.queue(1, size)
        ledger.take()
    assert reports == [(1, Taken(((3, 4, 2),))), (1, Taken(((3, 4, 1),)))]


def test_a_message_taken_before_an_older_one_of_its_sender_is_reported_after_it() -> None:
    _, ledger, reports = outstanding(8)  # each message is reported by itself
    for sender, size in ((1, 60), (0, 10), (1, 70), (1, 80)):
        ledger.queue(sender, size)
    ledger.sort([2, 1, 3, 0])
    ledger.take()
    ledger.take()
    ledger.take()
    assert (reports, list(ledger.sizes())) == ([], [60])
    ledger.take()
    assert reports == 3 * [(1, Taken(((3, 4, 1),)))]


def test_a_closed_ledger_owes_nothing_and_has_taken_everything() -> None:
    whole, ledger, reports = outstanding()
    ledger.queue(0, 500)
    ledger.queue(1, 60)
    ledger.send(1, 500)
    assert (ledger.owed, whole.over) == ([500, 500], {0, 1})
    ledger.close()
    assert (ledger.owed, whole.over, reports) == ([0, 0], set(), [(1, Taken(((3, 4, 1),)))])
    with pytest.raises(FrameError, match="has 0"):
        ledger.settle(1, 1)
