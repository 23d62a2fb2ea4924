"""The graph algorithms say the same on one worker, on three threads, and on two processes; and what SciPy says."""

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
from tests.integration.launcher.launching import Run
from timely import Config, execute

SCRIPT = Path(__file__).parent / "scripts" / "algorithms.py"


@pytest.fixture(scope="module")
def programs() -> ModuleType:
    return module_at(SCRIPT)


@pytest.fixture(scope="module")
def expected(programs: ModuleType) -> Counter[str]:
    """What one worker says."""
    return said(programs, 1)


def said(programs: ModuleType, workers: int) -> Counter[str]:
    return Counter(line for lines in execute(programs.everything, Config(workers=workers)) for line in lines)


def records(lines: Counter[str], name: str) -> list[Any]:
    return sorted(literal_eval(line.partition(": ")[2]) for line in lines if line.startswith(f"{name}: "))


def test_one_worker_says_what_scipy_does(programs: ModuleType, expected: Counter[str]) -> None:
    source, target = programs.graph()
    matrix = csr_matrix((np.ones(len(source)), (source, target)), shape=(programs.NODES, programs.NODES))
    nodes = np.union1d(source, target).tolist()
    for name, connection, choose in (("wcc", "weak", min), ("scc", "strong", max)):
        _, labels = connected_components(matrix, connection=connection)
        members = {label: [node for node in nodes if labels[node] == label] for label in set(labels.tolist())}
        assert records(expected, name) == [(node, choose(members[labels[node]])) for node in nodes]
    hops = dijkstra(matrix, unweighted=True, indices=programs.LANDMARKS[:3])
    hops = np.where(np.isinf(hops), -1, hops).astype(int)
    for name in ("asp", "asp, by edge"):
        assert records(expected, name) == [(node, *hops[:, node].tolist(), -1) for node in nodes]
    degrees = np.bincount(source, minlength=programs.NODES).tolist()
    assert records(expected, "degrees") == [(node, degrees[node]) for node in nodes]
    assert {line.split(": ")[0] for line in expected} == set(programs.PROGRAMS)


def test_three_threads_say_what_one_worker_does(programs: ModuleType, expected: Counter[str]) -> None:
    assert said(programs, 3) == expected


def test_two_processes_say_what_one_worker_does(expected: Counter[str]) -> None:
    run = Run("run", "-n", "2", SCRIPT)
    try:
        assert run.end(60) == 0, run.error
        assert Counter(line.partition("] ")[2] for line in run.output.splitlines()) == expected
    finally:
        run.close()
