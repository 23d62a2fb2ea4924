"""Replay the upgrade of a whole Linux distribution, with four answers up to date at every step.

    timely run -n 2 examples/upgrade.py
    timely run -w 2 examples/upgrade.py --steps 500 --print-changes --watch python3 --plot upgrade.svg

Every worker runs this program: it loads the files, builds the same dataflow and feeds its share of the changes. The
library distributes the work by the hash of each key. Step s happens at epoch s, so an answer at epoch s is that of the
graph after s steps, whatever the number of workers and of steps in a batch.

A question is a dataflow from the collection of edges to a small output, which is read on worker 0. Each is a few
lines over `differential.graphs` and the operators. Start by reading `Components` and then `Run`.
"""

from __future__ import annotations

import argparse
import sys
import time as clock
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import debian
import graph_oracle
import numpy as np
from debian import Upgrade
from upgrade_options import WATCHED, parse
from upgrade_picture import POINTS
from upgrade_report import Answers, Report, Terminal, described

from differential import Collection, Output, Updates, new_input
from differential.graphs import reachability, strongly_connected_components, weakly_connected_components
from differential.jobs.outputs import Outputs, opened
from differential.jobs.status import CheckError, status_of
from timely import Config, Worker, execute
from timely.errors import DataError

TOP = 10
BUCKETS = 256
"""The number of parts into which packages are divided, to rank each part before the best of all parts."""


# Questions


class Question(Protocol):
    """A dataflow from the edges (package, needed package), and the answer that it maintains."""

    output: Output

    def answer(self) -> Any:
        """Return, on worker 0, the latest final answer, in its JSON form."""


class Components:
    """Weakly connected components: their number, and the size of the largest."""

    def __init__(self, edges: Collection, run: Run) -> None:
        labels = run.counted(weakly_connected_components(edges))
        sizes = labels.map(lambda package, label: label).count()
        self.output = sizes.map(lambda label, size: size).count().output(name="components")

    def answer(self) -> dict[str, int]:
        number_of_size: dict[int, int] = dict(self.output.contents().keys())
        return {"count": sum(number_of_size.values()), "largest": max(number_of_size, default=0)}


class Cycles:
    """Dependency cycles, the strongly connected components of more than one package: their number, and the largest."""

    def __init__(self, edges: Collection, run: Run) -> None:
        self.output = run.counted(strongly_connected_components(edges)).output(name="cycles")
        self._names = run.upgrade.names

    def answer(self) -> dict[str, Any]:
        cycles = defaultdict(list)
        for package, label in sorted(self.output.contents()):
            cycles[label].append(package)
        # Cycles are in the order of their first members, so `max` returns the first by name of several largest.
        largest = max(cycles.values(), key=len, default=[])
        packages = [self._names[package] for package in largest]
        return {"count": len(cycles), "largest": len(largest), "packages": packages}


class Watch:
    """The number of other packages that depend on each watched package, directly or indirectly."""

    def __init__(self, edges: Collection, run: Run) -> None:
        dependants = edges.map(lambda package, needed: (needed, package))
        roots = Collection.of(edges.scope, np.array(list(run.watch.values()), np.int64))
        reached = run.counted(reachability(dependants, roots))
        self.output = reached.map(lambda package, root: root).count().output(name="watch")
        self._watch = run.watch

    def answer(self) -> dict[str, int]:
        reached: dict[int, int] = dict(self.output.contents().keys())
        return {name: reached[package] - 1 for name, package in self._watch.items()}

    def changes(self) -> Iterator[tuple[int, str, int, int]]:
        """Yield (step, watched package, old answer, new answer) for changes that became final since the last call."""
        changed: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        for (package, reached), (step,), diff in self.output.changes():
            changed[step, package][diff] = reached - 1
        names = {package: name for name, package in self._watch.items()}
        for (step, package), counts in changed.items():
            yield step, names[package], counts.get(-1, 0), counts[1]


