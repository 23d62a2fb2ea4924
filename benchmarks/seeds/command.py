"""`python -m benchmarks --seeds`: measure the experiments, one after the other, print the table, and draw."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time as clock
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.harness import CaseFailed, run_all
from benchmarks.seeds import (
    allreduce,
    barrier,
    exchange,
    exposures,
    progress,
    queries,
    recovery,
    scaling,
    sharing,
    sliding,
    style,
    table_one,
    upgrade,
)
from benchmarks.seeds.experiment import Experiment, Recorded, Row
from benchmarks.table import aligned
from timely.run.launched import INTERRUPTED

EXPERIMENTS: tuple[Experiment, ...] = tuple(
    module.EXPERIMENT
    for module in (
        barrier,
        exchange,
        progress,
        scaling,
        table_one,
        exposures,
        recovery,
        queries,
        sliding,
        allreduce,
        sharing,
        upgrade,
    )
)
Results = dict[str, Recorded]
"""What was recorded of each experiment, by its name."""


def run(options: argparse.Namespace, report: Callable[[str], None]) -> int:
    """Measure the experiments that the options select, or read them from a file; return the exit status.

    It is 1 if a case failed, 2 if nothing can be measured, and 130 if Ctrl-C interrupted the run. A picture is drawn as
    soon as its experiment is measured.
    """
    experiments = _selected(options.only)
    if complaint := _complaint(options, experiments):
        print(complaint, file=sys.stderr)
        return 2
    if options.plot is not None:
        options.plot.mkdir(exist_ok=True)
    begun, status = clock.monotonic(), 0
    if options.recorded is not None:
        document, results = read(options.recorded)
        for experiment in experiments:
            status |= _finish(experiment, results.get(experiment.name), document, options)
        return status
    document, results = machine.document(), {}
    print(machine.described(document), flush=True)
    for experiment in experiments:
        results[experiment.name], failures, is_interrupted = measure(experiment, options.full, options.runs, report)
        for failure in failures:
            print(f"{experiment.name}: {in_a_line(failure)}", file=sys.stderr)
        status |= bool(failures)
        if options.json is not None:
            options.json.write_text(json.dumps(as_json(document, results)) + "\n")
        if is_interrupted:
            return INTERRUPTED
        status |= _finish(experiment, results[experiment.name], document, options)
    print(f"\n{clock.monotonic() - begun:.0f} s in all.")
    return status


def measure(
    experiment: Experiment, full: bool, runs: int, report: Callable[[str], None]
) -> tuple[Recorded, Sequence[CaseFailed], bool]:
    """Return what the cases of an experiment return, the failures, and whether Ctrl-C interrupted it."""
    missing = [module for module in experiment.wants if find_spec(module) is None]
    if missing:
        names = ", ".join(missing)
        print(f"{experiment.name}: not installed, so not measured: {names}; pip install '.[peers]'", file=sys.stderr)
    cases = [case for case in experiment.cases(full) if not set(missing).intersection(case.needs)]
    number = runs if experiment.repeats else 1
    others = machine.Others()
    measured = run_all(cases, number, lambda text: report(text and f"{experiment.name}, {text}"))
    parameters = {case.name: case.parameters for case in cases}
    recorded = Recorded(measured.results, parameters, others.cores())
    return recorded, measured.failures, measured.interrupted


def as_json(document: Mapping[str, Any], results: Results) -> dict[str, Any]:
    """Return a document with everything that was recorded."""
    return {**document, "experiments": {name: dataclasses.asdict(recorded) for name, recorded in results.items()}}


def read(file: Path) -> tuple[dict[str, Any], Results]:
    """Return the document and the results in a file that `--json` wrote."""
    document = json.loads(file.read_text())
    results = {name: Recorded(**recorded) for name, recorded in document.pop("experiments").items()}
    return document, results


def in_a_line(failure: CaseFailed) -> str:
    """Return the first line of a failure, with the last one of what was printed."""
    first, *others = str(failure).strip().splitlines()
    return f"{first}: {others[-1].strip()}" if others else first


def printed(experiment: Experiment, rows: Sequence[Row]) -> str:
    """Return the table of an experiment."""
    headings = Row("case", "figure", "here", "paper")
    return f"\n{experiment.name}: {experiment.title}\n" + aligned([headings, *rows], left=3)


def _finish(experiment: Experiment, recorded: Recorded | None, document: dict[str, Any], options: Any) -> int:
    """Print the table of an experiment, and draw it if wanted; return 1 if nothing was recorded of it."""
    if recorded is None or not recorded.runs:
        print(f"{experiment.name}: nothing was measured, so nothing is drawn", file=sys.stderr)
        return 1
    print(printed(experiment, experiment.rows(recorded)), flush=True)
    meanwhile = ""
    if recorded.others is not None:
        meanwhile = f"other programs used {recorded.others:.1f} cores meanwhile"
        print(meanwhile, flush=True)
    if options.plot is not None:
        file = options.plot / f"{experiment.name}.{options.format}"
        style.save(experiment, recorded, "; ".join(filter(None, (machine.in_short(document), meanwhile))), file)
    return 0


def _selected(only: Sequence[str]) -> list[Experiment]:
    """Return the experiments whose name contains one of the given names, or all."""
    return [each for each in EXPERIMENTS if not only or any(name in each.name for name in only)]


def _complaint(options: argparse.Namespace, experiments: Sequence[Experiment]) -> str | None:
    """Return the reason why nothing can be measured, read or written, or None."""
    if not experiments:
        known = ", ".join(each.name for each in EXPERIMENTS)
        return f"no experiment has a name that contains {' or '.join(map(repr, options.only))}; there are {known}"
    if options.recorded is not None and not options.recorded.is_file():
        return f"{options.recorded} cannot be read: there is no such file"
    if options.plot is not None and options.plot.exists() and not options.plot.is_dir():
        return f"{options.plot} is a file: --seeds draws into a directory"
    return None
