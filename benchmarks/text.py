"""Text instead of integers: components, PageRank, BFS and a count on one graph, named either way.

The nodes of the random graph are the integers from 0 on in one run of a workload and names in the next, which are text
or large integers; name i is the i-th in their order, so both runs have the same answer. The figures are seconds of CPU
time, which other programs on the machine disturb less than the clock, for the whole process: inserting, the dataflow,
and what follows from it.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from benchmarks import bfs, pagerank, wcc
from benchmarks.graphs import Ints, RandomGraph, splitmix
from benchmarks.harness import WARM_UP, Case, Figures, check
from benchmarks.incremental import BYTES_PER_EDGE, Fingerprint, FromScratch
from benchmarks.residence import have_at_hand
from differential import Collection, Updates, new_input
from differential.graphs import bfs as distances, pagerank as ranks, weakly_connected_components
from timely import Worker, execute

Names = NDArray[Any]
Answer = Callable[[Collection, Any], Collection]

NODES, EDGES = 20_000, 100_000
INTEGERS_INITIAL, TEXT_INITIAL, RATIO_INITIAL = "integers, initial s", "names, initial s", "initial ratio"
INTEGERS_CHANGE, TEXT_CHANGE, RATIO_CHANGE = "integers, 1 change ms", "names, 1 change ms", "1 change ratio"
TARGETS = {RATIO_INITIAL: 2, RATIO_CHANGE: 2}


def numbers_from(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return (node, number of edges from it) for every node that has one, counted by NumPy."""
    numbers = np.bincount(source, minlength=nodes)
    found = np.flatnonzero(numbers)
    return found, numbers[found]


ALGORITHMS: dict[str, tuple[Answer, FromScratch, int]] = {
    "wcc": (lambda edges, _: weakly_connected_components(edges), wcc.from_scratch, 200),
    "pagerank": (lambda edges, _: ranks(edges, rounds=pagerank.ROUNDS, unit=pagerank.UNIT), pagerank.from_scratch, 10),
    "bfs": (lambda edges, root: distances(edges, Collection.of(edges.scope, root)), bfs.from_scratch, 200),
    "count": (lambda edges, _: edges.map(lambda source, _: source).count(), numbers_from, 200),
}
"""For each workload its definition, given the edges and the first node; its answer from scratch; its single changes."""

CASES = [
    *[Case(f"text {name}", "text", {"algorithm": name}, limits=TARGETS) for name in ALGORITHMS],
    Case("text wcc, words", "text", {"algorithm": "wcc", "naming": "words"}),
    Case("text wcc, long names", "text", {"algorithm": "wcc", "naming": "long names"}),
    Case("text wcc, addresses", "text", {"algorithm": "wcc", "naming": "addresses"}),
    Case("text wcc, integers far from 0", "text", {"algorithm": "wcc", "naming": "far integers"}),
    Case("text wcc, integers of 63 bits", "text", {"algorithm": "wcc", "naming": "wide integers"}),
    Case("text count, words", "text", {"algorithm": "count", "naming": "words"}),
]