class Top:
    """The packages on which most others depend directly, with the number of these; ties in the order of names.

    Degree and package are combined into one number, so the largest numbers are the answer. The largest of each of many
    parts are found first: after a change only the parts that it affects are searched, not all packages.
    """

    def __init__(self, edges: Collection, run: Run) -> None:
        self._names = run.upgrade.names
        count, last = len(self._names), len(self._names) - 1
        degrees = run.counted(edges.map(lambda package, needed: needed).count())
        ranked = degrees.map(lambda package, degree: (package % BUCKETS, degree * count + last - package))
        best = ranked.top_k(TOP).map(lambda bucket, rank: (0 * bucket, rank)).top_k(TOP)
        self.output = best.map(lambda _, rank: rank).output(name="top")

    def answer(self) -> list[list[Any]]:
        count = len(self._names)
        ranks = sorted((rank for (rank,) in self.output.contents()), reverse=True)
        return [[self._names[count - 1 - rank % count], rank // count] for rank in ranks]


QUESTIONS: dict[str, Callable[[Collection, Run], Question]] = {
    "components": Components,
    "cycles": Cycles,
    "watch": Watch,
    "top": Top,
}


# Replaying


class Run:
    """The part of one worker: the dataflow, and the steps fed into it."""

    def __init__(self, worker: Worker, upgrade: Upgrade, watch: Mapping[str, int], only: Sequence[str]) -> None:
        self.upgrade = upgrade
        self.watch = watch
        self._worker = worker
        self._seen = 0
        with worker.dataflow("upgrade") as scope:
            self._session, edges = new_input(scope, name="edges")
            self.questions = {name: QUESTIONS[name](edges, self) for name in only}

    def counted(self, collection: Collection) -> Collection:
        """Return the collection with equal updates added up; those that remain count as differences."""
        return collection.consolidate().inspect_batch(self._count)

    def _count(self, updates: Updates) -> None:
        self._seen += len(updates)

    def take(self, first: int, last: int) -> None:
        """Insert this worker's share of several steps, each at its epoch, and wait until the answers are final."""
        for step in range(first, last + 1):
            source, target, diff = self.upgrade.changes(step, self._worker.index, self._worker.peers)
            if len(source):
                self._session.update(source, target, diff=diff)
            self._session.advance_to(step + 1)
        outputs = [question.output for question in self.questions.values()]
        self._worker.step_while(lambda: any(output.less_than(last + 1) for output in outputs))

    def answers(self, step: int) -> dict[str, Any]:
        """Return, on worker 0, the answers after the last step."""
        edges = int(self.upgrade.diff[: self.upgrade.starts[step + 1]].sum())
        return {"edges": edges} | {name: question.answer() for name, question in self.questions.items()}

    def differences(self) -> int:
        """Return, on worker 0, the differences of all workers, which a dataflow of its own adds up."""
        with self._worker.dataflow("differences") as scope:
            session, counts = new_input(scope)
            total = counts.sum().output()
        session.insert(0, self._seen)
        session.close()
        self._worker.step_while(lambda: not total.done())
        return sum(count for _, count in total.contents())


def replay(
    worker: Worker, upgrade: Upgrade, watch: Mapping[str, int], options: argparse.Namespace, outputs: Outputs
) -> Report | None:
    """Replay the upgrade on one worker; return, on worker 0, the report."""
    run = Run(worker, upgrade, watch, options.only)
    is_first = worker.index == 0
    report = Report()
    with Terminal(options.steps) as terminal:
        for first, last in batches(options.steps, options.batch, options.check):
            begun = clock.perf_counter()
            run.take(first, last)
            if is_first:
                report.passed(first, last, clock.perf_counter() - begun)
                show(run, report, terminal, options, outputs)
    report.differences = run.differences()
    return report if is_first else None


def batches(steps: int, size: int, check: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last step of each batch. Step 0, the initial graph, is a batch by itself.

    A batch ends early at a step that is to be checked, because answers are read only after the last step of a batch.
    """
    last = 0
    yield 0, 0
    while last < steps:
        first = last + 1
        last = min(last + size, steps)
        if check:
            last = min(last, -(-first // check) * check)
        yield first, last


def show(run: Run, report: Report, terminal: Terminal, options: argparse.Namespace, outputs: Outputs) -> None:
    """Print, check and record the answers after the steps so far."""
    step = report.steps
    is_last = step == options.steps
    if options.print_changes or outputs.has_changes:
        watch = run.questions["watch"]
        assert isinstance(watch, Watch)
        for changed in watch.changes():
            if options.print_changes and step:
                terminal.print(change_line(changed, run.upgrade))
            at, name, old, new = changed
            outputs.change(at, [(name, old), (name, new)][not at :], [-1, 1][not at :])
    if step == 0:
        report.initial = run.answers(0)
        terminal.print("initial answers:", *described(report.initial))
    if options.check and (step % options.check == 0 or is_last):
        check(run, step)
    if options.plot and (is_last or step - report.drawn >= options.steps / POINTS):
        report.history.append((step, run.answers(step)))
    if is_last:
        report.final = run.answers(step)
        report.updates = int(run.upgrade.starts[step + 1] - run.upgrade.starts[1])
    elif step and terminal.is_due():
        terminal.progress(report, run.answers(step))


def change_line(change: tuple[int, str, int, int], upgrade: Upgrade) -> str:
    """Return a change of a watched answer as a line of text."""
    step, name, old, new = change
    return f"step {step} ({upgrade.origin(step)}): {name} {old:,} -> {new:,} ({new - old:+,})"


def check(run: Run, step: int) -> None:
    """Raise `CheckError` if an answer after a step differs from the one computed from scratch."""
    expected = graph_oracle.answers(run.upgrade.names, *run.upgrade.edges_at(step), run.watch, run.questions)
    found: Answers = run.answers(step)
    for name, right in expected.items():
        if found[name] != right:
            raise CheckError(f"after step {step} the answer {name!r} is {found[name]}; computed from scratch: {right}")


def watched(upgrade: Upgrade, options: argparse.Namespace) -> dict[str, int]:
    """Return the numbers of the packages to watch. Raises `DataError` if one is in neither file."""
    for name in () if options.watch else WATCHED:
        if name not in upgrade.names:
            raise DataError(f"no package is called {name!r}, which is watched by default; name others with --watch")
    return {name: upgrade.package(name) for name in options.watch or WATCHED}


def main() -> int:
    """Run the program; return the exit status."""
    options = parse(list(QUESTIONS))

    def body() -> None:
        with opened("upgrade", options, Config.from_environ().process == 0) as outputs:
            begun = clock.perf_counter()
            upgrade = debian.load(options.initial, options.upgrade)
            watch = watched(upgrade, options) if "watch" in options.only else {}
            if options.check:
                graph_oracle.require_scipy()
            seconds = clock.perf_counter() - begun
            options.steps = min(options.steps, upgrade.steps)
            report, *_ = execute(lambda worker: replay(worker, upgrade, watch, options, outputs))
            if report is not None:
                report.load_seconds = seconds
                outputs.finish(report.result())

    return status_of("upgrade", body)


if __name__ == "__main__":
    sys.exit(main())
