"""The program of a graph job: each worker runs it.

Each worker inserts its share of the graph in epoch 0. After that only worker 0 has an input. It reads the changes,
makes each of them in an epoch of its own, and receives the answer. The library distributes the work, so this asymmetry
costs little: the changes are few beside the graph.
"""

from __future__ import annotations

import argparse
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from differential import Collection, InputSession, new_input
from differential.jobs.gathered import Delta, Gathered
from differential.jobs.input.changes import EpochChange, OpenedChanges
from differential.jobs.input.edges import EdgeBatch, OpenedGraph, concatenated
from differential.jobs.input.faults import Fault, Faults
from differential.jobs.input.form import integer_of
from differential.jobs.input.generate import Replacements
from differential.jobs.interrupt import Interrupt
from differential.jobs.job import Answer, Inputs, Job
from differential.jobs.presence import EdgePresence
from differential.jobs.report import Report
from timely import Worker
from timely.errors import DataError
from timely.services import Display

AHEAD = 4096
"""How many changes are read at once, to ask in one epoch for all edges that they remove."""

WAIT = 0.05
"""Seconds between two looks at a file that is followed."""


@dataclass
class Task:
    """What the workers of a process share: the job, its options, its input, and Ctrl-C."""

    job: Job
    options: argparse.Namespace
    graph: OpenedGraph
    reopened: Callable[[], OpenedGraph] | None
    """Opens the graph once more, with faults of its own, if several workers may share it and it can be read again."""
    changes: OpenedChanges | Replacements | None
    faults: Faults
    interrupt: Interrupt


class JobOutcome(NamedTuple):
    """What worker 0 has at the end."""

    report: Report
    answer: Answer
    edges: Answer
    """The edges after all changes, if the answer is to be checked; otherwise nothing."""
    nodes: Mapping[str, NDArray[np.int64]]
    faults: list[Fault]


Emit = Callable[[Any, Delta], None]
"""Receives the label of an epoch and how the answer changed in it."""


