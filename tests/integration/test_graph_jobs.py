"""The graph jobs answer as networkx and NumPy do, after the last change, with one worker and with two."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import networkx
import numpy as np
import pytest

from tests.examples_loading import example_module
from tests.oracle.ranks import UNIT, ranks_in_floats
from timely import Config, execute

bfs = example_module("bfs")
jobs = example_module("graph_jobs")

NODES, EDGES, CHANGES = 60, 100, 10
ARGUMENTS = ["--nodes", str(NODES), "--edges", str(EDGES), "--changes", str(CHANGES), "--landmarks", "6"]


def largest(components: Iterable[set[int]], least: int) -> dict[Any, int]:
    numbered = sorted(((len(each), min(each)) for each in components if len(each) >= least), reverse=True)
    return {(node, size): 1 for size, node in numbered[: jobs.SHOWN]}


def by_landmarks(graph: Any) -> dict[Any, int]:
    """Return the distances by way of the landmarks, of the pairs that are asked about and have one."""
    lengths = dict(networkx.all_pairs_shortest_path_length(graph))
    landmarks = np.linspace(0, NODES - 1, 6, dtype=np.int64).tolist()
    places = np.linspace(0, NODES - 1, 2 * jobs.SHOWN, dtype=np.int64).tolist()
    found = {}
    for source, target in zip(places[: jobs.SHOWN], places[jobs.SHOWN :]):
        ways = [
            lengths[source][each] + lengths[each][target]
            for each in landmarks
            if each in lengths[source] and target in lengths[each]
        ]
        if ways:
            found[source, target, min(ways)] = 1
    return found


ANSWERS: dict[str, Callable[[Any], dict[Any, int]]] = {
    "components": lambda graph: largest(networkx.weakly_connected_components(graph), 2),
    "cycles": lambda graph: largest(networkx.strongly_connected_components(graph), 2),
    "asp": by_landmarks,
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("job", ANSWERS)
def test_a_job_answers_as_networkx_does(job: str, workers: int, capsys: pytest.CaptureFixture[str]) -> None:
    options = jobs.arguments().parse_args([job, *ARGUMENTS])
    answer, *_ = execute(lambda worker: jobs.program(worker, options), Config(workers=workers))
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(NODES))
    graph.add_edges_from(zip(*(column.tolist() for column in bfs.random_edges(CHANGES, EDGES, NODES))))
    assert answer == ANSWERS[job](graph)
    assert answer
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(answer) + 1
    assert "a change: median" in printed[-1]


def test_ranks_are_those_of_real_numbers_but_for_the_tolerance() -> None:
    options = jobs.arguments().parse_args(["pagerank", *ARGUMENTS, "--tolerance", "100"])
    (answer,) = execute(lambda worker: jobs.program(worker, options), Config(workers=1))
    assert len(answer) == jobs.SHOWN
    source, target = bfs.random_edges(CHANGES, EDGES, NODES)
    ranks = ranks_in_floats(source, target, NODES, 20)
    assert {node for node, _ in answer} == set(np.argsort(ranks)[-jobs.SHOWN :].tolist())
    for node, rank in answer:
        assert rank == pytest.approx(ranks[node], abs=UNIT / 1000)
