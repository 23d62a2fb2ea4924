"""Static operators of a lone worker run in regions, and mean what they mean with the tracker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import differential.operators.join_arrangements as joining
import timely.dataflow.region as regions
from differential import Collection, Variable, new_input
from differential.graphs import bfs, strongly_connected_components, weakly_connected_components
from tests.oracle import running, scenario
from timely import Capability, Columns, Config, Pipeline, Scope, Stream, Worker, execute, new_input as new_stream
from timely.dataflow.builder import OperatorBuilder
from timely.errors import OperatorError, UnsettledError
from timely.observe.events import CapabilityMade, MessageReceived, ScheduleStarted

Definition = Callable[[Collection], Collection]
Update = tuple[tuple[Any, ...], tuple[int, ...], int]

DEFINITIONS: dict[str, Definition] = {
    "bfs": lambda edges: bfs(edges, Collection.of(edges.scope, 0)),
    "components": weakly_connected_components,
    "strong components": strongly_connected_components,
    "degrees": lambda edges: edges.map(lambda a, b: a).count().map(lambda a, n: n).count(),
    "loop of distinct": lambda edges: edges.iterate(
        lambda inner: inner.map(lambda a, b: (b, a)).join_map(edges, lambda b, a, c: (a, c)).concat(edges).distinct()
    ),
}


def both_ways(program: Callable[[Worker], Any]) -> list[Any]:
    """Return the results in regions and with the tracker alone."""
    return [execute(program, Config(general=general))[0] for general in (False, True)]


def members(scope: Scope) -> list[list[str]]:
    return [[member.name for member in region.members] for region in scope.dataflow.regions]


@pytest.mark.composed
def test_a_loop_and_what_is_around_it_is_one_region_of_one_tracked_place() -> None:
    def program(worker: Worker) -> tuple[list[list[str]], int, int]:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            bfs(edges, Collection.of(scope, 0)).output()
        session.close()
        return members(scope), len(scope.dataflow.schedule.operators), len(scope.dataflow.tracker.fronts())

    (found, scheduled, tracked), general = both_ways(program)
    assert sorted(found[0]) == ["arrange", "arrange", "join_map", "min", "output"]
    assert (len(found), scheduled, tracked) == (1, 3, 3), "the region beside the input and the constant"
    assert general[0] == []
    assert general[1] == 7


@pytest.mark.composed
def test_what_waits_for_different_inputs_is_final_by_itself() -> None:
    def program(worker: Worker) -> object:
        with worker.dataflow() as scope:
            (fast, one), (slow, other) = new_input(scope, name="fast"), new_input(scope, name="slow")
            ahead = one.count().output()
            together = one.join(other).count().output()
        fast.insert(1, 2)
        fast.advance_to(5)
        worker.step_while(lambda: ahead.less_than(5))
        assert together.less_than(1)
        slow.insert(1, 3)
        slow.advance_to(1)
        worker.step_while(lambda: together.less_than(1))
        fast.close()
        slow.close()
        return members(scope), ahead.contents(), together.contents()

    (found, *contents), (_, *general) = both_ways(program)
    assert len(found) == 2
    assert contents == general == [{(1, 1): 1}, {(1, 1): 1}]


@pytest.mark.composed
def test_a_foreign_operator_divides_a_scope_and_a_probe_keeps_a_loop_general() -> None:
    def program(worker: Worker) -> list[list[str]]:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            counted = numbers.count().map(lambda a, n: n).distinct()
            passed = counted.stream.unary(
                Pipeline(), lambda input, output: [output.give(*each) for each in input] and None
            )
            Collection(passed).count().map(lambda a, n: n).distinct().output()
            with scope.iterative() as loop:
                value = Variable(loop, numbers)
                value.collection.distinct().stream.probe()
                value.set(value.collection.distinct())
        session.close()
        return members(scope)

    found, _ = both_ways(program)
    assert sorted(map(sorted, found))[0] == ["arrange", "arrange", "count", "distinct"]
    assert all("probe" not in each for each in found)


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(sorted(DEFINITIONS)),
    outer=st.sampled_from([1, 2]),
    changes=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)), max_size=12
    ),
    steps=st.integers(0, 3),
)
def test_all_changes_at_all_times_are_those_of_the_general_path(
    name: str, outer: int, changes: list[tuple[int, int, int, int]], steps: int
) -> None:
    if outer == 2 and name == "bfs":
        name = "components"

    def program(worker: Worker) -> list[Update]:
        with worker.dataflow(outer=outer) as scope:
            session, edges = new_input(scope)
            output = DEFINITIONS[name](edges).output()
        for a, b, *time in changes:
            session.update_at(a, b, time=tuple(time)[:outer])
            for _ in range(steps):
                worker.step()
        session.close()
        worker.step_while(lambda: not output.done())
        return sorted(output.changes())

    region, general = both_ways(program)
    assert region == general


def test_a_thousand_open_epochs_go_round_together() -> None:
    def program(worker: Worker) -> tuple[list[Update], int]:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            answer = bfs(edges, Collection.of(scope, 0))
            batches: list[int] = []
            answer.stream.inspect_batch(lambda _, batch: batches.append(len(batch)))
            output = answer.output()
        for epoch in range(1000):
            session.update_at(epoch % 7, epoch % 5, time=epoch)
        session.close()
        worker.step_while(lambda: not output.done())
        return sorted(output.changes()), len(batches)

    (region, emitted), (general, _) = both_ways(program)
    assert region == general
    assert emitted < 20


def test_pairs_are_consumed_piece_by_piece_inside_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "ROWS_PER_BATCH", 16)

    def program(worker: Worker) -> tuple[dict[Any, int], int]:
        largest = 0

        def look(_: Any, batch: Any) -> None:
            nonlocal largest
            largest = max(largest, len(batch))

        with worker.dataflow() as scope:
            session, left = new_input(scope)
            pairs = left.join_map(left, lambda key, a, b: (a, b))
            pairs.stream.inspect_batch(look)
            output = pairs.map(lambda a, b: a).count().output()
        session.insert(np.ones(40, np.int64), np.arange(40))
        session.close()
        worker.step_while(lambda: not output.done())
        return output.contents(), largest

    (found, largest), (general, _) = both_ways(program)
    assert found == general == {(each, 40): 1 for each in range(40)}
    assert largest < 40 * 40 / 4


@pytest.mark.composed
def test_two_operators_of_a_region_that_wait_for_room_both_go_on() -> None:
    pieces = 60

    def spout(stream: Stream) -> Stream:
        """Emit many pieces for each message, and none while there is no room for it."""
        builder = OperatorBuilder(stream.scope, "spout", static=True)
        input = builder.add_input(stream, Pipeline(), drains=True)
        output, emitted = builder.add_output()
        left: list[tuple[Capability, int]] = []

        def logic() -> None:
            left.extend((capability.retain(), piece) for capability, _ in input for piece in range(pieces))
            while left and not builder.operator.must_wait():
                capability, piece = left.pop()
                output.give(capability, Columns((np.full(500, piece),)))
                capability.drop()

        builder.build(lambda _: logic)
        return emitted

    def program(worker: Worker) -> tuple[int, list[list[str]]]:
        with worker.dataflow() as scope:
            numbers, stream = new_stream(scope)
            found: list[int] = []
            for _ in range(2):
                spout(stream).unary(
                    Pipeline(), lambda input, _: found.extend(len(batch) for _, batch in input), name="slow"
                )
        numbers.send(1)
        numbers.close()
        for _ in range(1000):
            worker.step()
        return len(found), members(scope)

    for general in (False, True):
        received, found = execute(program, Config(general=general, queue_bytes=1 << 16))[0]
        assert received == 2 * pieces
        assert found == ([] if general else [["spout", "spout"]])


def test_a_region_pauses_between_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "PATIENCE", -1.0)

    def program(worker: Worker) -> tuple[int, dict[Any, int]]:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            output = bfs(edges, Collection.of(scope, 0)).output()
        session.insert(np.arange(200), np.arange(1, 201))
        session.advance_to(1)
        calls = 0

        def call() -> None:
            nonlocal calls
            calls += 1
            if output.less_than(1):
                worker.call(call)

        worker.call(call)
        worker.step_while(lambda: output.less_than(1))
        session.close()
        return calls, output.contents()

    (calls, found), (_, general) = both_ways(program)
    assert found == general
    assert calls > 10, "the worker made calls while the loop went round"


def test_an_error_in_a_region_names_the_operator_and_its_time_and_a_limit_holds() -> None:
    def failing(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            numbers.count().reduce(lambda groups: 1 / 0).output()
        session.insert(1, 2)
        session.advance_to(3)
        worker.step()

    def endless(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            numbers.iterate(lambda inner: inner.map(lambda a: a + 1), limit=9).output()
        session.insert(1)
        session.close()
        while worker.step():
            pass

    texts = []
    for general in (False, True):
        with pytest.raises(
            OperatorError, match=r"operator 'reduce' failed at time \(0,\).*ZeroDivisionError"
        ) as raised:
            execute(failing, Config(general=general))
        with pytest.raises(OperatorError, match=r"operator 'iterate' failed at time \(0, 9\)") as unsettled:
            execute(endless, Config(general=general))
        assert isinstance(unsettled.value.__cause__, UnsettledError)
        texts.append((str(raised.value), str(unsettled.value)))
    assert texts[0] == texts[1]


def test_what_a_region_holds_is_explained_by_operator_and_line() -> None:
    def program(worker: Worker) -> tuple[str, str]:
        with worker.dataflow() as scope:
            session, edges = new_input(scope, name="edges")
            output = bfs(edges, Collection.of(scope, 0)).map(lambda node, distance: distance).count().output()
        session.update_at(0, 1, time=4)
        session.flush()
        worker.step()
        held = worker.explain()
        session.close()
        worker.step_while(lambda: not output.done())
        return held, worker.explain()

    (held, ended), _ = both_ways(program)
    assert "a capability for (0, 0) on output 0 of operator 'arrange' (built at " in held
    assert "(round 0 of 'dataflow/bfs')" in held
    assert "a capability for (0,) on output 0 of operator 'edges' (built at " in held
    assert "other workers" not in held
    assert ended == "all dataflows are complete"


def test_what_runs_in_a_region_is_logged() -> None:
    def program(worker: Worker) -> dict[str, int]:
        counts = {kind.__name__: 0 for kind in (ScheduleStarted, MessageReceived, CapabilityMade)}

        def listen(events: Any) -> None:
            for event in events:
                counts[type(event).__name__] += 1

        worker.log.listen(listen, ScheduleStarted, MessageReceived, CapabilityMade)
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            output = bfs(edges, Collection.of(scope, 0)).output()
        session.insert(np.arange(20), np.arange(1, 21))
        session.close()
        worker.step_while(lambda: not output.done())
        return counts

    region, general = both_ways(program)
    assert region["MessageReceived"] == general["MessageReceived"]
    assert region["ScheduleStarted"] > 40
    # One message at a time is answered without a capability: a region has more of these.
    assert 0 < region["CapabilityMade"] <= general["CapabilityMade"]


def test_a_trace_in_a_region_is_imported_while_updates_flow() -> None:
    def program(worker: Worker) -> dict[Any, int]:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            trace = edges.distinct().arrange_by_key().trace()
        session.insert(np.array([0, 1]), np.array([1, 2]))
        session.advance_to(1)
        worker.step()
        with worker.dataflow() as guest:
            output = bfs(trace.import_into(guest).as_collection(), Collection.of(guest, 0)).output()
        session.insert(2, 3)
        session.close()
        worker.step_while(lambda: not output.done())
        return output.contents()

    region, general = both_ways(program)
    assert region == general == {(node, node): 1 for node in range(4)}


def test_pairs_at_an_open_epoch_in_a_loop_are_emitted_to_the_last_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def patient() -> Iterator[None]:
        with tiny(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(regions, "PATIENCE", 60.0)
            yield

    tiny = scenario.tiny
    monkeypatch.setattr(scenario, "tiny", patient)
    monkeypatch.setattr(running, "STEPS", 3000)
    both = ("concat", ("input", 0), ("input", 1))
    loop = ("iterate", ("input", 2), ("concat", ("strong components", both), ("input", 2)))
    inner = ("bound", ("input", 1)), ("bound", ("input", 2)), ("bound", ("variable", 0)), ("bound", ("variable", 1))
    starts = ("bound", ("input", 0)), ("bound", ("input", 0))
    mutual = ("mutual", *starts, ("bound", ("mutual", *inner)), ("bound", ("input", 0)))
    edges = [((1, 0), (4,), 1), ((2, 3), (2,), 1), ((0, 1), (1,), 1), ((3, 0), (0,), 1)]
    scenario.check(
        scenario.Scenario(
            programs=[("from both ends", ("input", 1), loop), ("reachable", ("input", 1), mutual)],
            inputs=[[((1, 2), (1,), 1)], edges],
            tiny=True,
            seed=20744,
            upserts=[((2, 2), (1,))],
        )
    )


def test_a_frontier_that_moves_while_a_region_pauses_is_seen_after_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "PATIENCE", -1.0)

    def program(worker: Worker) -> dict[Any, int]:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            output = numbers.iterate(lambda inner: inner.map(lambda x: np.minimum(x + 1, 9)).concat(numbers).distinct())
            result = output.output()
        session.insert(0)
        session.advance_to(1)
        session.insert(100)
        session.flush()
        worker.step()  # the turn of epoch 0 pauses after a round, and has received what comes at epoch 1
        session.advance_to(2)
        for _ in range(200):
            worker.step()
        assert not result.less_than(2), "epoch 1 is complete outside, and nobody looks again"
        session.close()
        worker.step_while(lambda: not result.done())
        return result.contents()

    region, general = both_ways(program)
    assert region == general == {(number,): 1 for number in (*range(10), 100)}
