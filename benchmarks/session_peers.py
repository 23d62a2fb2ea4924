"""A session beside DuckDB, Polars and Pathway on the same questions about the same frames, with `--peers`.

`orders`: the sum of each customer's orders, joined with the customer's city, as orders arrive. `reach`: which nodes can
be reached from one node, as edges to new nodes arrive. The first answer is from columns in memory to the whole answer.
A change is one inserted row, or a thousand rows at once, until its effect on the answer has been read.

DuckDB and Polars keep the table, insert the rows and answer the query again: all of it, or, in `one customer`, only
for the customer that has changed. Pathway keeps its answer up to date, as a session does, and reports the changes to a
callback. A session and Pathway run one worker; DuckDB and Polars use all cores. The processor time is that of all
threads. All answers are compared with NumPy. `pip install '.[peers]'` installs the libraries.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from importlib import import_module
from typing import Protocol

import numpy as np

from benchmarks.graphs import Ints, splitmix
from benchmarks.harness import WARM_UP, Case, Figures, check

FIRST, FIRST_CPU = "first answer s", "first answer, processor s"
CHANGE, CHANGE_CPU, ONE = "1 row, median ms", "1 row, processor ms", "1 row, one customer, median ms"
MANY = "1000 rows at once, median ms"
CHANGES, BATCHES, BATCH = 100, 5, 1_000

_NEEDS = {"duckdb": ("duckdb", "pyarrow"), "polars": ("polars",), "pathway": ("pathway",)}


def _case(peer: str, job: str, size: str, rows: int) -> Case:
    parameters = {"peer": peer, "job": job, "rows": rows}
    name = f"session_peers {peer} {job} {size}"
    return Case(name, "session_peers", parameters, quick=rows <= 100_000, needs=_NEEDS[peer])


CASES = [
    *(_case(peer, "orders", size, rows) for size, rows in (("100k", 100_000), ("1M", 1_000_000)) for peer in _NEEDS),
    *(_case(peer, "reach", "10k/100k", 100_000) for peer in ("duckdb", "pathway")),
    _case("duckdb", "reach", "100k/1M", 1_000_000),
]

Answer = Mapping[int, int]
"""What is asked for, by customer or node: a sum, or 1 for a node that can be reached."""


class Job(Protocol):
    """A question that a tool answers, as its rows change."""

    def first(self) -> None:
        """Load the columns, and answer."""

    def change(self, one: Ints, other: Ints) -> Answer:
        """Insert rows; return what changes in the answer, or all of it."""

    def ask(self, one: int, other: int) -> int:
        """Insert a row; return the answer for its customer alone. Raises NotImplementedError if `change` does so."""

    def whole(self) -> Answer:
        """Return the answer."""

    def close(self) -> None:
        """End it."""


def tool(name: str, job: str, columns: tuple[Ints, Ints]) -> Job:
    """Return a job of a tool over columns: customers and totals of orders, or sources and targets of edges."""
    module = import_module(f"benchmarks.session_tools.of_{name}")
    found: Job = getattr(module, job.capitalize())(*columns)
    return found


def initial(job: str, rows: int) -> tuple[Ints, Ints]:
    """Return the first rows of a job, with a tenth as many customers or nodes."""
    keys = rows // 10
    drawn = splitmix(np.arange(2 * rows))
    others = drawn[rows:] % np.uint64(100 if job == "orders" else keys)
    return (drawn[:rows] % np.uint64(keys)).astype(np.int64), others.astype(np.int64)


def added(job: str, rows: int, number: int, size: int) -> tuple[Ints, Ints]:
    """Return the rows that the change of a number inserts."""
    places = number * BATCH + np.arange(size)
    one = (splitmix(2 * rows + places) % np.uint64(rows // 10)).astype(np.int64)
    return one, one % 100 + 1 if job == "orders" else rows // 10 + places


def measure(peer: str, job: str, rows: int) -> Figures:
    """Return the figures of a peer and of a session."""
    begun = clock.perf_counter()
    _measure("here", job, 10_000)
    if peer != "pathway":  # whose pipelines run all, once another one is added; it compiles nothing
        _measure(peer, job, 10_000)
    figures: Figures = {WARM_UP: clock.perf_counter() - begun}
    found = {name: _measure("here" if name == "here" else peer, job, rows) for name in (peer, "here")}
    for name, each in found.items():
        figures |= {f"{name}: {figure}": value for figure, value in each.items()}
    shared = [figure for figure in found[peer] if figure in found["here"]]
    figures |= {f"{peer} / here: {figure}": found[peer][figure] / found["here"][figure] for figure in shared}
    if ONE in found[peer]:
        figures[f"{peer} / here: {ONE}"] = found[peer][ONE] / found["here"][CHANGE]
    return figures


def _measure(name: str, job: str, rows: int) -> Figures:
    given = [columns := initial(job, rows)]
    asked = tool(name, job, columns)
    begun, used = clock.perf_counter(), clock.process_time()
    try:
        asked.first()
        figures: Figures = {FIRST: clock.perf_counter() - begun, FIRST_CPU: clock.process_time() - used}
        check(asked.whole() == expected(job, given), f"{name}: the first answer is wrong")
        used, seconds = clock.process_time(), list[float]()
        changes = [added(job, rows, number, 1) for number in range(CHANGES)]
        answers: list[Answer] = []
        for one, other in changes:
            begun = clock.perf_counter()
            answers.append(asked.change(one, other))
            seconds.append(clock.perf_counter() - begun)
        given += changes
        figures |= {
            CHANGE: 1e3 * float(np.median(seconds)),
            CHANGE_CPU: 1e3 * (clock.process_time() - used) / CHANGES,
        }
        check_changes(job, given, changes, answers, name)
        figures |= _asked(asked, [added(job, rows, CHANGES + number, 1) for number in range(CHANGES)], given, job)
        seconds = []
        for one, other in (added(job, rows, 2 * CHANGES + number, BATCH) for number in range(BATCHES)):
            begun = clock.perf_counter()
            asked.change(one, other)
            seconds.append(clock.perf_counter() - begun)
            given.append((one, other))
        figures[MANY] = 1e3 * float(np.median(seconds))
        check(asked.whole() == expected(job, given), f"{name}: the last answer is wrong")
    finally:
        asked.close()
    return figures


def _asked(asked: Job, changes: list[tuple[Ints, Ints]], given: list[tuple[Ints, Ints]], job: str) -> Figures:
    """Return the time of a change and a question about its customer alone, if the tool can be asked so."""
    seconds, found = [], 0
    for one, other in changes:
        begun = clock.perf_counter()
        try:
            found = asked.ask(int(one[0]), int(other[0]))
        except NotImplementedError:
            return {}
        seconds.append(clock.perf_counter() - begun)
        given.append((one, other))
    key = int(changes[-1][0][0])
    check(found == expected(job, given)[key], "the answer about one customer is wrong")
    return {ONE: 1e3 * float(np.median(seconds))}


def check_changes(
    job: str,
    given: list[tuple[Ints, Ints]],
    changes: list[tuple[Ints, Ints]],
    answers: list[Answer],
    name: str,
) -> None:
    """Check that after each change the answer had what the change leads to."""
    before = expected(job, given[: len(given) - len(changes)])
    sums = dict(before)
    for (one, other), answer in zip(changes, answers):
        if job == "orders":
            key = int(one[0])
            sums[key] = sums.get(key, 0) + int(other[0])
            check(answer[key] == sums[key], f"{name}: the sum of customer {key} is wrong after a change")
        elif int(one[0]) in before:
            check(answer[int(other[0])] == 1, f"{name}: node {other[0]} can be reached after a change")


def expected(job: str, given: list[tuple[Ints, Ints]]) -> dict[int, int]:
    """Return the answer over rows that were given in several parts, by NumPy and SciPy."""
    one, other = (np.concatenate(columns) for columns in zip(*given))
    if job == "orders":
        sums = np.bincount(one, other)
        return {int(key): int(sums[key]) for key in np.unique(one)}
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import breadth_first_order

    size = int(max(one.max(), other.max())) + 1
    graph = csr_matrix((np.ones(len(one), np.int8), (one, other)), (size, size))
    return dict.fromkeys(breadth_first_order(graph, 0, return_predecessors=False).tolist(), 1)
