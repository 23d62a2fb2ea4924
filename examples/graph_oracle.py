"""The same answers computed from scratch by SciPy, for `upgrade.py --check`.

Nothing here is incremental, and only the meaning of the answers is shared with the dataflow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.errors import ConfigError

Column = NDArray[np.int64]


def answers(
    names: Sequence[str], source: Column, target: Column, watch: Mapping[str, int], only: Collection[str]
) -> dict[str, Any]:
    """Return the answers named in `only` for the graph with edges from `source` to `target`, numbers of `names`.

    `watch` maps the names of the watched packages to their numbers.
    """
    from scipy.sparse import csr_matrix

    # csgraph treats every explicit entry as an edge, whatever its value; no edge occurs twice.
    graph = csr_matrix((np.ones(len(source), np.int8), (source, target)), shape=(len(names), len(names)))
    found: dict[str, Any] = {"edges": len(source)}
    if "components" in only:
        found["components"] = components(graph, np.union1d(source, target))
    if "cycles" in only:
        found["cycles"] = cycles(graph, names)
    if "watch" in only:
        reverse = graph.T.tocsr()
        found["watch"] = {name: reached(reverse, number) for name, number in watch.items()}
    if "top" in only:
        found["top"] = most_depended_on(target, names)
    return found


def components(graph: Any, packages: Column) -> dict[str, int]:
    """Return the number and the largest of the weakly connected components of `packages`, those that have an edge."""
    _, labels = _csgraph().connected_components(graph, connection="weak")
    _, sizes = np.unique(labels[packages], return_counts=True)
    return {"count": len(sizes), "largest": int(sizes.max(initial=0))}


def cycles(graph: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return number, largest and its members, of the strongly connected components of more than one package."""
    _, labels = _csgraph().connected_components(graph, connection="strong")
    _, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    largest = int(sizes.max(initial=0))
    if largest < 2:
        return {"count": 0, "largest": 0, "packages": []}
    earliest = first[sizes == largest].min()
    members = np.flatnonzero(labels == labels[earliest])
    return {
        "count": int((sizes > 1).sum()),
        "largest": largest,
        "packages": [names[member] for member in members.tolist()],
    }


def reached(graph: Any, root: int) -> int:
    """Return the number of other nodes reachable from `root`."""
    return len(_csgraph().breadth_first_order(graph, root, return_predecessors=False)) - 1


def most_depended_on(target: Column, names: Sequence[str], k: int = 10) -> list[list[Any]]:
    """Return the `k` nodes with the most incoming edges, and their number of edges; ties in order of number."""
    degrees = np.bincount(target, minlength=len(names))
    order = np.lexsort((np.arange(len(names)), -degrees))[:k]
    return [[names[package], int(degrees[package])] for package in order.tolist() if degrees[package]]


def require_scipy() -> None:
    """Raise `ConfigError` if SciPy is not installed."""
    if find_spec("scipy") is None:
        raise ConfigError("checking needs SciPy, which is not installed: pip install 'timely-dataflow[check]'")


def _csgraph() -> Any:
    from scipy.sparse import csgraph

    return csgraph
