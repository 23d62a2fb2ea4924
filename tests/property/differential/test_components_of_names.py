"""Components of graphs whose nodes are text: labels enter in rounds that depend on each label alone."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import new_input
from differential.graphs import weakly_connected_components
from differential.graphs.components import ROUNDS_PER_CLASS, by_magnitude, magnitudes
from tests.thorough import examples
from timely import Config, Worker, execute
from timely.lowlevel import LIMIT

TEXT = np.dtypes.StringDType()
NAMES = st.one_of(
    st.integers(0, 1 << 70).map(lambda number: f"node {number}"),
    st.integers(0, 30).map(lambda number: f"https://example.org/people/{number:05d}"),
    st.text("abz09é\0/-", max_size=70),
    st.text(max_size=20),
)
Edge = tuple[str, str]


@settings(deadline=None)
@given(st.lists(NAMES, min_size=1))
def test_the_round_of_a_label_depends_on_the_label_alone(names: list[str]) -> None:
    labels = np.array(names, TEXT)
    rounds = by_magnitude(labels, labels)
    assert rounds.tolist() == [
        by_magnitude(one, one)[0] for one in (labels[row : row + 1] for row in range(len(names)))
    ]
    assert magnitudes(labels).min() >= 0
    assert 0 <= rounds.min()
    assert rounds.max() <= 63 * ROUNDS_PER_CLASS < LIMIT
    contents = np.array([name.encode() for name in names], np.object_)
    assert by_magnitude(contents, contents).tolist() == rounds.tolist()


@given(st.lists(st.integers(0, 10**11), min_size=2, max_size=2))
def test_names_with_padded_numbers_enter_in_their_order(numbers: list[int]) -> None:
    one, other = magnitudes(np.array([f"name {number:012d} of a node" for number in numbers], TEXT)).tolist()
    assert (one < other, one == other) == (numbers[0] < numbers[1], numbers[0] == numbers[1])


def components(edges: Counter[Edge]) -> dict[tuple[str, str], int]:
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
    nodes = st.sampled_from(draw(st.lists(NAMES, min_size=2, max_size=8, unique=True)))
    epochs, present = [], list[Edge]()
    for _ in range(draw(st.integers(1, 5))):
        added = draw(st.lists(st.tuples(nodes, nodes), max_size=6))
        gone = [edge for edge in present if draw(st.booleans())]
        present = [edge for edge in present if edge not in gone] + added
        epochs.append([*((edge, 1) for edge in added), *((edge, -1) for edge in gone)])
    return epochs


@pytest.mark.lengthy
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.timeout(300)
@settings(deadline=None, max_examples=examples(100))
@given(epochs=histories())
def test_components_of_a_changing_graph_of_names_are_right(epochs: list[list[tuple[Edge, int]]], workers: int) -> None:
    def program(worker: Worker) -> list[dict[tuple[str, str], int]]:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            output = weakly_connected_components(edges).output()
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
        answers.append(components(present))
    assert execute(program, Config(workers=workers))[0] == answers