def names(naming: str, nodes: int) -> Names:
    """Return the names of the nodes, distinct and in order: text that is numbered, of letters or long, or integers."""
    if naming == "far integers":
        return np.arange(1_000_000_000_000, 1_000_000_000_000 + nodes)
    if naming == "wide integers":
        return np.sort(splitmix(np.arange(nodes)).astype(np.int64) & (2**63 - 1))
    text = np.dtypes.StringDType()
    if naming == "numbers":
        return np.array([f"n{number:05d}" for number in range(nodes)], text)
    if naming == "long names":
        return np.array([f"https://example.org/people/{number:013x}" for number in range(nodes)], text)
    letters = "abcdefghijklmnopqrstuvwxyz"
    found: set[str] = set()
    for number in splitmix(np.arange(2 * nodes)).tolist():
        digits = [number // 26**place % 26 for place in range(6 + number % 7)]
        found.add("".join(letters[digit] for digit in digits))
    prefix = "https://en.wikipedia.org/wiki/" if naming == "addresses" else ""
    return np.array([prefix + word for word in sorted(sorted(found, key=hash_of)[:nodes])], text)


def hash_of(word: str) -> int:
    """Return a number that does not order as words do, the same in every run."""
    return int(splitmix(np.array([int.from_bytes(word.encode()[:7], "big")]))[0])


def measure(algorithm: str, naming: str = "numbers", nodes: int = NODES, edges: int = EDGES) -> Figures:
    """Return the figures of one workload with integers and with text, and the ratios of the two."""
    begun = clock.perf_counter()
    small = RandomGraph(nodes // 10, edges // 10)
    execute(lambda worker: run(worker, algorithm, small, None, 3))
    execute(lambda worker: run(worker, algorithm, small, names("numbers", nodes), 3))
    seconds = clock.perf_counter() - begun
    graph = RandomGraph(nodes, edges)
    have_at_hand(BYTES_PER_EDGE * edges)
    integers = execute(lambda worker: run(worker, algorithm, graph, None))[0]
    have_at_hand(BYTES_PER_EDGE * edges)
    text = execute(lambda worker: run(worker, algorithm, graph, names(naming, nodes)))[0]
    return {
        WARM_UP: seconds,
        INTEGERS_INITIAL: integers[0],
        TEXT_INITIAL: text[0],
        RATIO_INITIAL: text[0] / integers[0],
        INTEGERS_CHANGE: integers[1],
        TEXT_CHANGE: text[1],
        RATIO_CHANGE: text[1] / integers[1],
    }


def run(
    worker: Worker, algorithm: str, graph: RandomGraph, named: Names | None, changes: int = 0
) -> tuple[float, float]:
    """Return the CPU seconds of the initial answer, and the milliseconds of a change; the answers are checked.

    `named` has the names of the nodes; without it they are integers. A number of changes replaces the workload's own.
    """
    definition, from_scratch, singles = ALGORITHMS[algorithm]
    singles = changes or singles
    kept: list[Updates] = []
    root = 0 if named is None else named[0]
    with worker.dataflow() as scope:
        session, collection = new_input(scope, name="edges")
        probe = (
            definition(collection, root)
            .stream.inspect_batch(lambda _, batch: kept.append(cast(Updates, batch)))
            .probe()
        )

    def cpu_seconds(source: Ints, target: Ints, diffs: Ints) -> float:
        columns = (source, target) if named is None else (named[source], named[target])
        begun = clock.process_time()
        session.update(*columns, diff=diffs)
        session.advance_to(session.epoch + 1)
        worker.step_while(lambda: probe.less_than(session.time))
        return clock.process_time() - begun

    initial = cpu_seconds(*graph.initial, np.ones(len(graph.initial[0]), np.int64))
    compare(kept, named, from_scratch(*graph.initial, graph.nodes))
    latencies = [cpu_seconds(*graph.changes(number, 1)) for number in range(singles)]
    compare(kept, named, from_scratch(*graph.after(singles), graph.nodes))
    session.close()
    worker.step_while(lambda: not probe.done())
    return initial, 1e3 * float(np.median(latencies))


def compare(kept: list[Updates], named: Names | None, columns: tuple[Ints, ...]) -> None:
    """Raise `WrongAnswer` unless the updates kept so far add up to the records in columns."""
    kind = "" if named is None else named.dtype.kind
    place = {} if named is None else {name: number for number, name in enumerate(named.tolist())}
    found, expected = Fingerprint(), Fingerprint()
    for updates in kept:
        as_numbers = [numbers_of(column, place) if column.dtype.kind == kind else column for column in updates.columns]
        found.add(tuple(as_numbers), updates.each_diff())
    expected.add(columns, np.ones(len(columns[0]), np.int64))
    check(expected.records > 0, "the answer is empty: nothing was checked")
    check(str(found) == str(expected), f"wrong: {found}, from scratch {expected}")


def numbers_of(column: Names, place: dict[Any, int]) -> Ints:
    """Return the numbers of names."""
    return np.array([place[name] for name in column.tolist()], np.int64)