class JobRun:
    """One run of a job on one worker."""

    def __init__(self, worker: Worker, task: Task, display: Display, emit: Emit | None) -> None:
        self._worker = worker
        self._task = task
        self._display = display
        self._emit = emit
        self._is_first = worker.index == 0
        self._timed: list[EdgeBatch] = []
        self._report = Report(task.graph.label)
        self._nodes: dict[str, NDArray[np.int64]] = {}
        job, options = task.job, task.options
        with worker.dataflow(job.name) as scope:
            self._edges, edges = new_input(scope, name="edges")
            self._sessions: dict[str, InputSession] = {}
            given: dict[str, Collection] = {}
            for nodes in job.nodes:
                self._sessions[nodes.name], given[nodes.name] = new_input(scope, name=nodes.name)
            self._answer = Gathered(job.question(Inputs(edges, given), options))
            width = 3 if job.is_weighted(options) else 2
            self._presence = EdgePresence(scope, edges, width) if options.changes is not None else None
            self._all_edges = Gathered(edges, "edges to check") if options.check else None
            self._tally, tally = new_input(scope, name="rows read")
            self._read = Gathered(tally, "rows read")
            self._rejects, rejects = new_input(scope, name="rejected lines")
            self._rejected = Gathered(rejects, "rejected lines")
        self._inputs = [self._edges, *self._sessions.values()]
        self._gathered = [self._answer, self._read, self._rejected]
        if self._presence is not None:
            self._inputs.append(self._presence.session)
            self._gathered.append(self._presence.found)
        if self._all_edges is not None:
            self._gathered.append(self._all_edges)

    def __call__(self) -> JobOutcome | None:
        """Load the graph and make all changes. Return the outcome on worker 0, None on the others."""
        self._load()
        if not self._is_first:
            # All of this share is in epoch 0. An input that stayed open would keep later epochs open.
            self._finish()
            return None
        # Not before the first answer: until then Ctrl-C ends the job at once, as it does one that does not follow.
        self._task.interrupt.expect()
        given = self._task.changes
        if given is not None or self._timed:
            total = None if given is None else given.total
            self._display.begin("making changes", total, is_endless=self._task.options.follow)
        if isinstance(given, OpenedChanges):
            times = (int(edges.time.max()) for edges in self._timed if edges.time is not None)
            given.begin_after(max(times, default=0))
        for changes in (self._arrivals(), () if given is None else given.epochs()):
            for chunk in _chunks(changes, AHEAD, self._wait):
                self._change(chunk)
        end = self._edges.epoch
        self._finish()
        return self._outcome(end)

    def _finish(self) -> None:
        """Close the inputs that are still open, and wait until everything is final."""
        for session in self._inputs:
            session.close()
        self._worker.step_while(lambda: not all(each.is_done for each in self._gathered))

    # The graph

    def _load(self) -> None:
        """Insert this worker's share of the graph in epoch 0, and on worker 0 wait for the first answer."""
        worker, graph = self._worker, self._task.graph
        begun = clock.perf_counter()
        self._display.begin(f"reading {graph.label}", self._own_total())
        rows, done = 0, 0
        noun = "edges" if worker.peers == 1 else "edges on worker 0"

        def advance(amount: int) -> None:
            nonlocal done
            done += amount
            self._display.advance(done, rows, noun)

        first: EdgeBatch | None = None
        for edges in self._share(advance):
            first = first or edges
            self._check_lengths(edges, graph.label)
            columns = (edges.source, edges.target)
            self._edges.insert(*columns, *(() if edges.weight is None else (edges.weight,)))
            self._edges.flush()
            rows += len(edges.source)
            worker.step_while(lambda: self._edges.is_congested)
        if self._is_first:
            # After everything was read: only then are the names of nodes complete.
            self._insert_nodes(self._timed[0] if self._timed else first)
        # The workers of a process share its faults. Whoever takes them first reports them, and the sum is the same.
        rows += sum(len(edges.source) for edges in self._timed)
        self._tally.insert(worker.index, rows, self._task.faults.take_count())
        for fault in self._task.faults.take():
            self._rejects.insert(*fault)
        self._tally.close()
        self._rejects.close()
        self._report.read_seconds = clock.perf_counter() - begun
        if self._is_first:
            self._display.begin("computing the answer", None)
            begun = clock.perf_counter()
            stop = self._display.listen(worker)
            self._advance()
            stop()
            self._report.initial_seconds = clock.perf_counter() - begun
            self._publish({0: min([0, *(int(edges.time.min()) for edges in self._timed if edges.time is not None)])})

    def _own_total(self) -> float | None:
        """Return how much this worker reads, if that is known: its share, or everything if it alone reads."""
        graph = self._task.graph
        is_alone = graph.names is not None or self._task.options.time is not None
        return graph.total if graph.total is None or is_alone else graph.total / self._worker.peers

    def _share(self, advance: Callable[[int], None]) -> Iterator[EdgeBatch]:
        """Yield the edges of this worker's share that are there from the beginning."""
        worker, graph = self._worker, self._task.graph
        if self._task.options.time is None:
            yield from graph.share(worker.index, worker.peers, advance)
        elif self._is_first:
            self._timed = list(graph.share(0, 1, advance))

    def _arrivals(self) -> Iterator[EpochChange]:
        """Yield the edges that have times, in the order of their times, those of one time together."""
        if not self._timed:
            return
        source, target, weight, time = concatenated(self._timed)
        order = np.argsort(time, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(time[order])) + 1):
            ones = np.ones(len(rows), np.int64)
            weights = None if weight is None else weight[rows]
            yield EpochChange(int(time[rows[0]]), 0, source[rows], target[rows], weights, ones)

    def _insert_nodes(self, first: EdgeBatch | None) -> None:
        """Insert the nodes that the command line names. `first` is the first batch that this worker has read."""
        for nodes in self._task.job.nodes:
            texts = getattr(self._task.options, nodes.name)
            if texts is not None:
                found = [self._number(text, nodes.name) for text in texts]
            else:
                found = self._first_source(first) if nodes.has_default else []
            self._nodes[nodes.name] = np.array(found, np.int64)
            if found and self._task.job.is_weighted(self._task.options):
                # A distance of 0 in the type of the weights: a sum has one type.
                zero = np.zeros(len(found), np.float64 if self._task.graph.weight == "float" else np.int64)
                self._sessions[nodes.name].insert(self._nodes[nodes.name], zero)
            elif found:
                self._sessions[nodes.name].insert(self._nodes[nodes.name])

    def _first_source(self, first: EdgeBatch | None) -> list[int]:
        """Return the source of the first edge of the graph, if it has any."""
        # Of a graph that workers share, another worker may have read it: what comes before may have no edge.
        if self._task.reopened is not None and self._worker.peers > 1 and not self._timed:
            first = next(self._task.reopened().share(0, 1), None)
        return [] if first is None else [int(first.source[0])]

    def _check_lengths(self, edges: EdgeBatch | EpochChange, place: str) -> None:
        """Raise DataError for an edge of negative length, with its place and the names of its nodes."""
        if edges.weight is None or not (edges.weight < 0).any():
            return
        worst = int(edges.weight.argmin())
        source, target = self._ends(edges.source[worst], edges.target[worst])
        length = edges.weight[worst]
        raise DataError(f"{place}: {source} -> {target} has a negative length, {length}")

    def _ends(self, *nodes: Any) -> list[str]:
        names = self._task.graph.names
        return [str(node) for node in nodes] if names is None else names.text(np.array(nodes))

    def _number(self, text: str, option: str) -> int:
        names = self._task.graph.names
        if names is not None:
            return names.number_of(text)
        node = integer_of(text)
        if node is None:
            raise DataError(f"--{option} {text:.80}: the nodes of {self._task.graph.label} are integers of 64 bits")
        return node

    # Changes

    def _change(self, chunk: list[EpochChange]) -> None:
        """Make changes, `options.batch` at a time, each in an epoch of its own."""
        if self._presence is not None and (unknown := self._presence.unknown(chunk)):
            # All sessions are in the same epoch here: `_advance` brings them there.
            epoch = self._presence.session.epoch
            self._presence.ask(unknown)
            self._advance()
            self._presence.learn(unknown, epoch)
        changes, size = iter(chunk), min(self._task.options.batch, len(chunk))
        while not self._task.interrupt.is_overdue() and (batch := list(islice(changes, size))):
            self._make(batch)

    def _make(self, batch: list[EpochChange]) -> None:
        if self._presence is not None:
            batch = [self._presence.admitted(change, partial(self._refuse, change)) for change in batch]
        labels = {}
        begun = clock.perf_counter()
        for change in batch:
            self._check_lengths(change, self._place(change))
            columns = (change.source, change.target)
            self._edges.update(*columns, *(() if change.weight is None else (change.weight,)), diff=change.diff)
            labels[self._edges.epoch] = change.epoch
            self._edges.advance_to(self._edges.epoch + 1)
        self._advance(self._edges.epoch)
        self._report.took(len(batch), clock.perf_counter() - begun)
        self._report.updates += sum(len(change.diff) for change in batch)
        self._publish(labels)
        self._display.advance(self._report.changes, self._report.changes, "changes")

    def _place(self, change: EpochChange) -> str:
        """Return where a change comes from: a line of the changes, or the graph, if its edges have times."""
        changes = self._task.changes
        return self._task.graph.label if changes is None or not change.line else f"{changes.label}, line {change.line}"

    def _refuse(self, change: EpochChange, edge: tuple[Any, ...]) -> None:
        assert self._task.changes is not None
        text = " -> ".join(self._ends(*edge[:2])) + "".join(f" ({weight})" for weight in edge[2:])
        self._task.faults.add(Fault(self._task.changes.label, change.line, text, "removes an edge that is not there"))

    def _advance(self, epoch: int | None = None) -> None:
        """Complete an epoch, by default the present one, and wait until everything is final before it."""
        epoch = self._edges.epoch + 1 if epoch is None else epoch
        for session in self._inputs:
            # `ask` has advanced its session already.
            if session.epoch < epoch:
                session.advance_to(epoch)

        def waits() -> bool:
            self._display.computing()
            return any(each.less_than(epoch) for each in self._gathered)

        self._worker.step_while(waits)

    def _publish(self, labels: Mapping[int, Any]) -> None:
        """Take the changes of the answer in these epochs, and emit them."""
        for delta in self._answer.deltas(self._edges.epoch):
            if (delta.diffs != 0).any() and self._emit is not None:
                # Epochs without a label are those of questions, in which no edge and so no answer changes.
                self._emit(labels.get(delta.epoch, delta.epoch), delta)

    def _wait(self) -> None:
        """Wait for changes to arrive in a file that is followed."""
        self._worker.step()
        clock.sleep(WAIT)

    def _outcome(self, end: int) -> JobOutcome:
        """Return what there is after the last change; `end` is the epoch in which the inputs were closed."""
        for each in self._gathered:
            each.deltas(end + 1)
        report = self._report
        # There are columns: each worker has inserted its row.
        _, rows, rejected = self._read.answer().columns
        report.edges, report.rejected = int(rows.sum()), int(rejected.sum()) + self._task.faults.take_count()
        report.differences = self._answer.differences
        columns = self._rejected.answer().columns
        faults = [*(Fault(*row) for row in zip(*(column.tolist() for column in columns))), *self._task.faults.take()]
        edges = Answer((), np.zeros(0, np.int64)) if self._all_edges is None else self._all_edges.answer()
        return JobOutcome(report, self._answer.answer(), edges, self._nodes, faults)


def _chunks(changes: Iterable[EpochChange | None], size: int, wait: Callable[[], None]) -> Iterator[list[EpochChange]]:
    """Yield the changes in lists: full ones, or what has arrived. Wait if nothing has."""
    chunk: list[EpochChange] = []
    for change in changes:
        if change is not None:
            chunk.append(change)
        if chunk and (change is None or len(chunk) == size):
            yield chunk
            chunk = []
        elif change is None:
            wait()
    if chunk:
        yield chunk
