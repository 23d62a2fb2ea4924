"""Searches for pairs of nodes find the distances of brute force, at every time, and stop where they meet."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection
from differential.graphs import approximate_distances, bidirectional_search
from tests.oracle.graphs import FAR, lengths
from tests.oracle.grid import Multiset, Update, check
from tests.property.differential.test_paths import edits
from tests.thorough import examples
from timely import Worker, execute_directly
from timely.observe.accounts import Account

LANDMARKS = (1, 3)


def distances(edges: Multiset, goals: Multiset) -> dict[Any, int]:
    least = lengths(edges)
    return {(*goal, least[goal]): 1 for goal in goals if least[goal] < FAR}


def distances_by_way(edges: Multiset, goals: Multiset) -> dict[Any, int]:
    least = lengths(edges)
    by_way = {(a, b): min(least[a, node] + least[node, b] for node in LANDMARKS) for a, b in goals}
    return {(*goal, distance): 1 for goal, distance in by_way.items() if distance < FAR}


def by_way_of_landmarks(edges: Collection, goals: Collection) -> Collection:
    return approximate_distances(edges, Collection.of(edges.scope, np.array(LANDMARKS)), goals)


far_ones = edits().map(lambda goals: [((target, source), time, diff) for (source, target), time, diff in goals])
"""Goals against the direction of most edges."""

CASES = [(bidirectional_search, distances), (by_way_of_landmarks, distances_by_way)]


@pytest.mark.parametrize(("program", "meaning"), CASES, ids=["bidirectional", "landmarks"])
@given(edges=edits(), goals=far_ones, workers=st.integers(1, 3), seed=st.integers(0, 999))
@settings(max_examples=examples(20), deadline=None)
def test_the_distances_of_the_goals_are_those_of_brute_force(
    program: Any, meaning: Any, edges: list[Update], goals: list[Update], workers: int, seed: int
) -> None:
    check(program, meaning, edges, goals, workers=workers, seed=seed)


def test_the_shortest_of_the_paths_through_several_landmarks_is_reported() -> None:
    short, long = [(0, 1), (1, 4)], [(0, 3), (3, 2), (2, 4)]
    edges: list[Update] = [(edge, (0,), 1) for edge in short + long] + [((1, 4), (1,), -1)]
    goals: list[Update] = [((0, 4), (0,), 1)]
    assert distances_by_way(Counter(short + long), Counter([(0, 4)])) == {(0, 4, 2): 1}
    check(by_way_of_landmarks, distances_by_way, edges, goals)


def edges_seen(length: int) -> int:
    """Return how many rows the joins of a search along five edges of a line of that length make."""

    def program(worker: Worker) -> int:
        account = Account(worker)
        with worker.dataflow() as scope:
            line = Collection.of(scope, np.arange(length), np.arange(1, length + 1))
            answer = bidirectional_search(line, Collection.of(scope, 10, 15)).output()
        worker.step_while(lambda: not answer.done())
        assert answer.contents() == {(10, 15, 5): 1}
        return sum(each.records_out for each in account.operators() if "join" in each.name)

    return execute_directly(program)


def test_the_search_for_a_goal_ends_when_it_is_met() -> None:
    assert 0 < edges_seen(1000) == edges_seen(30)
