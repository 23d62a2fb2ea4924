"""What one process knows of its own workers, looked at from another thread a few times a second.

Most of it is there anyway: what a worker does, queues, frontiers, activations, the sizes of traces. It is read without
the worker's help, and noted nowhere. Only the time and the records of operators are counted for this (`Log.count`), and
the epochs of the first worker (`latency`).

**Bounded cost.** An activation that is counted takes about a microsecond longer. Counting may take `SHARE` of the time,
which the workers of a process divide, because they have one core together. If counting all activations of a worker
would take longer than its part, it counts about `BUDGET` of them. It begins again once what that took is, on the
average, less than its part. This includes what was counted while nobody knew yet that there would be many. The numbers
are extrapolated from what was counted: to all of the time between the looks, and to the time until the next part in
proportion to the activations, of which the number is always known. A worker with few activations counts them all.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from timely.dataflow.dataflow import Dataflow
from timely.dataflow.explain import EVERYWHERE, held_here
from timely.dataflow.operator import Operator
from timely.live.latency import Epoch, Epochs
from timely.live.shape import Diagram, shape_of
from timely.order import Time
from timely.worker.status import run_of, running_workers, status, steady

if TYPE_CHECKING:
    from timely.worker.worker import Worker

BUDGET = 1000
"""How many activations of a worker are counted in a part of the time, about."""
SHARE = 0.003
"""The most that counting may take of the time of a process whose workers run many activations, about."""
PERIOD_NANOSECONDS = 500_000_000
"""The usual time between two looks. Looks that follow each other sooner do not make counting stop sooner."""
_ACTIVATION_NANOSECONDS = 1500
"""What counting takes for an activation with its messages."""
LONGEST_PAUSE = 20
"""After this many looks a worker counts again, whatever it took before."""
SHOWN = 20
"""At most this many lines are shown of what holds a dataflow up on one worker."""

RUNS, NANOSECONDS, RECEIVED, SENT, QUEUED, ROWS, BYTES = range(7)
"""The columns of a node's numbers: activations, their time, records in and out, messages queued, and what it keeps."""
TEND_EVERY = 20
"""After this many looks the size of a trace is read again although its operator did not run: its worker may tidy it."""


@dataclass
class DataflowSeen:
    """A dataflow on a worker: a row of seven numbers for each operator and then each function in line."""

    rows: NDArray[np.int64]
    frontiers: dict[int, tuple[Time, ...]]
    """The frontier at each operator's output, or at its input if it has none; on the first worker only."""


@dataclass
class WorkerSeen:
    """A worker: what it does, in words, and its dataflows by number."""

    index: int
    doing: str
    line: str
    dataflows: dict[int, DataflowSeen] = field(default_factory=dict)
    progress_bytes: int = 0
    """The bytes of the progress that it has sent to other processes."""


