"""The cost of the log: without its hooks, without subscribers, and with subscribers to some or all events.

The same work is done in four ways, in turn in one process, and each round starts with another way: with the hooks of
the log removed from the sources; unchanged, without subscribers; with a subscriber to activations; and with a
subscriber to all events. The work is a number of barriers, or of changes to a graph whose distances are maintained,
each of which is undone. The time is that of the thread, which other processes affect less. The ratios are to the first
way: the median over the rounds of the ratios within a round. (The first way still compares with None for each batch
that a trace receives or makes.) If dataflows are compiled, hooks cannot be removed, and the ratios are to the second
way.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from benchmarks import barrier, bfs
from benchmarks.graphs import RandomGraph
from benchmarks.harness import Case, Figures, check
from benchmarks.incremental import Fingerprint
from differential import new_input
from differential.trace.events import TRACES
from timely import Worker, execute_directly
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.region import Region
from timely.observe import events
from timely.observe.log import Log

WITHOUT, NOBODY, ACTIVATIONS, EVERYTHING = "without hooks", "no subscriber", "activations", "everything"
WAYS: dict[str, tuple[Any, ...] | None] = {
    **({WITHOUT: None} if inspect.isfunction(Dataflow._step) else {}),
    NOBODY: (),
    ACTIVATIONS: events.SCHEDULE,
    EVERYTHING: (
        *events.BUILT,
        *events.SCHEDULE,
        *events.INLINE,
        *events.MESSAGES,
        *events.PROGRESS,
        *events.CAPABILITIES,
        *TRACES,
        events.FrontierChanged,
        events.StateResized,
        events.Parked,
        events.Unparked,
    ),
}
REFERENCE = next(iter(WAYS))
LIMITS = {f"{NOBODY}, ratio": 1.02}

HOOKED: list[tuple[type, str]] = [
    (Worker, "_step"),
    *((Dataflow, name) for name in ("_step", "send", "receive", "_send_progress", "_propagate")),
    (Region, "_run_operator"),
    *((InputPort, name) for name in ("drain", "deliver", "_push_here")),
    *((OutputPort, name) for name in ("hold", "move", "release")),
]
"""The functions that check for a recorder."""

CASES = [
    Case("logging barrier", "logging", {"work": "barrier", "rounds": 100, "size": 1000}, limits=LIMITS),
    Case("logging bfs 100k/1M", "logging", {"work": "bfs", "rounds": 100, "size": 10}, limits=LIMITS),
]


def measure(work: str, rounds: int, size: int) -> Figures:
    """Return the microseconds of a barrier, or of a change, in each way, and the ratios."""
    spent = _barriers(rounds, size) if work == "barrier" else _changes(rounds, size)
    figures = {f"{way}, us": float(np.median(seconds)) * 1e6 / size for way, seconds in spent.items()}
    reference = np.array(spent[REFERENCE])
    for way, seconds in spent.items():
        if way != REFERENCE:
            figures[f"{way}, ratio"] = float(np.median(np.array(seconds) / reference))
    return figures


def _barriers(rounds: int, size: int) -> dict[str, list[float]]:
    def run(_: int, way: str) -> float:
        def program(worker: Worker) -> float:
            with listening(worker.log, way):
                begun = clock.thread_time()
                marks = barrier._program(worker, size)
                seconds = clock.thread_time() - begun
            check(len(marks) == size, f"{len(marks)} notifications")
            return seconds

        return execute_directly(program)

    return _in_turn(rounds, run)


def _changes(rounds: int, size: int) -> dict[str, list[float]]:
    graph = RandomGraph(100_000, 1_000_000)

    def program(worker: Worker) -> dict[str, list[float]]:
        kept: list[Any] = []
        with worker.dataflow() as scope:
            edges, stream = new_input(scope, name="edges")
            probe = bfs.definition(stream).stream.inspect_batch(lambda _, batch: kept.append(batch)).probe()

        def go_on() -> None:
            edges.advance_to(edges.epoch + 1)
            worker.step_while(lambda: probe.less_than(edges.time))

        def answer() -> str:
            for updates in kept:
                fingerprint.add(updates.columns, updates.each_diff())
            kept.clear()
            return str(fingerprint)

        edges.insert(*graph.initial)
        go_on()
        fingerprint = Fingerprint()
        before = answer()

        def run(number: int, way: str) -> float:
            with listening(worker.log, way):
                begun = clock.thread_time()
                for change in range(number * size, (number + 1) * size):
                    source, target, diffs = graph.changes(change, 1)
                    edges.update(source, target, diff=diffs)
                    go_on()
                    edges.update(source, target, diff=-diffs)
                    go_on()
                return (clock.thread_time() - begun) / 2

        spent = _in_turn(rounds, run)
        check(answer() == before, "undoing the changes did not restore the answer")
        edges.close()
        return spent

    return execute_directly(program)


def _in_turn(rounds: int, run: Callable[[int, str], float]) -> dict[str, list[float]]:
    """Return the seconds of each round in each way, without the first rounds, in which code is loaded."""
    spent: dict[str, list[float]] = {way: [] for way in WAYS}
    ways = list(WAYS)
    for number in range(rounds):
        for place in range(len(ways)):
            way = ways[(number + place) % len(ways)]
            spent[way].append(run(number, way))
    return {way: seconds[rounds // 20 :] for way, seconds in spent.items()}


@contextmanager
def listening(log: Log, way: str) -> Iterator[None]:
    """Run the block in one of the ways."""
    kinds = WAYS[way]
    if kinds is None:
        originals = {(owner, name): getattr(owner, name) for owner, name in HOOKED}
        for (owner, name), function in _unhooked().items():
            setattr(owner, name, function)
        try:
            yield
        finally:
            for (owner, name), function in originals.items():
                setattr(owner, name, function)
        return
    stop = log.listen(lambda _: None, *kinds)
    try:
        yield
    finally:
        stop()


@cache
def _unhooked() -> dict[tuple[type, str], Any]:
    """Return the functions that check for a recorder, without these checks.

    The function that steps all dataflows also keeps what the worker is doing, for reports, and checks for records to
    deliver.
    """
    made = {}
    for owner, name in HOOKED:
        function = getattr(owner, name)
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        before = ast.dump(tree)
        _Unhook().visit(tree)
        check(ast.dump(tree) != before, f"no hook was found in {function.__qualname__}")
        found: dict[str, Any] = {}
        exec(
            compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec"), function.__globals__, found
        )
        made[owner, name] = found[name]
    return made


class _Unhook(ast.NodeTransformer):
    """Removes the code that exists for subscribers."""

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        asked = ast.unparse(node.test)
        if asked.endswith("recorder is not None") or asked == "self.log.pending":
            return None
        return node.body if asked.endswith("recorder is None") else node

    def visit_Assign(self, node: ast.Assign) -> Any:
        return None if ast.unparse(node.targets[0]) in _NOTES else node

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        return node if node.handlers or node.finalbody else node.body


_NOTES = ("recorder", "activity", "activity.step_began", "activity.doing", "(before, activity.doing)")
