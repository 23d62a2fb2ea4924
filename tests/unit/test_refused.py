"""Well-formed messages without meaning are refused, counted and explained, and the run continues."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings, strategies as st

import timely
from benchmarks.simulated import SimulatedNetwork
from differential import new_input
from differential.data.updates import Updates
from tests.unit.communication.networks import ipc_configs, together
from timely import Capability, Columns, Config, OperatorBuilder, Pipeline, Worker, execute
from timely.communication.message import Data, Message, ProgressUpdate, Shape, StallAnswer, StallQuestion, Taken
from timely.dataflow.dataflow import Dataflow
from timely.errors import OperatorError
from timely.order import Time
from timely.run.execute import local_allocators, run
from timely.worker.status import report

RECORDS = list(range(20))
FAR = 1 << 40


def wrong(kind: str, dataflow: Dataflow) -> Message:
    """Return a message that no peer with the same dataflow sends."""
    spread = next(port for port in dataflow.channels if port.pact.name == "exchange")
    queued = next(port for port in dataflow.channels if port.operator.name == "drain")
    batch = [1, 2, 3]
    messages: dict[str, Message] = {
        "a batch to no channel": Data(0, FAR, (0,), batch),
        "a batch to a channel within workers": Data(0, queued.channel, (0,), batch),
        "a batch at a time of another scope": Data(0, spread.channel, (0, 0), batch),
        "a batch at no time": Data(0, spread.channel, (), batch),
        "updates at times of another scope": Data(0, spread.channel, (0,), Updates.at((0, 0), (np.arange(3),))),
        "updates before their batch": Data(0, spread.channel, (1,), Updates.at((0,), (np.arange(3),))),
        "a batch of no dataflow": Data(FAR, 0, (0,), batch),
        "progress at no location": ProgressUpdate(0, ((spread.location, (0,), 1), (FAR, (0,), 1))),
        "progress before all locations": ProgressUpdate(0, ((-1, (0,), 1),)),
        "progress at a time of another scope": ProgressUpdate(
            0, ((spread.location, (0,), 1), (spread.location, (0, 7), -1))
        ),
        "progress at no time": ProgressUpdate(0, ((spread.location, (), 1),)),
        "progress of no dataflow": ProgressUpdate(FAR, ((0, (0,), 1),)),
        "taken from no channel": Taken(((0, FAR, 1),)),
        "taken from a channel within workers": Taken(((0, queued.channel, 1),)),
        "taken from no dataflow": Taken(((FAR, 0, 1),)),
        "more taken than sent": Taken(((0, spread.channel, 1000),)),
        "a shape announced again": Shape(0, b"digest", ()),
        "the shape of no dataflow": Shape(FAR, b"digest", ()),
        "a question about no location": StallQuestion(1, 0, FAR, (0,)),
        "a question about a time of another scope": StallQuestion(1, 0, spread.location, (0, 0)),
    }
    return messages[kind]


REASONS = {
    "a batch to no channel": rf"sent a batch to channel {FAR} of dataflow 0 \('numbers'\), which has \d+$",
    "a batch to a channel within workers": r"sent a batch to .*'drain'.*takes nothing from other workers",
    "a batch at a time of another scope": r"at \(0, 0\) to channel .*'exchange'.*whose times have 1 coordinate$",
    "a batch at no time": r"at \(\) to channel",
    "updates at times of another scope": r"a batch at \(0,\) to channel .*'exchange'.*, with updates at other times$",
    "updates before their batch": r"a batch at \(1,\) to channel .*'exchange'.*, with updates at other times$",
    "a batch of no dataflow": rf"sent a batch of dataflow {FAR}, which it has not built",
    "progress at no location": rf"reported progress at \(0,\) at location {FAR} of dataflow 0 .*, which has \d+$",
    "progress before all locations": r"at location -1 of dataflow 0",
    "progress at a time of another scope": r"at \(0, 7\) at location .*operator.*, whose times have 1 coordinate$",
    "progress at no time": r"at \(\) at location",
    "progress of no dataflow": rf"sent progress of dataflow {FAR}, which it has not built",
    "taken from no channel": rf"took messages of channel {FAR}",
    "taken from a channel within workers": r"took messages of .*'drain'.*takes nothing from other workers",
    "taken from no dataflow": rf"took messages of dataflow {FAR}",
    "more taken than sent": r"took 1000 messages of channel",
    "a shape announced again": r"announced the shape of dataflow 0, but that of dataflow 1 is next",
    "the shape of no dataflow": rf"announced the shape of dataflow {FAR}",
    "a question about no location": rf"asked about \(0,\) at location {FAR}",
    "a question about a time of another scope": r"asked about \(0, 0\) at location",
}


Outcome = tuple[list[int], int, str]


def numbers(worker: Worker, kind: str) -> Outcome:
    """Spread numbers while worker 1 sends a wrong message. Return the numbers on this worker, and its refusals."""
    found: list[int] = []
    with worker.dataflow("numbers") as scope:
        handle, stream = timely.new_input(scope)
        builder = OperatorBuilder(scope, "drain")  # the first channel, which stays within a worker
        drained = builder.add_input(stream, Pipeline(), drains=True)
        builder.build(lambda capabilities: lambda: [*drained.drain()].clear())
        probe = stream.exchange().inspect(found.append).probe()
    if worker.index == 1:
        worker.allocator.send(0, wrong(kind, scope.dataflow))
    handle.send_batch(RECORDS)
    handle.close()
    worker.step_while(lambda: not probe.done())
    return found, worker.allocator.refused, worker.allocator.last_refusal


def check(kind: str, outcomes: list[Outcome]) -> None:
    """Assert that the numbers are right, and that only worker 0 refused a message, for the expected reason."""
    (first, refused, reason), (second, none, no_reason) = outcomes
    assert sorted(first + second) == sorted(2 * RECORDS)
    assert (refused, none, no_reason) == (1, 0, "")
    assert reason.startswith("worker 1 ")
    assert re.search(REASONS[kind], reason), reason


@pytest.mark.parametrize("kind", REASONS)
def test_a_meaningless_message_is_refused_with_the_reason_and_the_answer_is_right(kind: str) -> None:
    check(kind, execute(lambda worker: numbers(worker, kind), Config(workers=2)))


def in_processes(settings: list[Config], program: Callable[[Worker], Outcome]) -> list[Outcome]:
    """Run a program on the workers of several processes, on threads in place of processes; return its results."""
    found: dict[int, Outcome] = {}

    def noting(worker: Worker) -> None:
        found[worker.index] = program(worker)

    allocators = [allocator for config in settings for allocator in local_allocators(config)]
    owners = [config for config in settings for _ in range(config.workers)]
    actions = [partial(run, allocator, noting, config) for allocator, config in zip(allocators, owners, strict=True)]
    assert together(actions) == [None] * len(actions)
    return [found[index] for index in range(len(allocators))]


BATCHES = {
    "list": [(1, 2)],
    "columns": Columns((np.array([1]), np.array([2]))),
    "updates": Updates.at((0, 0), (np.array([1]), np.array([2]))),
}


@pytest.mark.parametrize("pact", ["by the first column", "gather at 0"])
@pytest.mark.parametrize("kind", BATCHES)
def test_a_batch_other_than_updates_at_times_of_the_scope_is_refused(kind: str, pact: str) -> None:
    def program(worker: Worker) -> tuple[Any, int, str]:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            answer = numbers.count().output()
        if worker.index == 1:
            channel = next(port.channel for port in scope.dataflow.channels if port.pact.name == pact)
            worker.allocator.send(0, Data(0, channel, (0,), BATCHES[kind]))
        session.insert(np.arange(10) % 3)
        session.close()
        worker.step_while(lambda: not answer.done())
        return answer.contents(), worker.allocator.refused, worker.allocator.last_refusal

    (contents, refused, reason), (_, none, _) = execute(program, Config(workers=2))
    assert contents == {(0, 8): 1, (1, 6): 1, (2, 6): 1}
    assert (refused, none) == (1, 0)
    assert f"worker 1 sent a batch of kind '{kind}' to channel " in reason


@pytest.mark.parametrize("kind", ["a batch to no channel", "progress at no location", "a batch of no dataflow"])
def test_messages_of_an_authenticated_process_are_refused_in_the_same_way(kind: str, tmp_path: Path) -> None:
    check(kind, in_processes(ipc_configs(tmp_path), lambda worker: numbers(worker, kind)))


def test_columns_that_do_not_fit_are_an_error_that_names_operator_and_sender() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            answer = numbers.count().output()
            channel = next(port.channel for port in scope.dataflow.channels if port.pact.name == "by the first column")
        session.insert(np.arange(10))
        session.flush()
        worker.step()
        if worker.index == 1:
            worker.allocator.send(0, Data(0, channel, (0,), Updates.at((0,), (np.array([0.5]),))))
        session.close()
        worker.step_while(lambda: not answer.done())

    expected = r"operator 'arrange' failed .* on worker 0 of 2, after a batch from worker 1 .* held integers and now"
    with pytest.raises(OperatorError, match=expected):
        execute(program, Config(workers=2))


def test_progress_from_a_worker_for_which_others_report_is_refused(tmp_path: Path) -> None:
    def program(worker: Worker) -> Outcome:
        found: list[int] = []
        with worker.dataflow("numbers") as scope:
            handle, stream = timely.new_input(scope)
            probe = stream.exchange().inspect(found.append).probe()
        if worker.index == 3:
            worker.allocator.send(
                0, ProgressUpdate(0, ((0, (0,), 1),))
            )  # its process's first worker reports to worker 0
        handle.send_batch(RECORDS)
        handle.close()
        worker.step_while(lambda: not probe.done())
        return found, worker.allocator.refused, worker.allocator.last_refusal

    outcomes = in_processes(ipc_configs(tmp_path, workers=2), program)
    assert sorted(number for found, _, _ in outcomes for number in found) == sorted(4 * RECORDS)
    assert [refused for _, refused, _ in outcomes] == [1, 0, 0, 0]
    assert outcomes[0][2] == "worker 3 reported progress in dataflow 0 ('numbers'), which others report to this worker"


def test_explanations_and_reports_include_refused_messages() -> None:
    def program(worker: Worker) -> str:
        with worker.dataflow("numbers") as scope:
            timely.new_input(scope)
        if worker.index == 1:
            worker.allocator.send(0, Data(0, FAR, (0,), RECORDS))
        worker.step_while(lambda: worker.allocator.messages_received < (1 if worker.index else 2))
        return f"{worker.explain(patience=0)}\n{report()}" if worker.index == 0 else ""

    text = execute(program, Config(workers=2))[0]
    refusal = rf"worker 0 has refused 1 of the messages and connections .*: worker 1 sent a batch to channel {FAR} of"
    assert len(re.findall(refusal, text)) == 2


def test_messages_of_a_constructor_are_kept_until_the_dataflow_is_built_on_the_receiver() -> None:
    def program(worker: Worker) -> tuple[list[int], int]:
        found: list[int] = []
        if worker.index == 0:
            while worker.allocator.messages_received < 2:  # a batch, and then the shape
                worker.step_or_park(0.01)
        with worker.dataflow("numbers") as scope:
            builder = OperatorBuilder(scope, "source")
            output, stream = builder.add_output(initial=True)

            def construct(capabilities: list[Capability]) -> Callable[[], None]:
                with capabilities[0] as capability:
                    output.give(capability, RECORDS)
                return lambda: None

            builder.build(construct)
            probe = stream.exchange().inspect(found.append).probe()
        worker.step_while(lambda: not probe.done())
        return found, worker.allocator.refused

    (first, refused), (second, others) = execute(program, Config(workers=2))
    assert sorted(first + second) == sorted(2 * RECORDS)
    assert (refused, others) == (0, 0)


DATAFLOWS = st.sampled_from([0, 0, 0, 1, 2, FAR])
PLACES = st.sampled_from([-1, 0, 1, 2, 3, 4, 5, 6, 7, FAR])
TIMES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
MESSAGES = st.one_of(
    st.builds(Data, DATAFLOWS, PLACES, TIMES, st.just(RECORDS)),
    st.builds(ProgressUpdate, DATAFLOWS, st.lists(st.tuples(PLACES, TIMES, st.integers(-2, 2)), max_size=3).map(tuple)),
    st.builds(Taken, st.lists(st.tuples(DATAFLOWS, PLACES, st.integers(0, 2)), max_size=2).map(tuple)),
    st.builds(Shape, st.sampled_from([0, 2, FAR]), st.just(b"digest"), st.just(())),
    st.builds(StallQuestion, DATAFLOWS, DATAFLOWS, PLACES, TIMES),
    st.builds(StallAnswer, DATAFLOWS, st.just(("nothing",))),
)


def has_meaning(message: Message, dataflow: Dataflow) -> bool:
    """Return whether a peer may send this if it has built this dataflow, builds another, and was sent nothing."""
    spread = [port for port in dataflow.channels if port.pact.name == "exchange"]
    widths = {port.channel: port.operator.scope.width for port in spread}
    places = range(len(dataflow.tracker.fronts()))

    def is_place(location: int, time: Time) -> bool:
        return location in places and dataflow.scope_of(location).width == len(time)

    if isinstance(message, Data):
        return message.dataflow == 1 or (message.dataflow == 0 and widths.get(message.channel) == len(message.time))
    if isinstance(message, ProgressUpdate):
        places_are_right = all(is_place(location, time) for location, time, _ in message.changes)
        return message.dataflow == 1 or (message.dataflow == 0 and places_are_right)
    if isinstance(message, Taken):
        return all(number == 0 and place in widths and taken == 0 for number, place, taken in message.counts)
    if isinstance(message, StallQuestion):
        return message.dataflow > 0 or message.location == -1 or is_place(message.location, message.time)
    return isinstance(message, StallAnswer)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 2), MESSAGES), min_size=1, max_size=8))
def test_every_message_of_a_peer_is_accepted_or_refused_and_counted(messages: list[tuple[int, Message]]) -> None:
    network = SimulatedNetwork(peers=3, seed=1)
    workers = [Worker(allocator, Config(workers=3)) for allocator in network.allocators]
    for worker in workers:
        with worker.dataflow("loop") as scope, scope.iterative() as inner:
            handle, again = inner.feedback()
            numbers = scope.to_stream(RECORDS).exchange().enter(inner).concat(again).exchange()
            numbers.map(lambda x: x - 1).filter(lambda x: x > 0).connect_loop(handle)
            numbers.leave().exchange().probe()
    receiver = workers[0]
    while network.deliver_one():
        receiver.take_in()
    for sender, message in messages:
        network.allocators[sender].send(0, message)
    while network.deliver_one():
        receiver.take_in()
    dataflow = receiver.dataflows[0]
    refused = [message for _, message in messages if not has_meaning(message, dataflow)]
    event(f"{min(len(refused), 3)} refused, {min(len(messages) - len(refused), 3)} taken in")
    assert receiver.allocator.refused == len(refused)
    assert bool(receiver.allocator.last_refusal) == bool(refused)
