"""The optimisation pass keeps the meaning of a plan, and a plain dataflow computes the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from differential import Collection
from differential.graphs import weakly_connected_components
from timely import Config, Exchange, Probe, Scope, Worker, execute, execute_directly, new_input
from timely.dataflow.compose import compose
from timely.dataflow.layout import plain
from timely.dataflow.plan import Plan
from timely.progress.graph import Edge, summaries_to

Build = Callable[[Scope], Probe]


def straight(scope: Scope) -> Probe:
    """Build functions in a row, an exchange and a count."""
    return scope.to_stream(range(9)).map(lambda x: x % 3).filter(lambda x: x > 0).exchange().count().probe()


def looped(scope: Scope) -> Probe:
    """Build a loop of functions that run in line, inside another loop."""
    with scope.iterative() as outer, outer.iterative() as inner:
        handle, again = inner.feedback()
        small, large = scope.to_stream([1, 2]).enter(inner).concat(again).map(lambda x: 2 * x).branch(lambda x: x > 9)
        small.connect_loop(handle)
        return large.leave(scope).probe()


def components(scope: Scope) -> Probe:
    """Build an iterative computation over collections."""
    edges = Collection.of(scope, np.array([1, 2, 5]), np.array([2, 3, 6]))
    return weakly_connected_components(edges).probe()


def planned(build: Build) -> Plan:
    def program(worker: Worker) -> Plan:
        with worker.dataflow() as scope:
            build(scope)
        return scope.dataflow.plan

    return execute_directly(program)


def minimal(plan: Plan, edges: list[Edge], target: int, sources: set[int]) -> dict[int, set[object]]:
    """Return the minimal summaries from the places `sources` to a place."""
    found = summaries_to(target, plan.width(target), edges)
    return {source: set(summaries) for source, summaries in found.items() if source in sources and summaries}


@pytest.mark.composed
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("build", [straight, looped, components])
def test_could_result_in_between_tracked_places_is_as_in_the_plan(build: Build, in_order: bool) -> None:
    plan = planned(build)
    layout = compose(plan, in_order=in_order, regions=False)
    tracked = set(layout.places)
    assert tracked < set(plain(plan).places)
    for target in tracked:
        assert minimal(plan, layout.edges, target, tracked) == minimal(plan, plan.edges, target, tracked)


@pytest.mark.composed
@pytest.mark.parametrize("build", [straight, components])
def test_an_input_that_is_counted_elsewhere_is_counted_at_a_place_that_is_tracked(build: Build) -> None:
    plan = planned(build)
    layout = compose(plan, in_order=True, regions=False)
    inlets = {inlet.place for node in plan.nodes if node.index not in layout.in_line for inlet in node.inlets}
    assert layout.counted_at
    assert {layout.counted_at.get(place, place) for place in inlets} <= set(layout.places)
    assert {place for sources in layout.followed.values() for place, _ in sources} <= set(layout.places)


@pytest.mark.composed
@pytest.mark.parametrize("build", [straight, looped, components])
def test_what_could_result_in_what_in_the_plan_still_could_with_regions(build: Build) -> None:
    plan = planned(build)
    layout = compose(plan, in_order=True, regions=True)
    tracked = {place for place in layout.places if place < len(plan.places)}
    regions = [sorted(node.name for node in region.section.nodes()) for region in layout.regions]
    if build is components:
        assert regions == [["alike", *["arrange"] * 5, "distinct", *["join_map"] * 2, *["min"] * 2]]
    else:
        assert not regions
    for target in tracked:
        found = summaries_to(target, plan.width(target), layout.edges)
        for source, summaries in minimal(plan, plan.edges, target, tracked).items():
            for summary in summaries:
                assert any(known.less_equal(summary) for known in found[source])  # type: ignore[arg-type]


def test_the_plain_layout_tracks_every_place_and_runs_nothing_in_line() -> None:
    plan = planned(looped)
    layout = plain(plan)
    assert (layout.places, layout.edges) == (list(range(len(plan.places))), plan.edges)
    assert not layout.counted_at
    assert not layout.followed
    assert not layout.in_line


@pytest.mark.parametrize("workers", [1, 2])
def test_a_plain_dataflow_runs_its_functions_as_operators_and_computes_the_same(workers: int) -> None:
    def program(worker: Worker) -> tuple[int, list[object]]:
        received: list[object] = []
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            routed = stream.map(lambda x: x + 1).unary(Exchange(), lambda i, o: [o.give(*each) for each in i] and None)
            probe = routed.inspect(received.append).probe()
        operators = len(scope.dataflow.plan.nodes)
        numbers.send(list(range(worker.index, 10, worker.peers)))
        numbers.close()
        worker.step_while(lambda: not probe.done())
        return operators, received

    ways = [execute(program, Config(workers=workers, plain=is_plain)) for is_plain in (False, True)]
    composed, in_plain = (sorted(str(each) for _, kept in way for each in kept) for way in ways)
    assert composed == in_plain == sorted(map(str, range(1, 11)))
    assert ways[0][0][0] + 2 == ways[1][0][0], "map and inspect are operators of their own"
