"""Answers from scratch, by SciPy and networkx: what `--check` compares with.

Each function takes all edges, the nodes that the command line names, and the options. It returns the columns of the
answer, in any order of the rows. None of them uses this library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from differential.jobs.job import Columns, Edges, Options
from timely.errors import DataError

Ints = NDArray[np.int64]
NodeInputs = Mapping[str, Ints]


def components(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return (node, least node of its weakly connected component)."""
    return _labelled(edges, "weak")


def _labelled(edges: Edges, connection: str) -> Columns:
    """Return (node, least node of its component)."""
    csgraph, present, matrix = _matrix(edges)
    _, label = csgraph.connected_components(matrix, connection=connection)
    return present, present[_least_of(label)]


def _least_of(label: Ints) -> Ints:
    """Return the least position with the same label, for each position."""
    _, first, which = np.unique(label, return_index=True, return_inverse=True)
    return first[which]


def _matrix(edges: Edges) -> tuple[Any, Ints, Any]:
    """Return SciPy's graph algorithms, the nodes in order, and the matrix of the edges between their positions."""
    try:
        from scipy import sparse
        from scipy.sparse import csgraph
    except ImportError:
        raise DataError("--check needs SciPy: pip install 'timely-dataflow[check]'") from None
    present = np.unique(np.concatenate([edges.source, edges.target]))
    ends = np.searchsorted(present, edges.source), np.searchsorted(present, edges.target)
    matrix = sparse.coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(len(present),) * 2).tocsr()
    return csgraph, present, matrix
