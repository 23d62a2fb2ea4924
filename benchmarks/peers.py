"""Other Python libraries for streams, on the same work: Pathway and Bytewax, with `--peers`.

Components: those of a random graph, first from scratch, then as edges to new nodes arrive, one in each epoch; Pathway
uses its own iteration, which propagates labels until they settle. The latency of a change is from inserting it until
the answer is updated. Words: the occurrences of each word in an existing text file; Pathway uses a grouped table,
Bytewax its final count, and this library updates the counts in epochs (see `wordcount`).
`pip install '.[peers]'` installs both libraries.
"""

from __future__ import annotations

import tempfile
import threading
import time as clock
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import wcc, wordcount
from benchmarks.graphs import Ints, RandomGraph
from benchmarks.harness import Case, Figures, check
from benchmarks.incremental import warm_up
from differential import new_input
from differential.graphs import weakly_connected_components
from timely import Worker, execute_directly

INITIAL, MEDIAN, P99, WORDS = "initial s", "1 change, median us", "1 change, p99 us", "M words/s"
WAIT_SECONDS = 600.0

CASES = [
    Case(
        f"peers pathway wcc {size}",
        "peers",
        {"peer": "pathway", "work": "components", "nodes": nodes, "edges": edges, "changes": 100},
        quick=quick,
        needs=("pathway",),
    )
    for size, nodes, edges, quick in (("1k/10k", 1_000, 10_000, True), ("10k/100k", 10_000, 100_000, False))
] + [
    Case(
        f"peers {peer} words 1M",
        "peers",
        {"peer": peer, "work": "words", "words": 1_000_000, "distinct": 100_000},
        needs=(peer,),
    )
    for peer in ("pathway", "bytewax")
]


def measure(peer: str, work: str, **sizes: int) -> Figures:
    """Return the figures of a peer and of this library for the same work."""
    return _components(**sizes) if work == "components" else _words(peer, **sizes)


def _components(nodes: int, edges: int, changes: int) -> Figures:
    graph = RandomGraph(nodes, edges)
    source, target = graph.initial
    attached = RandomGraph(nodes, edges + changes).initial[0][edges:], np.arange(nodes, nodes + changes)
    whole = np.append(source, attached[0]), np.append(target, attached[1])
    expected = dict(zip(*(column.tolist() for column in wcc.from_scratch(*whole, nodes + changes))))
    figures: Figures = {}
    for name, program in (("pathway", _pathway_components), ("here", _our_components)):
        initial, latencies, labels = program(graph.initial, attached)
        check(labels == expected, f"{name}: the components are wrong")
        median, p99 = np.percentile(latencies, (50, 99))
        figures |= {f"{name}: {INITIAL}": initial, f"{name}: {MEDIAN}": 1e6 * median, f"{name}: {P99}": 1e6 * p99}
    return figures | {
        f"pathway / here: {figure}": figures[f"pathway: {figure}"] / figures[f"here: {figure}"]
        for figure in (INITIAL, MEDIAN, P99)
    }


Components = tuple[float, list[float], dict[int, int]]
"""The seconds for the first answer and for each change, and the label of each node at the end."""


def _our_components(initial: tuple[Ints, Ints], attached: tuple[Ints, Ints]) -> Components:
    def program(worker: Worker) -> Components:
        warm_up(worker, weakly_connected_components)
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            labels = weakly_connected_components(edges)
            output, probe = labels.output(), labels.probe()

        def seconds(*columns: Ints) -> float:
            begun = clock.perf_counter()
            session.insert(*columns)
            session.advance_to(session.epoch + 1)
            worker.step_while(lambda: probe.less_than(session.time))
            return clock.perf_counter() - begun

        first = seconds(*initial)
        latencies = [seconds(attached[0][k : k + 1], attached[1][k : k + 1]) for k in range(len(attached[0]))]
        session.close()
        worker.step_while(lambda: not output.done())
        return first, latencies, dict(output.contents().keys())

    return execute_directly(program)


