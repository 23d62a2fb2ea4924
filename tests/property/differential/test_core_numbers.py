"""Core numbers of graphs with hubs are those of networkx after every change, and a change at a hub costs little."""

from __future__ import annotations

from importlib import import_module
from random import Random
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection, Groups, Session, Variable
from differential.graphs import core_numbers
from tests.thorough import examples

Edge = tuple[int, int]

defined: Any = import_module("differential.graphs.core_numbers")  # in the package, the function has the module's name


def hubs_and_others(random: Random, hubs: int, leaves: int, others: int) -> list[Edge]:
    """Return the edges of hubs to some nodes each, and of others, which may lead to themselves or back."""
    nodes = hubs + leaves
    spokes = [(hub, node) for hub in range(hubs) for node in range(nodes) if random.random() < 0.8]
    return spokes + [(random.randrange(nodes), random.randrange(nodes)) for _ in range(others)]


@given(
    st.integers(0, 3),
    st.integers(1, 24),
    st.integers(0, 40),
    st.integers(1, 12),
    st.integers(1, 2),
    st.integers(0, 999),
)
@settings(max_examples=examples(15), deadline=None)
def test_core_numbers_with_hubs_are_those_of_networkx_after_every_change(
    hubs: int, leaves: int, others: int, changes: int, workers: int, seed: int
) -> None:
    random = Random(seed)
    edges = set(hubs_and_others(random, hubs, leaves, others))
    with Session(workers) as db:
        table = db.table("edges", {"source": int, "target": int})
        view = db.view("cores", lambda t: core_numbers(t.edges))
        table.insert(sorted(edges))
        for _ in range(changes):
            db.commit()
            graph = networkx.Graph([(source, target) for source, target in edges if source != target])
            assert view.records() == sorted(networkx.core_number(graph).items())
            for source, target in {(random.randrange(hubs + 1), random.randrange(hubs + leaves)) for _ in range(3)}:
                (table.delete if (source, target) in edges else table.insert)(source=source, target=target)
                edges ^= {(source, target)}
        db.rollback()


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33])
def test_core_numbers_of_a_hub_whose_degree_passes_a_power_of_two(degree: int) -> None:
    with Session() as db:
        table = db.table("edges", {"source": [0] * degree, "target": range(1, degree + 1)})
        view = db.view("cores", lambda t: core_numbers(t.edges))
        db.commit()
        for change in (lambda: table.insert(source=0, target=99), lambda: table.delete(source=0, target=99)) * 2:
            assert {number for _, number in view.records()} == {1}
            change()
            db.commit()
        assert {number for _, number in view.records()} == {1}


def test_bounds_are_the_least_powers_of_two_that_are_not_below() -> None:
    degrees = np.array([1, 2, 3, 4, 5, 8, 9, 1023, 1024, 1025, 2**52, 2**52 + 1])
    found = defined._power_of_two(degrees)
    assert found.dtype == np.int64
    assert found.tolist() == [1 << (degree - 1).bit_length() for degree in degrees.tolist()]


class Work:
    """How many messages a loop of core numbers sends, and how many nodes it computes the numbers of."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.messages = self.nodes = 0
        h_index = defined._h_index

        class Counted(Variable):
            def set(variable, collection: Collection) -> None:
                super().set(collection.inspect(self._sent))

        def counted(groups: Groups) -> Any:
            self.nodes += len(groups)
            return h_index(groups)

        patch.setattr(defined, "Variable", Counted)
        patch.setattr(defined, "_h_index", counted)

    def _sent(self, *update: object) -> None:
        self.messages += 1


@pytest.mark.parametrize("core", [0, 6])
def test_a_leaf_of_a_hub_costs_the_same_however_many_others_there_are(
    core: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, leaves = Work(monkeypatch), 3000
    clique = [(-one, -other) for one in range(core) for other in range(one)]
    with Session() as db:
        table = db.table("edges", {"source": int, "target": int})
        view = db.view("cores", lambda t: core_numbers(t.edges))
        table.insert([*clique, *[(0, leaf) for leaf in range(1, leaves + 1)]])
        db.commit()
        assert dict(view.records())[0] == max(1, core - 1)
        for change in (lambda: table.delete(source=0, target=7), lambda: table.insert(source=0, target=7)):
            work.messages = work.nodes = 0
            change()
            db.commit()
            assert dict(view.records()).get(7) == (1 if len(view) == leaves + max(1, core) else None)
            assert 0 < work.nodes <= 6
            assert 0 < work.messages <= 6
