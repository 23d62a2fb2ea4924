"""Shared arrangements (VLDB 2020): how long installing a question takes, and the memory that many questions take."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Case
from benchmarks.seeds.experiment import Experiment, Recorded, Row, compact, percentiles, shown
from benchmarks.seeds.style import BLUE, VERMILION, Label, describe, label, plain
from benchmarks.shared_traces import BYTES, EACH

SIZES = (10_000, 100_000, 1_000_000)
LARGEST = 10_000_000
KEPT = (1, 3, 10, 30)
EDGES = 100_000
INSTALLED = 3
WAYS = {"shared": (False, BLUE), "not shared": (True, VERMILION)}


def _installing(way: str, edges: int) -> str:
    return f"{way}, {edges:,} edges"


def _keeping(way: str, number: int) -> str:
    return f"{way}, {number} question{'s' if number > 1 else ''}"


def cases(full: bool) -> list[Case]:
    """Return cases by the size of the graph, and by the number of questions."""
    found = []
    for way, (private, _) in WAYS.items():
        sizes = [*SIZES, LARGEST] if full else [*SIZES]
        found += [
            Case(_installing(way, edges), "shared_traces", _parameters(edges, INSTALLED, private), function="series")
            for edges in sizes
        ]
        found += [
            Case(_keeping(way, kept), "shared_traces", _parameters(EDGES, kept, private), function="series")
            for kept in KEPT
        ]
    return found


def _parameters(edges: int, keep: int, private: bool) -> dict[str, Any]:
    return {"edges": edges, "keep": keep, "private": private}


def _installs(recorded: Recorded, case: str) -> Any:
    """Return the milliseconds of all installations but the first, which loads code that all use."""
    return recorded.series(case, EACH)[1:]


def rows(recorded: Recorded) -> list[Row]:
    """Return the latency of installing, and the bytes of the indexes."""
    found = []
    for case, given in recorded.parameters.items():
        if case not in recorded:
            continue
        if case.endswith("edges"):
            paper = "milliseconds, not seconds" if not given["private"] else ""
            found.append(
                Row(case, "installing: median / p95 / p99", percentiles(_installs(recorded, case), "ms"), paper)
            )
        else:
            paper = "a quarter of the memory" if not given["private"] and given["keep"] == KEPT[-1] else ""
            size = 1e-6 * recorded.series(case, BYTES)[0]
            found.append(Row(f"{case}, {given['edges']:,} edges", "indexes", f"{shown(size)} MB", paper))
    return found


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw latency by size, and memory by number of questions."""
    left, right = figure.subplots(1, 2)
    installing, keeping = [], []
    for way, (_, colour) in WAYS.items():
        edges = [size for size in (*SIZES, LARGEST) if _installing(way, size) in recorded]
        if edges:
            each = [_installs(recorded, _installing(way, size)) for size in edges]
            medians = [float(np.median(values)) for values in each]
            left.plot(edges, medians, color=colour, marker="o")
            left.fill_between(edges, *np.percentile(each, (5, 95), axis=1), color=colour, alpha=0.15, linewidth=0)
            installing.append(Label(edges[-1], medians[-1], f"{way}:\n{shown(medians[-1])} ms", colour))
        kept = [number for number in KEPT if _keeping(way, number) in recorded]
        if kept:
            size = [1e-6 * recorded.series(_keeping(way, number), BYTES)[0] for number in kept]
            right.plot(kept, size, color=colour, marker="o")
            keeping.append(Label(kept[-1], size[-1], f"{way}:\n{shown(size[-1])} MB", colour))
    left.set(xscale="log", yscale="log", xlim=(SIZES[0] / 1.5, LARGEST * 12))
    right.set(xlim=(0, KEPT[-1] * 1.4), ylim=(0, None))
    plain(left, "x", [*SIZES, LARGEST], compact)
    plain(left, "y")
    right.set_xticks(KEPT)
    describe(left, "edges of the graph", "installing a question (ms)", "latency (band: 5 to 95 %)")
    describe(right, f"questions about a graph of {EDGES:,} edges", "indexes of edges (MB)", "memory")
    label(left, installing)
    label(right, keeping)


EXPERIMENT = Experiment("sharing", "Questions on a shared arrangement", cases, rows, draw, height=3.4)
