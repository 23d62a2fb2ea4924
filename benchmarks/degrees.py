"""Degree distribution: how many nodes have how many outgoing edges, by two successive counts."""

from __future__ import annotations

import numpy as np

from benchmarks.graphs import Ints, RandomGraph
from benchmarks.harness import PEAK, Case, Figures, Reference
from benchmarks.incremental import BATCH, INITIAL, SINGLE_MEDIAN, SINGLE_P99, measure as measure_changes
from differential import Collection

CASES = [
    Case("degrees 100k/1M", "degrees", {"nodes": 100_000, "edges": 1_000_000}, limits={SINGLE_MEDIAN: 250}),
    Case(
        "degrees 1M/10M",
        "degrees",
        {"nodes": 1_000_000, "edges": 10_000_000, "singles": 1000},
        quick=False,
        references={
            INITIAL: Reference(1.53, 0.14),
            SINGLE_MEDIAN: Reference(20, 1.7),
            BATCH: Reference(1.3, 0.89),
            PEAK: Reference(27.5),
        },
    ),
    Case(
        "degrees 1M/10M, 2 processes",
        "degrees",
        {"nodes": 1_000_000, "edges": 10_000_000, "singles": 1000},
        processes=2,
        quick=False,
        references={SINGLE_MEDIAN: Reference(44, 4)},
        limits={SINGLE_P99: 19_000},
    ),
    Case(
        "degrees 1M/10M, 2 threads",
        "degrees",
        {"nodes": 1_000_000, "edges": 10_000_000, "singles": 1000},
        workers=2,
        quick=False,
    ),
]


def distribution(edges: Collection) -> Collection:
    """Return (degree, number of nodes with that degree)."""
    degrees = edges.map(lambda source, _: source).count()
    return degrees.map(lambda _, degree: degree).count()


def from_scratch(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return the same, counted by NumPy."""
    numbers = np.bincount(np.bincount(source, minlength=nodes))
    degrees = np.flatnonzero(numbers)
    degrees = degrees[degrees > 0]
    return degrees, numbers[degrees]


def measure(nodes: int, edges: int, singles: int = 200, batches: int = 10) -> Figures:
    """Return the figures on a random graph."""
    return measure_changes(distribution, from_scratch, RandomGraph(nodes, edges), singles, batches)