class _Totals:
    """The numbers of one dataflow on one worker; those counted are extrapolated over the time without counting."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._operators = len(dataflow.operators)
        self._receivers = [port.operator.index for port in dataflow.channels]
        ports = [port for operator in dataflow.operators for port in operator.inputs]
        self._ports, self._owners = ports, np.array([port.operator.index for port in ports], np.int64)
        self._keeping = [operator for operator in dataflow.operators if operator.kept is not None]
        self._sized_at: dict[int, int] = {}
        self._looks = 0
        # What was counted before somebody looked is not shown: numbers begin at zero.
        self._before = self._counted()
        self._more = np.zeros_like(self._before)
        """By how much the counts grew when they were measured last, in all of the time between two looks."""
        self._rows = np.zeros((self._operators + len(dataflow.inlines), 7), np.int64)
        self._ahead = 0, 0
        """The operator whose activation goes on, and the nanoseconds of it that are in the rows already."""

    def go_on(self, operator: int, nanoseconds: int) -> None:
        """Add to the time of an operator whose activation goes on: it is counted only when it has ended."""
        self._rows[operator, NANOSECONDS] += nanoseconds
        self._ahead = operator, nanoseconds + (self._ahead[1] if self._ahead[0] == operator else 0)

    def activations(self) -> NDArray[np.int64]:
        return np.array([operator.activations for operator in self._dataflow.operators], np.int64)

    def look(
        self, activations: NDArray[np.int64], factor: float, was_measured: bool, goes_on: bool
    ) -> NDArray[np.int64]:
        """Return the numbers; those counted since the last look, or else measured last, are multiplied by a factor."""
        if was_measured:
            now = self._counted()
            more, self._before = now - self._before, now
        else:
            more = self._more
        if factor != 1.0:
            more = np.rint(more * factor).astype(np.int64)
        if was_measured:
            self._more = more
        rows = self._rows.copy()
        rows[:, NANOSECONDS : SENT + 1] += more
        node, ahead = self._ahead
        if ahead and not goes_on:
            rows[node, NANOSECONDS] -= ahead if more[node, 0] >= ahead else 0  # else it was not counted
            self._ahead = 0, 0
        rows[: self._operators, RUNS] = activations
        queued = [len(port.queue) for port in self._ports]
        rows[: self._operators, QUEUED] = np.bincount(self._owners, queued, self._operators)
        self._looks += 1
        for operator in self._keeping:
            at = operator.activations
            if self._sized_at.get(operator.index) != at or not (self._looks + operator.index) % TEND_EVERY:
                self._sized_at[operator.index] = at
                assert operator.kept is not None
                rows[operator.index, ROWS : BYTES + 1] = operator.kept()
        self._rows = rows
        return rows

    def _counted(self) -> NDArray[np.int64]:
        """Return the nanoseconds and the records in and out that were counted so far, for each node."""
        dataflow, count = self._dataflow, self._operators
        found = np.zeros((count + len(dataflow.inlines), 3), np.int64)
        counts = dataflow.counts
        if counts is not None:
            found[:count, 0] = counts.nanoseconds
            np.add.at(found[:, 1], self._receivers, np.array(counts.received, np.int64))
            found[:count, 2] = counts.emitted
            found[count:, 1], found[count:, 2] = counts.inline_received, counts.inline_sent
        return found


class CountWatch:
    """Counts on one worker while somebody looks. What `_start` and `_stop` do happens in the worker's thread.

    **When it counts.** Each look computes, in nanoseconds (`_count_on`), from the activations since the last look:

        allowed = SHARE * time elapsed (at least PERIOD) / workers
        took    = activations * part of the time in which they were counted * 1500 + time of switching
        owed    = owed + took - allowed, but at least 0 and at most LONGEST_PAUSE * allowed
        is_busy = activations * 1500 > allowed

    A worker that is busy counts only while nothing is owed, and then about `BUDGET` activations. Any other worker goes
    on counting, or begins once nothing is owed. Switching is to begin and to end counting: `_switching` adds up its
    time, and `_paid` is how much of that `owed` has received.

    **What is shown.** A factor extrapolates what was counted in a part of the time (`look`):

        if some was counted since the last look:   growth of the counts * time elapsed / time in which it counted
        otherwise:                                 the last such product * activations / activations then (`_measured`)
    """

    def __init__(self, worker: Worker, measures_epochs: bool) -> None:
        self.worker = worker
        self._measures_epochs = measures_epochs
        self._totals: dict[int, _Totals] = {}
        self._fronts: dict[int, list[tuple[int, int]]] = {}
        """For each dataflow, its operators with the locations whose frontiers are shown."""
        self._epochs: dict[int, Epochs] = {}
        self._uncount: Callable[[], None] | None = None
        self._has_ended = False
        self._began = 0
        """When counting began, if it is going on."""
        self._counted = 0
        """For how many nanoseconds the worker has counted before."""
        self._seen = clock.perf_counter_ns(), 0
        """When the worker was looked at, and for how long it had counted."""
        self._switching = 0
        """How much processor time it has taken so far to begin and end counting."""
        self._paid = 0
        """How much of that `_owed` has received."""
        self._owed = 0.0
        """By how many nanoseconds counting has taken longer than its part of the time."""
        self._measured = 0
        """How many activations there were between the two looks between which some were counted last."""
        self._inside: tuple[int, int, int] | None = None
        """The dataflow, the operator and the number of the activation in which the worker was at the last look."""
        self._activations = -1
        """How many activations there had been, or -1 before the first look, after which nothing is counted yet."""

    def end(self) -> None:
        self._has_ended = True
        self.worker.call(self._stop)

    def look(self, workers: int) -> WorkerSeen:
        """Return what the worker does, and has done. It counts for its part of the `workers` of the process."""
        seen = status(self.worker)
        where = seen.operator or seen.doing
        found = WorkerSeen(self.worker.index, where, "" if seen.line is None else str(seen.line))
        found.progress_bytes = self.worker.allocator.progress_bytes
        # Read once: the worker may begin or stop counting meanwhile.
        now, began = clock.perf_counter_ns(), self._began
        counted = self._counted + (now - began if began else 0)
        elapsed, measured = now - self._seen[0], counted - self._seen[1]
        # What is counted first is shown as it is, and so is what was counted in nearly all of the time.
        factor = elapsed / measured if measured > 0 and self._seen[1] else 1.0
        factor = factor if factor > 1.05 else 1.0
        self._seen = now, counted
        dataflows = self.worker.dataflows
        for dataflow in dataflows:
            if dataflow.index not in self._totals:
                self._totals[dataflow.index] = _Totals(dataflow)
        activations = {dataflow.index: self._totals[dataflow.index].activations() for dataflow in dataflows}
        running = sum(int(each.sum()) for each in activations.values())
        inside = self._go_on(elapsed)
        made = running - self._activations if self._activations >= 0 else None
        self._activations = running
        if measured > 0:
            self._measured = made or 0
        elif made is not None:
            factor = made / self._measured if self._measured else 0.0
        for dataflow in dataflows:
            totals = self._totals[dataflow.index]
            goes_on = inside is not None and inside[0] == dataflow.index
            rows = steady(totals.look, activations[dataflow.index], factor, measured > 0, goes_on)
            found.dataflows[dataflow.index] = DataflowSeen(rows, self._frontiers(dataflow))
        for gone in self._totals.keys() - {dataflow.index for dataflow in dataflows}:
            del self._totals[gone]
            self._fronts.pop(gone, None)
            self._epochs.pop(gone, None)
        if made is not None:
            self._count_on(
                made, measured / max(elapsed, 1), elapsed, SHARE * max(elapsed, PERIOD_NANOSECONDS) / workers
            )
        return found

    def _go_on(self, elapsed: int) -> tuple[int, int, int] | None:
        """Return which activation has gone on since the last look, after adding its time, or None if none has."""
        before, self._inside = self._inside, None
        for dataflow in self.worker.dataflows:
            running = dataflow.running
            if isinstance(running, Operator):
                self._inside = dataflow.index, running.index, running.activations
                if self._inside == before:
                    self._totals[dataflow.index].go_on(running.index, elapsed)
                    return before
        return None

    def epochs(self) -> dict[int, list[Epoch]]:
        """Return the epochs of each dataflow that have ended since the last time, and measure more."""
        found, wanting = {}, []
        for index, epochs in tuple(self._epochs.items()):
            found[index], is_wanting = epochs.drain()
            if is_wanting:
                wanting.append(epochs)
        new = [each for each in self.worker.dataflows if each.index not in self._epochs and each.is_logged]
        if self._measures_epochs and (wanting or new) and not self._has_ended:
            self.worker.call(lambda: self._follow(wanting, new))
        return found

    def _follow(self, wanting: list[Epochs], new: list[Dataflow]) -> None:
        if not self._has_ended:
            for epochs in wanting:
                epochs.follow()
            for dataflow in new:
                if not dataflow.is_closed and dataflow.index not in self._epochs:
                    self._epochs[dataflow.index] = Epochs(dataflow)

    def _frontiers(self, dataflow: Dataflow) -> dict[int, tuple[Time, ...]]:
        if not self._measures_epochs:
            return {}
        shown = self._fronts.get(dataflow.index)
        if shown is None:
            scheduled = [operator for operator in dataflow.operators if operator.inline is None]
            ports = [port for operator in scheduled for port in (operator.outputs or operator.inputs)[:1]]
            shown = self._fronts[dataflow.index] = [(port.operator.index, port.location) for port in ports]
        fronts = dataflow.tracker.fronts()
        return {operator: fronts[location] for operator, location in shown}

    def _count_on(self, activations: int, share: float, elapsed: int, allowed: float) -> None:
        """Count until the next look, or for a part of the time if counting all activations takes longer than allowed.

        `share` is the part of the time since the last look in which they were counted. What this took beyond what is
        allowed is waited for first. But a worker with few activations goes on counting, because stopping takes longer.
        """
        switching = self._switching
        took = activations * share * _ACTIVATION_NANOSECONDS + switching - self._paid
        self._paid = switching
        self._owed = min(max(0.0, self._owed + took - allowed), LONGEST_PAUSE * allowed)
        if self._has_ended:
            return
        is_busy = activations * _ACTIVATION_NANOSECONDS > allowed
        if self._owed and (is_busy or not self._began):
            if self._began:
                self.worker.call(self._stop)
            return
        if not self._began:
            self.worker.call(self._start)
        if is_busy:
            self.worker.call_after(min(1.0, BUDGET / activations) * elapsed / 1e9, self._stop)

    def _start(self) -> None:
        # A look may have asked for this twice before the worker stepped, or have ended meanwhile.
        if self._uncount is None and not self._has_ended:
            spent = clock.thread_time_ns()
            self._uncount = self.worker.log.count()
            self._began = clock.perf_counter_ns()
            self._switching += clock.thread_time_ns() - spent

    def _stop(self) -> None:
        if self._uncount is not None:
            spent, ended = clock.thread_time_ns(), clock.perf_counter_ns()
            self._uncount()
            self._uncount = None
            self._counted += ended - self._began
            self._began = 0
            self._switching += clock.thread_time_ns() - spent
        if self._has_ended:
            for epochs in self._epochs.values():
                epochs.end()


@dataclass
class ProcessSeen:
    """The workers of one process, by its index in the run, and the epochs that have ended, by dataflow."""

    process: int
    pid: int
    workers: list[WorkerSeen]
    epochs: dict[int, list[Epoch]]
    run: str = ""
    """The name of their run, because workers and dataflows of another one have the same numbers."""


class Looking:
    """Looks at the workers of a run of this process, and then of those that begin later, until it is closed.

    Only one thread may use it.
    """

    def __init__(self, process: int = 0) -> None:
        self._process = process
        self._watches: dict[Worker, CountWatch] = {}

    def look(self) -> ProcessSeen:
        workers = shown_workers()
        for worker in workers:
            if worker not in self._watches:
                self._watches[worker] = CountWatch(worker, measures_epochs=worker.index == 0)
        # They have ended: nobody steps them any more, so they cannot be asked to stop counting, and need not be.
        for worker in self._watches.keys() - set(workers):
            del self._watches[worker]
        watches = [self._watches[worker] for worker in workers]
        epochs: dict[int, list[Epoch]] = {}
        for watch in watches:
            epochs.update(watch.epochs())
        run = run_of(workers[0]) if workers else ""
        return ProcessSeen(self._process, os.getpid(), [watch.look(len(watches)) for watch in watches], epochs, run)

    def close(self) -> None:
        for watch in self._watches.values():
            watch.end()
        self._watches.clear()


def shown_workers() -> list[Worker]:
    """Return the workers of one run of this process: of several at once, the one that began first."""
    workers = running_workers()
    return [worker for worker in workers if run_of(worker) == run_of(workers[0])]


def shapes() -> list[Diagram]:
    """Return the shapes of the dataflows of this process's first worker."""
    return [steady(shape_of, dataflow) for worker in shown_workers()[:1] for dataflow in worker.dataflows]


def held(dataflow: int) -> list[str]:
    """Return a line for each thing by which a worker of this process holds up a dataflow."""
    lines: list[str] = []
    for worker in shown_workers():
        for each in worker.dataflows:
            if each.index == dataflow:
                lines += steady(held_here, each, EVERYWHERE, ())[:SHOWN]
    return lines
