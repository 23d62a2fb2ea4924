"""Nodes that a program gives to an algorithm: a collection, or plain values that do not change."""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet
from datetime import date
from typing import TypeAlias

import numpy as np

from differential import Collection
from differential.graphs.inputs import check_columns, check_records
from timely.lowlevel import ColumnLike, as_columns, nullable

Node: TypeAlias = int | str | bytes | date
Nodes: TypeAlias = Node | Sequence[int] | Sequence[str] | Sequence[bytes] | Sequence[date] | AbstractSet[Node]


def nodes_of(name: str, edges: Collection, roots: Collection | Nodes) -> Collection:
    """Return the roots of the algorithm `name` as a collection; raise BuildError if they are neither that nor nodes.

    >>> example(lambda scope: nodes_of("bfs", Collection.of(scope, 1, 2), [1, 2]))
    [((1,), 1), ((2,), 1)]
    """
    if isinstance(roots, (tuple, range, set, frozenset)):
        roots = list(roots)
    if isinstance(roots, (int, str, bytes, list, np.ndarray, np.generic, date, ColumnLike)):
        (column,) = as_columns((roots,))
        types = getattr(edges, "types", {}).values()
        return Collection.of(edges.scope, nullable(column) if any(each.endswith("?") for each in types) else column)
    check_records(name, roots=roots)
    check_columns(name, edges=edges, roots=roots)
    return roots  # type: ignore[return-value]
