"""Reads graphs as tests want them: as lists of tuples, from all shares, with the faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from differential.jobs.input.edges import EdgeBatch, OpenedGraph
from differential.jobs.input.faults import Faults
from differential.jobs.input.graph import open_graph
from differential.jobs.input.layout import InputLayout

PLAIN = InputLayout()


def shares(graph: OpenedGraph, peers: int) -> list[list[EdgeBatch]]:
    """Return the batches of each share, and check their columns and what they report."""
    reported: list[int] = []
    found = [list(graph.share(index, peers, reported.append)) for index in range(peers)]
    for edges in (each for share in found for each in share):
        columns = [column for column in edges if column is not None]
        assert len({len(column) for column in columns}) == 1
        assert edges.source.dtype == edges.target.dtype == np.int64
        assert (edges.weight is None) == (graph.weight is None)
        if edges.weight is not None:
            assert edges.weight.dtype == (np.float64 if graph.weight == "float" else np.int64)
    assert graph.total is None or sum(reported) == graph.total
    return found


def rows(graph: OpenedGraph, peers: int = 1) -> list[tuple[Any, ...]]:
    """Return the rows of all shares, sorted, with the text of names."""
    found: list[tuple[Any, ...]] = []
    for edges in (each for share in shares(graph, peers) for each in share):
        columns: list[list[Any]] = [column.tolist() for column in edges if column is not None]
        if graph.names is not None:
            columns[:2] = [graph.names.text(edges.source), graph.names.text(edges.target)]
        found += zip(*columns)
    return sorted(found)


def read(path: Path | str, layout: InputLayout = PLAIN, peers: int = 1) -> list[tuple[Any, ...]]:
    """Return the rows of a file that has no faults."""
    return rows(open_graph(str(path), layout, Faults()), peers)


def with_faults(
    path: Path, layout: InputLayout = PLAIN, peers: int = 1
) -> tuple[list[tuple[Any, ...]], dict[int, str]]:
    """Return the rows of a file, and the reasons of faults by line."""
    faults = Faults("report")
    found = rows(open_graph(str(path), layout, faults), peers)
    kept = faults.take()
    assert faults.count == len(kept)
    assert {fault.file for fault in kept} <= {str(path)}
    reasons = {fault.line: fault.reason for fault in kept}
    assert len(reasons) == len(kept)
    return found, reasons
