"""The command `python -m benchmarks`: run the cases, print a table, and write JSON."""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import sys
import time as clock
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.compiled import COMPILED, stale
from benchmarks.harness import Case, Figures, medians, run_all
from benchmarks.plot import plot
from benchmarks.seeds import command as seeds
from benchmarks.seeds.style import FORMATS
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
    "text",
    "wide",
    "unionfind",
    "exposures",
    "sliding",
    "queries",
    "shared_traces",
    "session",
    "session_peers",
    "logging",
    "live",
    "listeners",
    "construction",
    "loading",
    "frames",
    "allreduce",
    "upgrade",
    "durable",
    "restart",
    "recovery",
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
    "bulk 1M rows, fresh memory",
    "memory 20k epochs",
    "barrier 1 worker",
    "barrier 2 processes",
    "exchange 2 processes, batch 1M",
    "wordcount 1M words",
)
"""The cases that run without arguments, in under two minutes."""
RUNS = 3
NEEDED = {"scipy": "checking the answers", "pyarrow": "measuring files and frames"}
"""What to install, and what needs it."""
NOTE = """\
Each figure is the median of {runs}. The reference figures are those of Rust differential dataflow (0.24, release build;
with two processes here, of two threads there), measured on another machine with 2 cores in one hour with ours of that
time. Take them as orders of magnitude, because this machine may be slower or faster. Kernels are compiled beforehand,
the first time on a machine; warm-up is the time to load them, which no other figure includes. Peak bytes are resident
memory above that after warming up. Graphs and bulk work use memory that the process touched just before, because the
host of a virtual machine can be slow to provide it, unless their name ends in "fresh memory". WCC propagates labels
with priority, as the reference does; SCC removes dead ends first, which the reference does not. An exchange in one
worker passes batches by reference. The modules that can be compiled to C {were} compiled."""
DESCRIPTION = """\
Measure the library, check every answer, and compare the times with reference figures. Without arguments, a dozen quick
cases run in under two minutes. Every case runs in processes of its own."""
EPILOG = """\
workloads, the first word of each case name:
{workloads}

the table:
  figure     what is measured, with its unit; less is better, except for rates (`.../s`) and shares
  here       the median of all runs
  reference  the figure of Rust differential dataflow, measured elsewhere
  ratio      here divided by the reference
  target     the bound for `here`; 'missed' follows if it is not met

examples:
  python -m benchmarks --only bfs --only wcc                   two workloads, at quick sizes
  python -m benchmarks --full --only "degrees 1M"              one case at a large size
  python -m benchmarks --only breakdown --runs 1               how the time of one change divides, in one run
  python -m benchmarks --only wcc --peers                      with the time SciPy takes from scratch
  python -m benchmarks --json before.json                      every run of the quick subset, to compare later
  python -m benchmarks.growth growth.svg                       the picture of the README
  python -m benchmarks --seeds --plot pictures                 the experiments of the papers, in under five minutes
  python -m benchmarks --seeds --only barrier --only queries   two of them

Install what checks the answers first: pip install --editable '.[benchmarks]'. With TIMELY_COMPILE=1 in the environment,
this also compiles the modules that every change passes through, which about halves the cost of a change."""


def main() -> int:
    """Run the cases that the command line selects; return the exit status.

    It is 1 if a case failed, 2 if nothing can be measured, and 130 if Ctrl-C interrupted the run, which still prints
    what was measured.
    """
    parser = _parser()
    options = parser.parse_args()
    if options.recorded is not None and not options.seeds:
        parser.error("--from draws the experiments that --seeds recorded: give both")
    if options.seeds:
        return _seeds(options)
    complaint = _missing(options)
    cases = [] if complaint else _cases(options)
    if complaint := complaint or _complaint(options, cases):
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
    runs = f"{'up to ' if measured.interrupted else ''}{options.runs} run{'s' if options.runs > 1 else ''}"
    note = NOTE.format(runs=runs, were="were" if COMPILED else "were not")
    print(f"\n{note}\n{clock.monotonic() - begun:.0f} s in all.")
    if options.json:
        options.json.write_text(json.dumps(_document(cases, results), indent=1) + "\n")
    if options.plot:
        plot(cases, figures, options.plot)
    if measured.interrupted:
        return INTERRUPTED
    return 1 if measured.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=DESCRIPTION,
        epilog=EPILOG.format(workloads="\n".join(_summaries())),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full", action="store_true", help="run all cases, or with --only their large sizes too")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="run the cases whose name contains NAME, without --full those of a few seconds; may be repeated",
    )
    parser.add_argument("--runs", type=_positive, default=RUNS, help=f"how many times each case runs (default {RUNS})")
    parser.add_argument("--peers", action="store_true", help="also measure other libraries: pip install '.[peers]'")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures of all runs to FILE")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the ratios to the reference figures (.svg, .png, .pdf), or with --seeds a picture of each "
        "experiment into the directory FILE",
    )
    parser.add_argument(
        "--seeds", action="store_true", help="repeat the experiments of the papers (docs/figures.md) instead"
    )
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="the format of the pictures of --seeds")
    parser.add_argument(
        "--from", dest="recorded", type=Path, metavar="FILE", help="draw what --seeds --json FILE recorded before"
    )
    return parser


def _seeds(options: argparse.Namespace) -> int:
    """Measure and draw the experiments of the papers; return the exit status."""
    if complaint := _missing(options):
        print(complaint, file=sys.stderr)
        return 2
    if options.recorded is None:
        compile_kernels(lambda _: None)
    return seeds.run(options, _progress)


def _summaries() -> list[str]:
    """Return a line for each workload: its name, and the first sentence of its module's docstring."""
    lines = []
    for name in WORKLOADS:
        # Not imported: --help needs nothing that is measured or that checks answers.
        text = ast.get_docstring(ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))) or ""
        lines.append(f"  {name:<17}{text.partition(chr(10))[0]}")
    return lines


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _complaint(options: argparse.Namespace, cases: Sequence[Case]) -> str | None:
    """Return the reason why nothing can be measured, or None."""
    if not cases:
        others = "" if options.full else "; --full includes larger cases"
        others += "" if options.peers else "; --peers includes other libraries"
        return f"no case that can be measured has a name that contains {' or '.join(map(repr, options.only))}{others}"
    return None


def _missing(options: argparse.Namespace) -> str | None:
    """Return the reason why a selection cannot be measured or written, or None."""
    if complaint := stale():
        return complaint
    needed = NEEDED | ({"matplotlib": "drawing"} if options.plot else {})
    for module, purpose in needed.items():
        if find_spec(module) is None:
            return f"{purpose} needs {module}: pip install '.[benchmarks]'"
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
            f"not installed, so not measured: {', '.join(sorted(missing))}; pip install '.[peers]'",
            file=sys.stderr,
        )
    return [case for case in cases if missing.isdisjoint(case.needs)]


def _progress(text: str) -> None:
    """Report on standard error which case runs: on a terminal in one line, otherwise in a line for each."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def _document(cases: Sequence[Case], results: Mapping[str, list[Figures]]) -> dict[str, Any]:
    """Return everything that was measured, with the commit, the machine and the versions."""
    return machine.document() | {
        "cases": [
            {
                "name": case.name,
                "parameters": dict(case.parameters),
                "processes": case.processes,
                "workers": case.workers,
                "references": {name: each.figure for name, each in case.references.items()},
                "median": medians(results[case.name]),
                "runs": results[case.name],
            }
            for case in cases
        ],
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
