"""An input that drains the batches of all workers needs no place of its own if progress arrives after batches."""

from __future__ import annotations

import pytest

import timely
from benchmarks.simulated import SimulatedNetwork
from differential import InputSession, new_input
from timely import Config, Exchange, InputPort, OperatorBuilder, OutputPort, Probe, Stream, Worker


def drained(stream: Stream, *, drains: bool = True) -> tuple[InputPort, OutputPort, Stream]:
    builder = OperatorBuilder(stream.scope, "drained")
    input = builder.add_input(stream, Exchange(), frontier=True, drains=drains)
    output, result = builder.add_output()
    builder.build(lambda _: lambda: list(input.drain()).clear())
    return input, output, result


def place(peers: int, workers: int, accumulation: str, *, drains: bool = True) -> tuple[bool, int]:
    """Return whether the input is counted at the location of its output, and how many locations are tracked."""
    network = SimulatedNetwork(peers, seed=0)
    worker = Worker(network.allocators[0], Config(workers=workers, accumulation=accumulation))
    with worker.dataflow() as scope:
        input, output, _ = drained(timely.new_input(scope)[1], drains=drains)
    return input.location == output.location, len(scope.dataflow.tracker.fronts())


@pytest.mark.composed
@pytest.mark.parametrize(("peers", "workers", "accumulation"), [(2, 1, "process"), (2, 2, "process"), (4, 2, "worker")])
def test_it_is_counted_at_the_outputs_that_feed_it_if_every_worker_reports_to_every_other_one(
    peers: int, workers: int, accumulation: str
) -> None:
    assert place(peers, workers, accumulation) == (True, 2)


@pytest.mark.parametrize(("peers", "workers", "accumulation"), [(4, 2, "process"), (2, 1, "cluster")])
def test_it_has_a_place_if_other_workers_pass_progress_on(peers: int, workers: int, accumulation: str) -> None:
    assert place(peers, workers, accumulation) == (False, 3)


def test_it_has_a_place_if_messages_may_stay_in_its_queue() -> None:
    assert place(2, 1, "process", drains=False) == (False, 3)


def settle(network: SimulatedNetwork, workers: list[Worker], probes: list[Probe], epoch: int) -> None:
    """Deliver all messages and step all workers until all earlier epochs are complete."""
    while any(probe.less_than(epoch) for probe in probes):
        while network.deliver_one():
            pass
        for worker in workers:
            worker.step()


@pytest.mark.composed
def test_a_change_of_the_degrees_is_a_batch_for_each_exchange_and_three_reports_at_most() -> None:
    network = SimulatedNetwork(peers=2, seed=0)
    workers = [Worker(allocator, Config()) for allocator in network.allocators]
    sessions: list[InputSession] = []
    probes: list[Probe] = []
    for worker in workers:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            degrees = edges.map(lambda source, _: source).count()
            probes.append(degrees.map(lambda _, degree: degree).count().stream.probe())
            sessions.append(session)
    sent = []
    for epoch in range(20):
        sessions[0].insert(epoch, 7)
        sessions[0].insert(epoch // 2, 8)
        before = [worker.allocator.messages_sent for worker in workers]
        for session in sessions:
            session.advance_to(epoch + 1)
        settle(network, workers, probes, epoch + 1)
        sent.append([now.allocator.messages_sent - then for now, then in zip(workers, before)])
    # Each worker reports the end of its input's epoch, the degrees that have changed, and how many nodes have each
    # degree; only the first worker changes edges. If workers also reported that a batch was taken, there would be 106
    # and 88 messages. One message informs the other worker, once, of the kinds of columns that exchanged rows have.
    assert [max(each) for each in zip(*sent)] == [2 + 3, 1 + 3]
    assert [sum(each) for each in zip(*sent)] == [84, 60]
