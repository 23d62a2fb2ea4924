"""Components of graphs whose labels are hashes: these differ, and each enters in a round that depends on it alone."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection, example, new_input
from differential.graphs import labels, strongly_connected_components, weakly_connected_components
from differential.graphs.components import ROUNDS_PER_CLASS, by_magnitude
from tests.thorough import examples
from timely import Config, Worker, execute
from timely.errors import OperatorError
from timely.lowlevel import hash_columns

TEXT = np.dtypes.StringDType()
NAMES = st.one_of(
    st.integers(0, 1 << 70).map(lambda number: f"node {number}"),
    st.integers(0, 30).map(lambda number: f"https://example.org/people/{number:05d}"),
    st.text("abz09é\0/-", max_size=70),
    st.text(max_size=20),
)
WHOLE = st.one_of(
    *[st.integers(near - 3, near + 3) for near in (0, labels._FIRST_HASH, 10**12, 2**62)],
    st.integers(-(2**63), 2**63 - 1),
)
"""Integers that are their own labels, and such that have hashes."""
Node = Any
Edge = tuple[Node, Node]


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1))
def test_the_round_of_a_label_depends_on_the_label_alone(labels: list[int]) -> None:
    rounds = by_magnitude(None, np.array(labels)).tolist()
    assert rounds == [by_magnitude(None, np.array([label]))[0] for label in labels]
    assert 0 <= min(rounds) <= max(rounds) <= 64 * ROUNDS_PER_CLASS < Config().report_rounds


@given(st.lists(NAMES, unique=True), st.integers(1, 20))
def test_labels_differ_even_if_hashes_do_not(names: list[str], hashes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        few = functools.partial(_few_hashes, hashes)
        patch.setattr(labels, "_hash", few)
        if max(Counter(few(np.array(names, TEXT)).tolist()).values(), default=0) > labels._ALIKE:
            with pytest.raises(OperatorError, match="more than 8 nodes have the same hash: "):
                example(lambda scope: labels.labelled(Collection.of(scope, np.array(names, TEXT))))
            return
        found = example(lambda scope: labels.labelled(Collection.of(scope, np.array(names, TEXT)))) if names else []
    assert sorted(name for (name, _), _ in found) == sorted(names)
    assert len({label for (_, label), _ in found}) == len(names)
    assert all(label >= 0 and count == 1 for (_, label), count in found)


def _few_hashes(count: int, node: Any) -> Any:
    """Return so few different hashes that many nodes have the same."""
    return hash_columns((node,)).astype(np.int64) % count * labels._ALIKE


def components(edges: Counter[Edge]) -> dict[Edge, int]:
    """Return (node, least node of its component): each node takes the least label of its neighbours until all agree."""
    labels = {node: node for edge in edges for node in edge}
    before = None
    while before != labels:
        before = dict(labels)
        for one, other in edges:
            labels[one] = labels[other] = min(labels[one], labels[other])
    return dict.fromkeys(labels.items(), 1)


@st.composite
def histories(draw: st.DrawFn) -> list[list[tuple[Edge, int]]]:
    """Return the changes of each epoch: edges, and how often more they occur."""
    kind = draw(st.sampled_from([NAMES, WHOLE]))
    nodes = st.sampled_from(draw(st.lists(kind, min_size=2, max_size=8, unique=True)))
    epochs, present = [], list[Edge]()
    for _ in range(draw(st.integers(1, 5))):
        added = draw(st.lists(st.tuples(nodes, nodes), max_size=6))
        gone = [edge for edge in present if draw(st.booleans())]
        present = [edge for edge in present if edge not in gone] + added
        epochs.append([*((edge, 1) for edge in added), *((edge, -1) for edge in gone)])
    return epochs


def strong_components(edges: Counter[Edge]) -> dict[Edge, int]:
    """Return (node, least node of its component) for components of several nodes, by what each node reaches."""
    reached = {node: {node} for edge in edges for node in edge}
    before = None
    while before != reached:
        before = {node: set(found) for node, found in reached.items()}
        for one, other in edges:
            reached[one] |= reached[other]
    both = {node: {other for other in found if node in reached[other]} for node, found in reached.items()}
    return {(node, min(found)): 1 for node, found in both.items() if len(found) > 1}


ALGORITHMS = {
    "weak": (weakly_connected_components, components),
    "strong": (strongly_connected_components, strong_components),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("hashes", [None, 3])
@pytest.mark.parametrize("kind", ALGORITHMS)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.timeout(300)
@settings(deadline=None, max_examples=examples(150))
@given(epochs=histories())
def test_components_of_a_changing_graph_are_right(
    epochs: list[list[tuple[Edge, int]]], workers: int, kind: str, hashes: int | None
) -> None:
    definition, expected = ALGORITHMS[kind]

    def program(worker: Worker) -> list[dict[Edge, int]]:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            output = definition(edges).output()
        found = []
        for epoch, changes in enumerate(epochs):
            for edge, diff in changes if worker.index == epoch % worker.peers else ():
                session.update(*edge, diff=diff)
            session.advance_to(epoch + 1)
            worker.step_while(lambda reached=epoch + 1: output.less_than(reached))  # type: ignore[misc]
            found.append(output.contents())
        session.close()
        worker.step_while(lambda: not output.done())
        return found

    present, answers = Counter[Edge](), []
    for changes in epochs:
        for edge, diff in changes:
            present[edge] += diff
        present = +present
        answers.append(expected(present))
    with pytest.MonkeyPatch.context() as patch:
        if hashes is not None:
            patch.setattr(labels, "_hash", functools.partial(_few_hashes, hashes))
        assert execute(program, Config(workers=workers))[0] == answers
