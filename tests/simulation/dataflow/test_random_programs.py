"""Whole workers under random schedules: never ahead of the truth, over when it is over, and the same answer always."""

from __future__ import annotations

import pytest

from tests.simulation.dataflow.model import simulate
from tests.simulation.trace import TracedNetwork
from tests.thorough import examples
from timely.communication.message import Data, Message, ProgressUpdate
from timely.progress.protocol import Protocol
from timely.progress.reachability import Tracker

PROGRAMS = examples(12)
"""`python -m tests.simulation` runs any number."""


def simulate_many(peers: int, mode: str) -> None:
    for program in range(20):
        simulate(peers, mode, program, 0)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["demand", "eager"])
@pytest.mark.parametrize("peers", [2, 3, pytest.param(4, marks=pytest.mark.lengthy)])
def test_no_worker_is_ahead_every_run_drains_and_the_answer_is_that_of_one_worker(peers: int, mode: str) -> None:
    checks = records = 0
    for program in range(1000 * peers, 1000 * peers + PROGRAMS):
        alone = simulate(1, mode, program, 0)
        for schedule in range(2):
            cluster = simulate(peers, mode, program, schedule)
            assert cluster.found == alone.found, f"program {program}, schedule {schedule}"
            checks += cluster.checks
            records += len(cluster.found)
    assert checks > 300 * PROGRAMS
    assert records > 10 * PROGRAMS


@pytest.mark.parametrize(
    ("peers", "workers", "accumulation"), [(4, 2, "process"), (4, 2, "cluster"), (3, 1, "cluster")]
)
def test_workers_that_accumulate_progress_are_not_ahead_and_give_the_same_answer(
    peers: int, workers: int, accumulation: str
) -> None:
    checks = 0
    for program in range(PROGRAMS):
        alone = simulate(1, "demand", program, 0)
        cluster = simulate(peers, "demand", program, 1, workers, accumulation)
        assert cluster.found == alone.found, f"program {program}"
        checks += cluster.checks
    assert checks > 300 * PROGRAMS


@pytest.mark.interpreted
def test_a_worker_that_reports_an_end_too_early_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    flush = Protocol.flush

    def hasty(self: Protocol) -> object:
        batch = flush(self)
        return batch and tuple(change for change in batch if change[2] < 0)

    monkeypatch.setattr(Protocol, "flush", hasty)
    with pytest.raises(AssertionError, match="is ahead at"):
        simulate_many(3, "eager")


@pytest.mark.interpreted
def test_a_worker_that_never_reports_an_end_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tracker, "is_sole_holder", lambda *_: False)
    with pytest.raises(AssertionError, match="not all is over"):
        simulate_many(2, "demand")


@pytest.mark.composed
def test_progress_that_overtakes_the_batches_sent_before_it_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def overtaken(network: TracedNetwork, sender: int, receiver: int, message: Message) -> None:
        send(network, sender, receiver, message)
        if isinstance(message, ProgressUpdate):
            queue = network._in_flight[sender, receiver]
            behind = next((place for place, each in enumerate(queue) if isinstance(each, Data)), len(queue) - 1)
            queue.insert(behind, queue.pop())

    send = TracedNetwork.send
    monkeypatch.setattr(TracedNetwork, "send", overtaken)
    with pytest.raises(AssertionError, match=r"on its way to worker \d, where input 0 of .*add up what is drained"):
        simulate_many(2, "demand")
