"""The state of a job as viewers see it: the numbers of all workers together, and what has changed.

All kinds of display read this one: the page, the terminal, and metrics. `StateChanges.as_data` is what the page
receives twice a second: only the rows of nodes that have changed, so that a quiet job costs nothing to show.
"""

from __future__ import annotations

import base64
import struct
import time as clock
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.live.latency import Epoch, quantiles
from timely.live.looking import NANOSECONDS, QUEUED, RECEIVED, SENT, ProcessSeen, WorkerSeen
from timely.live.shape import Diagram
from timely.order import Time

Rows = NDArray[np.int64]
COUNTED = slice(NANOSECONDS, SENT + 1)
"""The columns that are counted while somebody looks, from zero each time that looking begins."""
LIMITS = tuple(round(factor * 10.0**power, 6) for power in range(-4, 2) for factor in (1, 2.5, 5))
"""Seconds by which the durations of epochs are counted."""
STILL_SECONDS = 2.0
"""After this many seconds without a change of a dataflow's frontiers, viewers see what holds them."""
REMEMBERED = 20
"""How many dataflows that are over are still shown: a session makes one for each question."""
_ROW, _PLACED = struct.Struct("56s"), struct.Struct("=q56s")
_NUMBERS = struct.Struct("=8q")


@dataclass
class WorkerState:
    """What is known of a worker: the totals of its dataflows, and by how much they grew last."""

    seen: WorkerSeen
    process: int
    pid: int
    at: float
    totals: dict[int, Rows] = field(default_factory=dict)
    growth: dict[int, Rows] = field(default_factory=dict)
    counted: Rows = field(default_factory=lambda: np.zeros(7, np.int64))
    """What was counted of its scheduled operators together, those of dataflows that are over included."""
    seconds: float = 0.0
    """Over how long the growth was."""
    _bases: dict[int, Rows] = field(default_factory=dict)
    """What was counted of each dataflow before looking began again."""

    def grow(self, seen: WorkerSeen, at: float, operators: Mapping[int, int]) -> None:
        """Take in what was seen now. Of the rows of a dataflow, the first `operators` are scheduled operators."""
        totals = {index: self._continued(index, dataflow.rows) for index, dataflow in seen.dataflows.items()}
        self.growth = {index: rows - self.totals[index] for index, rows in totals.items() if index in self.totals}
        for index, rows in totals.items():
            more = self.growth.get(index, rows)[: operators.get(index, 0)]
            self.counted[COUNTED] += more[:, COUNTED].sum(axis=0)
        self._bases = {index: base for index, base in self._bases.items() if index in totals}
        self.totals, self.seen = totals, seen
        self.seconds, self.at = at - self.at, at

    def _continued(self, index: int, rows: Rows) -> Rows:
        """Return the numbers of a dataflow, which go on from what was counted before looking began again."""
        before = self.totals.get(index)
        base = self._bases.get(index)
        # `totals` and `seen` have the same dataflows, and counts never decrease while looking goes on.
        if before is not None and (rows[:, COUNTED] < self.seen.dataflows[index].rows[:, COUNTED]).any():
            base = self._bases[index] = before[:, COUNTED]
        if base is None:
            return rows
        rows = rows.copy()
        rows[:, COUNTED] += base
        return rows

    def rate(self, column: int, operators: Mapping[int, int]) -> float:
        """Return how fast a number of all scheduled operators together grew, by second."""
        if self.seconds <= 0:
            return 0.0
        grown = sum(int(rows[: operators.get(index, 0), column].sum()) for index, rows in self.growth.items())
        return grown / self.seconds


@dataclass
class DataflowState:
    """A dataflow: its shape, the numbers of all workers together, its frontiers, and whether it is over."""

    shape: Diagram
    rows: Rows
    operators: int
    frontiers: dict[int, tuple[Time, ...]] = field(default_factory=dict)
    moved_at: float = 0.0
    """When a frontier moved last."""
    is_over: bool = False
    epochs: list[Epoch] = field(default_factory=list)
    """Those that have ended since the last look."""
    taken: list[int] = field(default_factory=lambda: [0] * (len(LIMITS) + 1))
    """How many epochs took up to each limit of `LIMITS`, but more than the limit before; and, last, longer."""
    taken_seconds: float = 0.0
    held: list[str] = field(default_factory=list)
    """What holds the frontiers, if they have not moved for a while."""

    def take_epochs(self, epochs: list[Epoch]) -> None:
        self.epochs = epochs
        for epoch in epochs:
            seconds = epoch.nanoseconds / 1e9
            self.taken[bisect_left(LIMITS, seconds)] += 1
            self.taken_seconds += seconds

    def path(self, node: int) -> str:
        names, scope = [], self.shape.nodes[node].scope
        while scope >= 0:
            names.append(self.shape.scopes[scope].name)
            scope = self.shape.scopes[scope].parent
        return "/".join(reversed(names))


