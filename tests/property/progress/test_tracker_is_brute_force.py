"""The tracker, contraction and the check of cycles against following every path."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.invariants import check
from tests.oracle.progress import Frontiers, Graph, advances, at_or_before, simple_cycles
from tests.strategies_progress import check_cycles, graphs, pointstamps, times, updates
from tests.thorough import examples
from timely.errors import CycleError
from timely.progress.cycles import positions
from timely.progress.graph import Edge, contract, could_result_in
from timely.progress.reachability import Tracker
from timely.progress.summary import PathSummary

thorough = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@thorough
@given(graphs(valid=False, largest=6))
def test_a_graph_is_refused_exactly_if_one_of_its_cycles_does_not_advance(graph: Graph) -> None:
    if all(advances(cycle, graph.lengths[cycle[0].source]) for cycle in simple_cycles(graph.edges)):
        check_cycles(graph.edges)
    else:
        with pytest.raises(CycleError) as raised:
            check_cycles(graph.edges)
        named = str(raised.value).split("the cycle ")[1].split(" does not")[0].split(" -> ")
        steps = {(int(a), int(b)) for a, b in pairwise(named)}
        assert named[0] == named[-1]
        assert steps <= {(edge.source, edge.target) for edge in graph.edges}


@thorough
@given(st.data())
def test_keys_grow_along_every_edge(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    places = positions(len(graph.lengths), graph.edges)
    assert sorted(place.rank for place in places) == list(range(len(places)))

    def key(location: int, time: tuple[int, ...]) -> list[int]:
        components, coordinates = places[location]
        interleaved = [components[0]]
        for coordinate, component in zip(coordinates, components[1:], strict=True):
            interleaved += [time[coordinate], component]
        return interleaved

    for edge in graph.edges:
        time = data.draw(times(graph.lengths[edge.source], highest=9))
        result = edge.summary.results_in(time)
        assert result is not None
        assert key(edge.source, time) < key(edge.target, result)


@settings(thorough, max_examples=examples(60))
@given(st.data())
def test_frontiers_equal_those_of_following_every_path(data: st.DataObject) -> None:
    check_frontiers(data)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(thorough, max_examples=600)
@given(st.data())
def test_frontiers_equal_those_of_following_every_path_in_many_graphs(data: st.DataObject) -> None:
    check_frontiers(data)


def check_frontiers(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    oracle = Frontiers(graph)
    tracker = Tracker(graph.lengths, graph.edges)
    counts: Counter[tuple[int, tuple[int, ...]]] = Counter()
    before = oracle.of([])
    for _ in range(data.draw(st.integers(1, 6))):
        for location, time, diff in data.draw(updates(graph)):
            tracker.update(location, time, diff)
            counts[location, time] += diff
        if data.draw(st.booleans()):
            # Everything that is alive is removed at once: then the changes of a loop could sustain themselves.
            for location, time in list(counts):
                tracker.update(location, time, -counts.pop((location, time)))
        changed = tracker.propagate()
        expected = oracle.of(stamp for stamp, count in counts.items() if count > 0)
        assert [set(tracker.frontier(place)) for place in range(len(graph.lengths))] == expected
        assert sorted(changed) == [place for place, frontier in enumerate(expected) if frontier != before[place]]
        assert {(*stamp, count) for stamp, count in counts.items() if count} == set(tracker.pointstamps())
        check(tracker)
        before = expected


@thorough
@given(st.data())
def test_holders_are_the_live_pointstamps_that_reach_the_time(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    oracle = Frontiers(graph)
    tracker = Tracker(graph.lengths, graph.edges)
    for location, time, diff in data.draw(updates(graph)):
        tracker.update(location, time, diff)
    tracker.propagate()
    location, time = data.draw(pointstamps(graph))
    holding = [
        (holder, at, count)
        for holder, at, count in tracker.pointstamps()
        if count > 0 and any(at_or_before(result, time) for result in oracle.results(holder, at)[location])
    ]
    assert sorted(tracker.holders(location, time)) == sorted(holding)
    assert tracker.frontier(location).less_equal(time) == bool(holding)
    for holder, at, _ in holding:
        assert tracker.holding(location, time)(holder, at)


@thorough
@given(st.data())
def test_a_pointstamp_could_result_in_another_exactly_if_a_path_leads_there_in_time(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    source, target = data.draw(pointstamps(graph)), data.draw(pointstamps(graph))
    results = Frontiers(graph).results(*source)[target[0]]
    assert could_result_in(graph.edges, source, target) == any(at_or_before(time, target[1]) for time in results)


@thorough
@given(st.data())
def test_contraction_keeps_could_result_in_between_what_remains(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    keep = data.draw(st.sets(st.integers(0, len(graph.lengths) - 1), min_size=1))
    most = data.draw(st.none() | st.integers(-3, 3))
    contracted = contract(graph.edges, keep, most=most)
    if most is None:
        assert {place for edge in contracted for place in edge[:2]} <= keep
    check_cycles(contracted)
    whole, rest = Frontiers(graph), Frontiers(Graph(graph.lengths, contracted))
    for place in keep:
        time = data.draw(times(graph.lengths[place]))
        assert [whole.results(place, time)[other] for other in keep] == [
            rest.results(place, time)[other] for other in keep
        ]


def test_a_contracted_path_may_append_more_than_any_edge_adds() -> None:
    into, on = PathSummary.enter(1), PathSummary.feedback(2, 2)
    graph = Graph([1, 2, 2], [Edge(0, 1, into), Edge(1, 2, on)])
    rest = Frontiers(Graph(graph.lengths, contract(graph.edges, {0, 2})))
    assert rest.results(0, (0,))[2] == Frontiers(graph).results(0, (0,))[2] == {(0, 2)}
