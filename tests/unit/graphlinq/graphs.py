"""Small random graphs, and their edges divided among workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.unit.dataflow.running import collected
from timely import Scope, Stream
from timely.graphlinq import Graph

Edges = list[tuple[int, int]]

edges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=25)
"""Edges among few nodes: dense enough for cycles, loose enough for several components."""


def share(scope: Scope, rows: list[tuple[Any, ...]]) -> tuple[Any, ...] | np.ndarray:
    """Return this worker's part of the rows, as columns."""
    columns = tuple(np.array(column) for column in zip(*rows))
    return tuple(column[scope.index :: scope.peers] for column in columns)


def answered(algorithm: Callable[[Graph], Stream], rows: Edges, workers: int = 1, **options: Any) -> list[Any]:
    """Return the sorted records that an algorithm emits on all workers for a graph."""
    return collected(lambda scope: algorithm(Graph(scope.to_stream(share(scope, rows)), **options)), workers)
