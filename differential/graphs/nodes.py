"""Nodes that a program gives to an algorithm: a collection, or plain values that do not change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from differential import Collection
from differential.arguments import check_rows
from timely.lowlevel import as_column

Nodes: TypeAlias = int | str | bytes | Sequence[int] | Sequence[str] | Sequence[bytes]


def nodes_of(name: str, edges: Collection, roots: Collection | Nodes) -> Collection:
    """Return the roots of the algorithm `name` as a collection; raise BuildError if they are neither that nor nodes.

    >>> example(lambda scope: nodes_of("bfs", Collection.of(scope, 1, 2), [1, 2]))
    [((1,), 1), ((2,), 1)]
    """
    if isinstance(roots, (int, str, bytes, list, tuple, np.ndarray, np.generic)):
        return Collection.of(edges.scope, as_column(list(roots) if isinstance(roots, tuple) else roots))
    check_rows(name, roots=roots)
    return roots  # type: ignore[return-value]