class JobState:
    """Everything that is shown of a job."""

    def __init__(self) -> None:
        self.workers: dict[int, WorkerState] = {}
        self.dataflows: dict[int, DataflowState] = {}
        self.silent: dict[int, float] = {}
        """Processes that do not answer, and since when."""
        self.warnings: Counter[str] = Counter()
        """How many warnings there were of each kind."""
        self._run = ""
        self._begun = clock.monotonic()

    @property
    def seconds(self) -> float:
        return clock.monotonic() - self._begun

    def add_shapes(self, shapes: Iterable[Diagram]) -> None:
        for shape in shapes:
            if shape.dataflow not in self.dataflows:
                operators = sum(node.is_operator for node in shape.nodes)
                rows = np.zeros((len(shape.nodes), 7), np.int64)
                self.dataflows[shape.dataflow] = DataflowState(shape, rows, operators, moved_at=clock.monotonic())

    def begin_run(self, seen: Sequence[ProcessSeen]) -> list[int]:
        """Forget the dataflows if workers of another run are seen; return which are forgotten.

        The numbers of workers and dataflows begin anew with each run, but what was counted of workers goes on.
        """
        run = next((each.run for each in seen if each.workers), self._run)
        if run == self._run:
            return []
        self._run, gone = run, [*self.dataflows]
        self.dataflows.clear()
        running = {worker.index for each in seen for worker in each.workers}
        self.workers = {index: worker for index, worker in self.workers.items() if index in running}
        for worker in self.workers.values():
            worker.totals = {}
        return gone

    def of_run(self, seen: Iterable[ProcessSeen]) -> list[ProcessSeen]:
        """Return the processes without those that still, or already, have workers of another run."""
        return [each for each in seen if not each.workers or each.run == self._run]

    def unknown(self, seen: Iterable[ProcessSeen]) -> bool:
        """Return whether a dataflow was seen whose shape is not known."""
        return any(
            index not in self.dataflows for each in seen for worker in each.workers for index in worker.dataflows
        )

    def take(self, seen: Iterable[ProcessSeen]) -> set[int]:
        """Take in what was seen of processes; return the dataflows that have ended since."""
        now = clock.monotonic()
        operators = {index: each.operators for index, each in self.dataflows.items()}
        for each in self.dataflows.values():
            each.epochs = []
        for process in seen:
            self.silent.pop(process.process, None)
            for worker in process.workers:
                known = self.workers.get(worker.index)
                if known is None:
                    # Seen just now: no time has passed over which to compute a rate.
                    known = self.workers[worker.index] = WorkerState(worker, process.process, process.pid, now)
                known.grow(worker, now, operators)
            for index, epochs in process.epochs.items():
                if index in self.dataflows:
                    self.dataflows[index].take_epochs(epochs)
        for index, dataflow in self.dataflows.items():
            self._sum(index, dataflow, now)
        running = {index for worker in self.workers.values() for index in worker.totals}
        over = {index for index, each in self.dataflows.items() if not each.is_over and index not in running}
        for index in over:
            dataflow = self.dataflows[index]
            # The frontiers seen last are out of date: nobody looked when the dataflow ended.
            dataflow.is_over, dataflow.frontiers, dataflow.held = True, dict.fromkeys(dataflow.frontiers, ()), []
        return over

    def forget(self) -> list[int]:
        """Forget the oldest dataflows that are over, but for `REMEMBERED` of them; return which."""
        over = [index for index, each in self.dataflows.items() if each.is_over]
        # The oldest come first: dataflows are added in the order in which they were built.
        gone = over[: max(0, len(over) - REMEMBERED)]
        for index in gone:
            del self.dataflows[index]
        return gone

    def _sum(self, index: int, dataflow: DataflowState, now: float) -> None:
        found = [worker.totals[index] for worker in self.workers.values() if index in worker.totals]
        if found:
            rows = np.zeros_like(dataflow.rows)
            for each in found:
                # The places at which streams meet come last, and have no numbers.
                rows[: len(each)] += each
            dataflow.rows = rows
        for worker in self.workers.values():
            seen = worker.seen.dataflows.get(index)
            if seen is not None and seen.frontiers and seen.frontiers != dataflow.frontiers:
                dataflow.frontiers, dataflow.moved_at = seen.frontiers, now
                dataflow.held = []

    def still(self) -> list[int]:
        """Return the dataflows whose frontiers have not moved for a while."""
        now = clock.monotonic()
        return [
            index for index, each in self.dataflows.items() if not each.is_over and now - each.moved_at > STILL_SECONDS
        ]

    def worker_rows(self) -> list[list[Any]]:
        """Return a row for each worker: its numbers and process, share of time in operators, records a second, messages
        queued, what it does, the user's line, and for how many seconds it has not been heard of.

        A process that has never answered has a row, too: which workers it has is not known.
        """
        now, found = clock.monotonic(), []
        operators = {index: each.operators for index, each in self.dataflows.items()}
        for index, worker in sorted(self.workers.items()):
            queued = sum(int(rows[:, QUEUED].sum()) for rows in worker.totals.values())
            busy = min(1.0, worker.rate(NANOSECONDS, operators) / 1e9)
            records = worker.rate(RECEIVED, operators)
            silent = now - worker.at if worker.process in self.silent else 0.0
            numbers = [index, worker.process, worker.pid, round(busy, 3), round(records), queued]
            found.append([*numbers, worker.seen.doing, worker.seen.line, round(silent, 1)])
        for process in sorted(self.silent.keys() - {worker.process for worker in self.workers.values()}):
            found.append(["?", process, "?", 0.0, 0, 0, "", "", round(now - self.silent[process], 1)])
        return found

    def by_worker(self, dataflow: int, node: int) -> list[list[int]]:
        """Return for each worker its number and then the numbers of a node there."""
        return [
            [index, *map(int, worker.totals[dataflow][node])]
            for index, worker in sorted(self.workers.items())
            if dataflow in worker.totals and 0 <= node < len(worker.totals[dataflow])
        ]


