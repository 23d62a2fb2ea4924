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
            INITIAL: Reference.of(3.4, 0.3),
            SINGLE_MEDIAN: Reference.of(42),
            SINGLE_P99: Reference.of(66),
            BATCH: Reference.of(3.3, 1),
            PEAK: Reference.of(27.5),
        },
        limits={SINGLE_MEDIAN: 250},
    ),
    Case(
        "degrees 1M/10M, 2 processes",
        "degrees",
        {"nodes": 1_000_000, "edges": 10_000_000, "singles": 1000},
        processes=2,
        quick=False,
        references={
            SINGLE_MEDIAN: Reference.of(240, 3),
            SINGLE_P99: Reference(19_000, 31_000, 1),
        },
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
