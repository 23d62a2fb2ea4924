"""Searches from both ends find the distances of brute force, at every time, and stop where they meet."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from differential import Collection
from differential.graphs import bidirectional_search
from tests.oracle.grid import Multiset, Update, check
from tests.property.differential.test_paths import NODES, edits
from timely import Worker, execute_directly
from timely.accounting import Account


def distances(edges: Multiset, goals: Multiset) -> dict[Any, int]:
    """Return each goal that is joined by a path, with the least number of edges, by relaxing all as often as needed."""
    far = len(NODES)
    least = {(a, b): 0 if a == b else far for a in NODES for b in NODES}
    for _ in NODES:
        for source, target in edges:
            for node in NODES:
                least[node, target] = min(least[node, target], least[node, source] + 1)
    return {(*goal, least[goal]): 1 for goal in goals if least[goal] < far}


@given(edges=edits(), goals=edits(), workers=st.integers(1, 3), seed=st.integers(0, 999))
@settings(max_examples=30, deadline=None)
def test_the_distances_of_the_goals_are_those_of_brute_force(
    edges: list[Update], goals: list[Update], workers: int, seed: int
) -> None:
    check(bidirectional_search, distances, edges, goals, workers=workers, seed=seed)


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


def test_a_goal_that_is_met_is_not_searched_for_any_further() -> None:
    assert 0 < edges_seen(1000) == edges_seen(30)