def frontier_text(times: tuple[Time, ...]) -> str:
    """Return a frontier for people: the only number of times that have one, otherwise the times; `done` for none.

    >>> frontier_text(((5,),)), frontier_text(((2, 0), (1, 3))), frontier_text(())
    ('5', '(2, 0) (1, 3)', 'done')
    """
    return " ".join(str(each[0]) if len(each) == 1 else str(each) for each in times) or "done"


class StateChanges:
    """What of a state has changed since the last time, as one viewer after the other receives it."""

    def __init__(self, state: JobState) -> None:
        self._state = state
        self._rows: dict[int, bytes] = {}
        self._frontiers: dict[int, dict[int, tuple[Time, ...]]] = {}

    def as_data(self, notes: list[list[Any]], over: Iterable[int] = (), gone: Sequence[int] = ()) -> dict[str, Any]:
        """Return what has changed since the last call, for JSON; the first time everything.

        `over` are the dataflows that have ended since, and `gone` those that were forgotten.
        """
        for index in gone:
            self._rows.pop(index, None)
            self._frontiers.pop(index, None)
        dataflows = {}
        for index, each in self._state.dataflows.items():
            found = self._of(index, each)
            if found:
                dataflows[str(index)] = found
        return {
            "seconds": round(self._state.seconds, 3),
            "workers": self._state.worker_rows(),
            "dataflows": dataflows,
            "notes": notes,
            "over": sorted(over),
            "gone": [*gone],
        }

    def _of(self, index: int, dataflow: DataflowState) -> dict[str, Any]:
        found: dict[str, Any] = {}
        before, rows = self._rows.get(index), dataflow.rows.tobytes()
        if changed := encoded(rows, bytes(len(rows)) if before is None else before):
            found["rows"] = changed
        self._rows[index] = rows
        known = self._frontiers.get(index, {})
        if dataflow.frontiers is not known:
            moved: dict[tuple[Time, ...], list[int]] = {}
            for node, times in dataflow.frontiers.items():
                if known.get(node) != times:
                    moved.setdefault(times, []).append(node)
            found["frontiers"] = [[frontier_text(times), *nodes] for times, nodes in moved.items()]
            self._frontiers[index] = dataflow.frontiers
        if dataflow.epochs:
            found["epochs"] = [len(dataflow.epochs), *quantiles(dataflow.epochs)]
        if dataflow.held or before is None:
            found["held"] = dataflow.held
        return found


def encoded(rows: bytes, before: bytes) -> str:
    """Return the rows that differ from those before, each after its place: 64-bit integers, in base64.

    The rows have seven such integers each, in the order of bytes of this machine, as they are sent. A page with
    hundreds of operators receives thousands of numbers each half second: to write these as decimal digits takes a
    process longer than to find them. NumPy would not be faster here, and would release the interpreter's lock several
    times.

    >>> rows, before = np.arange(14).reshape(2, 7), np.zeros((2, 7), np.int64)
    >>> before[0] = rows[0]
    >>> decoded(encoded(rows.tobytes(), before.tobytes()))
    [[1, 7, 8, 9, 10, 11, 12, 13]]
    """
    pairs = enumerate(zip(_ROW.iter_unpack(rows), _ROW.iter_unpack(before)))
    changed = [_PLACED.pack(place, *row) for place, (row, old) in pairs if row != old]
    return base64.b64encode(b"".join(changed)).decode()


def decoded(text: str) -> list[list[int]]:
    """Return the rows that `encoded` returned as text, each after its place."""
    return [list(row) for row in _NUMBERS.iter_unpack(base64.b64decode(text))]
