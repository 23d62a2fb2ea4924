"""`python -m benchmarks`: run the cases, print a table, and write JSON."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time as clock
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.compiled import COMPILED, stale
from benchmarks.harness import ROOT, Case, Figures, medians, run_all
from benchmarks.plot import plot
from benchmarks.table import table
from differential.kernels.__main__ import compile_kernels
from timely.run.launched import INTERRUPTED

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
NOTE = """\
Each figure is the median of {runs} runs. The reference figures are those of Rust timely and differential dataflow (for
word counts by epoch, Pathway), measured elsewhere on a 2-core 2.5 GHz Xeon: orders of magnitude, not a comparison side
by side. Ratios are to the better end of a range. Kernels are compiled before, the first time on a machine; warm-up is
loading them, which no other figure includes. Peak bytes are resident memory above what was there after warming up.
Graphs and bulk work find memory at hand that was used just before, which a virtual machine's host can be slow to give.
Algorithms: WCC propagates labels with priority, as the reference does; SCC takes dead ends away first, which the
reference does not. Exchange in one worker hands batches over by reference. What can be compiled to C {was}."""


def main() -> int:
    """Run what the command line asks for; return the exit status.

    It is 1 if a case failed, 2 if nothing can be measured, 130 if Ctrl-C ended it: what was measured is told then, too.
    """
    options = _parser().parse_args()
    cases = _cases(options)
    if complaint := _complaint(options, cases):
        print(complaint, file=sys.stderr)
        return 2
    compile_kernels(lambda _: None)
    begun = clock.monotonic()
    measured = run_all(cases, options.runs, _progress)
    results = measured.results
    cases = [case for case in cases if case.name in results]
    figures = {name: medians(each) for name, each in results.items()}
    print(table(cases, figures, options.peers))
    for failure in measured.failures:
        print(f"\n{failure}", file=sys.stderr)
    if measured.interrupted:
        print(f"\ninterrupted: {len(cases)} cases had been measured", file=sys.stderr)
    runs = f"up to {options.runs}" if measured.interrupted else options.runs
    note = NOTE.format(runs=runs, was="was" if COMPILED else "was not")
    print(f"\n{note}\n{clock.monotonic() - begun:.0f} s in all.")
    if options.json:
        options.json.write_text(json.dumps(_document(cases, results), indent=1) + "\n")
    if options.plot:
        plot(cases, figures, options.plot)
    if measured.interrupted:
        return INTERRUPTED
    return 1 if measured.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, check, and compare.")
    parser.add_argument("--full", action="store_true", help="all cases at all sizes")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="the cases whose name contains NAME, at sizes of seconds unless --full; may be given several times",
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
        return f"no case that can be measured is called like {' or '.join(map(repr, options.only))}{others}"
    if complaint := stale():
        return complaint
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
    if options.only:
        cases = [case for case in cases if any(name in case.name for name in options.only)]
    cases = [case for case in cases if options.full or case.quick]
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
    """Say on standard error what runs: on one line of a terminal, else a line each."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def _document(cases: Sequence[Case], results: Mapping[str, list[Figures]]) -> dict[str, Any]:
    """Return everything measured, and where."""
    return {
        "commit": _commit(),
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "compiled": bool(COMPILED),
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