def _pathway_components(initial: tuple[Ints, Ints], attached: tuple[Ints, Ints]) -> Components:
    import pathway as pw

    followed, labels = _Followed(), dict[int, int]()
    first, latencies = [0.0], list[float]()

    class Edge(pw.Schema):  # type: ignore[misc]
        source: int
        target: int

    class Changes(pw.io.python.ConnectorSubject):  # type: ignore[misc]
        def run(self) -> None:
            first[0] = self.seconds(*(column.tolist() for column in initial))
            for source, target in zip(*(column.tolist() for column in attached)):
                latencies.append(self.seconds([source], [target]))

        def seconds(self, sources: list[int], targets: list[int]) -> float:
            begun = clock.perf_counter()
            for source, target in zip(sources, targets):
                self.next(source=source, target=target)
            self.commit()
            followed.wait(1 + len(latencies) + bool(first[0]))
            return clock.perf_counter() - begun

    def step(labels: Any, edges: Any) -> Any:
        sent = edges.select(node=edges.target, label=labels.ix(edges.source).label)
        least = sent.groupby(id=sent.node).reduce(label=pw.reducers.min(sent.label)).ix(labels.id).label
        lower = labels.select(label=pw.if_else(least < labels.label, least, labels.label))
        return {"labels": lower, "edges": edges}

    def keep(key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        if is_addition:
            labels[row["node"]] = row["label"]

    given = pw.io.python.read(Changes(), schema=Edge, autocommit_duration_ms=None)
    both = given.concat_reindex(given.select(source=given.target, target=given.source))
    nodes = both.groupby(both.source).reduce(node=both.source, label=both.source).with_id_from(pw.this.node)
    edges = both.select(source=nodes.pointer_from(both.source), target=nodes.pointer_from(both.target))
    settled = pw.iterate(step, labels=nodes.select(nodes.label), edges=edges).labels
    answer = nodes.select(nodes.node, label=settled.ix(nodes.id).label)
    pw.io.subscribe(answer, on_change=keep, on_time_end=lambda time: followed.report())
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return first[0], latencies, labels


class _Followed:
    """Counts the updates of the answer in one thread, for another that waits for them."""

    def __init__(self) -> None:
        self._times = 0
        self._changed = threading.Condition()

    def report(self) -> None:
        """Report one more update."""
        with self._changed:
            self._times += 1
            self._changed.notify_all()

    def wait(self, times: int) -> None:
        """Return after that many updates."""
        with self._changed:
            check(self._changed.wait_for(lambda: self._times >= times, WAIT_SECONDS), "the peer does not answer")


def _words(peer: str, words: int, distinct: int) -> Figures:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "text"
        occurrences = wordcount.write(path, words, distinct)
        expected = {f"w{rank}": int(occurrences[rank]) for rank in np.flatnonzero(occurrences)}
        seconds, found = _pathway_words(path) if peer == "pathway" else _bytewax_words(path)
    check(found == expected, f"{peer}: the counts are wrong")
    here = wordcount.measure(words, distinct, 10, ahead=1)[wordcount.RATE]
    theirs = 1e-6 * words / seconds
    return {f"{peer}: {WORDS}": theirs, f"here: {WORDS}": here, f"{peer} / here: {WORDS}": theirs / here}


def _pathway_words(path: Path) -> tuple[float, dict[str, int]]:
    import pathway as pw

    lines = pw.io.plaintext.read(str(path), mode="static")
    split = pw.apply_with_type(lambda line: tuple(line.split()), tuple[str, ...], lines.data)
    words = lines.select(word=split).flatten(pw.this.word)
    counts = words.groupby(words.word).reduce(words.word, count=pw.reducers.count())
    found: dict[str, int] = {}
    pw.io.subscribe(counts, on_change=lambda key, row, time, is_addition: found.update({row["word"]: row["count"]}))
    begun = clock.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return clock.perf_counter() - begun, found


def _bytewax_words(path: Path) -> tuple[float, dict[str, int]]:
    import bytewax.operators as op
    from bytewax.connectors.files import FileSource
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, run_main

    found: list[tuple[str, int]] = []
    flow = Dataflow("words")
    lines = op.input("read", flow, FileSource(path, batch_size=1000))
    words = op.flat_map("split", lines, str.split)
    op.output("keep", op.count_final("count", words, lambda word: word), TestingSink(found))
    begun = clock.perf_counter()
    run_main(flow)
    return clock.perf_counter() - begun, dict(found)
