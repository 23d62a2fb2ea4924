"""The graph algorithms give SciPy's answers, and the same on one worker, on three threads and on two processes."""

from __future__ import annotations

from ast import literal_eval
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra

from tests.examples_loading import module_at
from tests.integration.agreement import lines_of_processes, lines_of_threads

SCRIPT = Path(__file__).parent / "scripts" / "algorithms.py"


@pytest.fixture(scope="module")
def programs() -> ModuleType:
    return module_at(SCRIPT)


@pytest.fixture(scope="module")
def expected(programs: ModuleType) -> Counter[str]:
    """The lines of one worker."""
    return lines_of_threads(programs, 1)


def records(lines: Counter[str], name: str) -> list[Any]:
    """Return the records of a program in the last epoch, when all edges are present."""
    return sorted(literal_eval(line.partition(": ")[2]) for line in lines if line.startswith(f"{name}, epoch 1: "))


def test_one_worker_gives_the_answers_of_scipy(programs: ModuleType, expected: Counter[str]) -> None:
    source, target = programs.graph()
    matrix = csr_matrix((np.ones(len(source)), (source, target)), shape=(programs.NODES, programs.NODES))
    nodes = np.union1d(source, target).tolist()
    for name, connection in (("wcc", "weak"), ("scc", "strong")):
        _, labels = connected_components(matrix, connection=connection)
        members = {label: [node for node in nodes if labels[node] == label] for label in set(labels.tolist())}
        assert records(expected, name) == [(node, min(members[labels[node]])) for node in nodes]
    hops = dijkstra(matrix, unweighted=True, indices=programs.LANDMARKS[:3])
    hops = np.where(np.isinf(hops), -1, hops).astype(int)
    for name in ("asp", "asp, by edge"):
        assert records(expected, name) == [(node, *hops[:, node].tolist(), -1) for node in nodes]
    degrees = np.bincount(source, minlength=programs.NODES).tolist()
    assert records(expected, "degrees") == [(node, degrees[node]) for node in nodes]
    names = {line.split(": ")[0] for line in expected}
    assert {f"{name}, epoch 0" for name in programs.PROGRAMS} <= names
    assert len(names) > 1.5 * len(programs.PROGRAMS)


def test_three_threads_print_the_lines_of_one_worker(programs: ModuleType, expected: Counter[str]) -> None:
    assert lines_of_threads(programs, 3) == expected


@pytest.mark.lengthy
def test_two_processes_print_the_lines_of_one_worker(expected: Counter[str]) -> None:
    assert lines_of_processes(SCRIPT, 2) == expected
