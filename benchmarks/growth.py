"""Draw how the cost of one change grows with the size of the graph, compared with starting over.

    python -m benchmarks.growth growth.svg

The workload is `wcc`: the connected components of a random graph with ten edges for each node. For each size the
picture shows the seconds for the first answer, for the same answer from SciPy, for one changed edge, and for each of a
thousand edges that change in one epoch. `wcc` checks every answer against SciPy's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import Case, Figures, medians, run_all
from benchmarks.incremental import BATCH, INITIAL, SCIPY, SINGLE_MEDIAN
from benchmarks.wcc import CASES

SIZES = ("wcc 10k/100k", "wcc 100k/1M", "wcc 1M/10M")
RUNS = 3
MICRO = 1e-6


class Curve(NamedTuple):
    """A figure at every size: its label, its unit in seconds, and its appearance (colours of Okabe and Ito)."""

    figure: str
    label: str
    unit: float
    colour: str
    marker: str


CURVES = (
    Curve(INITIAL, "first answer", 1.0, "#0072b2", "o"),
    Curve(SCIPY, "from scratch, SciPy", 1.0, "#767676", "D"),
    Curve(SINGLE_MEDIAN, "one changed edge", MICRO, "#d55e00", "s"),
    Curve(BATCH, "each of 1,000 changed edges", MICRO, "#009e73", "^"),
)


def main() -> int:
    """Measure, draw, and print the figures; return 1 if a case failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="the picture to write (.svg, .png, .pdf)")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"how many times each size runs (default {RUNS})")
    options = parser.parse_args()
    cases = [case for case in CASES if case.name in SIZES]
    measured = run_all(cases, options.runs, lambda text: print(text, file=sys.stderr, flush=True))
    for failure in measured.failures:
        print(failure, file=sys.stderr)
    if measured.failures or measured.interrupted:
        return 1
    figures = {name: medians(runs) for name, runs in measured.results.items()}
    for curve in CURVES:
        seconds = ", ".join(f"{curve.unit * figures[case.name][curve.figure]:.3g}" for case in cases)
        print(f"{curve.label}: {seconds} s")
    draw(cases, figures, options.file)
    return 0


def draw(cases: Sequence[Case], figures: Mapping[str, Figures], file: Path) -> None:
    """Write the picture, in the format named by the extension of the file."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    edges = [case.parameters["edges"] for case in cases]
    with rc_context({"svg.hashsalt": "growth", "font.family": "sans-serif", "font.size": 11}):
        figure = Figure(figsize=(8, 4.2), layout="constrained")
        axes = figure.subplots()
        for curve in CURVES:
            seconds = [curve.unit * figures[case.name][curve.figure] for case in cases]
            axes.plot(edges, seconds, color=curve.colour, marker=curve.marker, linewidth=2)
            axes.annotate(
                curve.label,
                (edges[-1], seconds[-1]),
                xytext=(10, 0),
                textcoords="offset points",
                va="center",
                color=curve.colour,
            )
        axes.set(xscale="log", yscale="log", xlim=(edges[0] / 1.6, edges[-1] * 14))
        axes.set_xticks(edges, [f"{number:,}" for number in edges])
        axes.minorticks_off()
        axes.set_xlabel("edges of the graph")
        axes.set_ylabel("time until the answer is final (s)")
        axes.set_title("Connected components of a changing graph")
        axes.grid(axis="y", color="#dddddd")
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


if __name__ == "__main__":
    sys.exit(main())
