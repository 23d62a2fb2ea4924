"""`python -m benchmarks`: run the cases, print a table, and write JSON."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import math
import os
import platform
import subprocess
import sys
import time as clock
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.comparisons import COMPARISONS
from benchmarks.harness import ROOT, WARM_UP, Case, Figures, Reference, at_least, medians, run_all
from benchmarks.incremental import INITIAL, SCIPY, SINGLE_MEAN
from benchmarks.plot import plot

WORKLOADS = (
    "degrees",
    "bfs",
    "wcc",
    "scc",
    "pagerank",
    "closure",
    "sssp",
    "triangles",
    "bulk",
    "rounds",
    "cliffs",
    "memory",
    "scratch",
    "peers",
    "breakdown",
    "barrier",
    "exchange",
    "wire",
    "wordcount",
    "unionfind",
    "exposures",
    "sliding",
    "queries",
    "shared_traces",
    "logging",
    "construction",
    "allreduce",
    "graphlinq",
    "progress_traffic",
)
BRIEFLY = (
    "degrees 100k/1M",
    "bfs 100k/1M",
    "wcc 100k/1M",
    "wcc Debian 59k/279k",
    "scc 10k/20k",
    "triangles_wco 10k/100k",
    "bulk 1M rows, 100k keys",
    "memory 20k epochs",
    "barrier 1 worker",
    "barrier 2 processes",
    "exchange 2 processes, batch 1M",
    "wordcount 1M words",
)
"""The cases that run when none is asked for: under two minutes."""
RUNS = 3
HEADINGS = ("case", "figure", "here", "reference", "ratio", "target", "")
NOTE = """\
Each figure is the median of {runs} runs. The reference figures are those of Rust timely and differential dataflow (for
word counts by epoch, Pathway), measured elsewhere on a 2-core 2.5 GHz Xeon: orders of magnitude, not a comparison side
by side. Ratios are to the better end of a range. Warm-up is loading and, the first time on a machine, compiling
kernels; no other figure includes it. Peak bytes are resident memory above what was there after warming up.
Algorithms: WCC propagates labels with priority, as the reference does; SCC takes dead ends away first, which the
reference does not. Exchange in one worker hands batches over by reference."""


def main() -> int:
    """Run what the command line asks for; return the exit status: 1 if a case failed, 2 if nothing was measured."""
    options = _parser().parse_args()
    cases = _cases(options)
    if complaint := _complaint(options, cases):
        print(complaint, file=sys.stderr)
        return 2
    begun = clock.monotonic()
    results, failures = run_all(cases, options.runs, _progress)
    cases = [case for case in cases if case.name in results]
    figures = {name: medians(runs) for name, runs in results.items()}
    rows = [row for case in cases for row in _rows(case, figures[case.name], options.peers)]
    print(_table([HEADINGS, *rows, *_comparisons(figures)]))
    for failure in failures:
        print(f"\n{failure}", file=sys.stderr)
    print(f"\n{NOTE.format(runs=options.runs)}\n{clock.monotonic() - begun:.0f} s in all.")
    if options.json:
        options.json.write_text(json.dumps(_document(cases, results), indent=1) + "\n")
    if options.plot:
        plot(cases, figures, options.plot)
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, check, and compare.")
    parser.add_argument("--full", action="store_true", help="all cases at all sizes")
    parser.add_argument(
        "--only",
        default="",
        metavar="NAME",
        help="the cases whose name contains NAME, at sizes of seconds unless --full",
    )
    parser.add_argument("--runs", type=_positive, default=RUNS, help=f"how often each case runs (default {RUNS})")
    parser.add_argument("--peers", action="store_true", help="other libraries beside: pip install '.[peers]'")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures of all runs")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the ratios to the references (.svg, .png, .pdf)"
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _complaint(options: argparse.Namespace, cases: Sequence[Case]) -> str | None:
    """Return why nothing can be measured, or written afterwards; None if all is well."""
    if not cases:
        others = "" if options.full else "; --full has more"
        others += "" if options.peers else "; other libraries are measured with --peers"
        return f"no case that can be measured is called like {options.only!r}{others}"
    if options.plot and find_spec("matplotlib") is None:
        return "a picture is drawn by matplotlib: pip install '.[plot]'"
    if find_spec("scipy") is None:
        return "the answers are checked by SciPy: pip install '.[check]'"
    for file in filter(None, (options.json, options.plot)):
        if not file.parent.is_dir():
            return f"{file} cannot be written: there is no directory {file.parent}"
    return None


def _cases(options: argparse.Namespace) -> list[Case]:
    cases: list[Case] = []
    for workload in WORKLOADS:
        cases += importlib.import_module(f"benchmarks.{workload}").CASES
    cases = [case for case in cases if options.only in case.name and (options.full or case.quick)]
    if not (options.full or options.only or options.peers):
        cases = [case for case in cases if case.name in BRIEFLY]
    cases = [case for case in cases if options.peers or not case.needs]
    missing = {module for case in cases for module in case.needs if find_spec(module) is None}
    if missing:
        print(
            f"not measured, as they are not there: {', '.join(sorted(missing))}; pip install '.[peers]'",
            file=sys.stderr,
        )
    return [case for case in cases if missing.isdisjoint(case.needs)]


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _rows(case: Case, figures: Figures, peers: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, figure in figures.items():
        if name in (SCIPY, SINGLE_MEAN) and not peers:
            continue
        reference = case.references.get(name)
        ratio = "" if reference is None else f"{figure / _better(name, reference):.2f}"
        shown = "" if reference is None else str(reference)
        rows.append(("", name, _shown(figure), shown, ratio, *_target(case, name, figure)))
    if peers and SCIPY in figures:
        rows.append(("", "SciPy is slower after", _break_even(figures), "", "", "", ""))
    return [(case.name, *rows[0][1:]), *rows[1:]]


def _comparisons(results: Mapping[str, Figures]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for each in COMPARISONS:
        found = each.of(results)
        if found is not None:
            target = "" if each.target is None else f"{'<=' if each.growth else '>='} {each.target:g}"
            rows.append((each.name, "", f"{found:.2f}", "", "", target, "" if each.is_met(found) else "missed"))
    return rows


def _better(name: str, reference: Reference) -> float:
    return reference.high if at_least(name) else reference.low


def _target(case: Case, name: str, figure: float) -> tuple[str, str]:
    """Return what the figure should be, and whether it is."""
    limit = case.limits.get(name)
    reference = case.references.get(name)
    if limit is None and reference is not None and reference.target is not None:
        limit = reference.target * _better(name, reference)
    if limit is None or name == WARM_UP:
        return "", ""
    met = figure >= limit if at_least(name) else figure <= limit
    return f"{'>=' if at_least(name) else '<='} {_shown(limit)}", "" if met else "missed"


def _break_even(figures: Figures) -> str:
    """Return after how many one-edge changes SciPy, run anew after each, would have taken longer."""
    if SINGLE_MEAN not in figures:
        return ""
    saved = figures[SCIPY] - 1e-6 * figures[SINGLE_MEAN]
    if saved <= 0:
        return "never"
    return f"{math.ceil(max(0.0, figures[INITIAL] - figures[SCIPY]) / saved):,} changes"


def _shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1])]
        cells += [cell.rjust(width) for cell, width in zip(row[2:-1], widths[2:-1])]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(lines)


def _document(cases: Sequence[Case], results: Mapping[str, list[Figures]]) -> dict[str, Any]:
    """Return everything measured, and where."""
    return {
        "commit": _commit(),
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in ("numpy", "numba", "scipy", "pyzmq")},
        "cases": [
            {
                "name": case.name,
                "parameters": dict(case.parameters),
                "processes": case.processes,
                "workers": case.workers,
                "references": {name: [each.low, each.high] for name, each in case.references.items()},
                "median": medians(results[case.name]),
                "runs": results[case.name],
            }
            for case in cases
        ],
    }


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
