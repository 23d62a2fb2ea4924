"""Durable collections: what they cost a program that changes a graph, and how soon it goes on after a restart.

The program keeps the sizes of the components of a random graph. It inserts the graph and waits for the answer. Then it
makes epochs of changes, each of which removes the oldest edges and adds as many, and waits at the end: first it steps
after each epoch (`changes/s`), then it makes as many epochs before the first step (`changes/s at once`). Rates are
those without durable collections, and with a durable input and a durable output, until the last answer is final, and
durable. The variants run in turn, because other programs on the machine change its speed. Epochs that become durable
together are computed together, so a share can be larger than 1. `ahead` is with an input that the dataflow computes
with while it is made durable. Where other programs use the machine, shares of the worker's processor time tell more
than those of time: appends run in threads of their own. The whole (`load edges and changes/s`, and `/CPU s` by the
processor time of all threads) is the graph and the first epochs of changes. A latency is the time from the changes of
an epoch until its answer is final, or durable, where the program makes the next epoch after that. A restart is the time
from opening the state until the answer to one further epoch is durable; loading modules is not part of it.

The cases `durable restart` do nothing but load a graph once, which is the first run, and restart: they measure the
processor time of each, and the most memory.
"""

from __future__ import annotations

import tempfile
import time as clock
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.graphs import RandomGraph
from benchmarks.harness import WARM_UP, Case, Figures, check
from benchmarks.residence import forget_peak, peak
from benchmarks.wcc import from_scratch
from differential import Collection, InputSession, new_input
from differential.durable import Directory, DurableSession, Shard, State, durable_input, persist
from differential.graphs import weakly_connected_components
from timely import Worker, execute

LOAD, PACED, AT_ONCE, CPU = "load edges/s", "changes/s", "changes/s at once", "changes/CPU s at once"
LOAD_CPU, LOAD_WORKER = "load edges/CPU s", "load edges/CPU s of the worker"
WHOLE, WHOLE_CPU = "load edges and changes/s", "load edges and changes/CPU s"
RESTART, BYTES = "restart s", "bytes on disk/edge"
FLUSHES = {"each epoch": None, "flush 20 ms": "20ms", "flush 100 ms": "100ms"}
EDGES = {"100k": 100_000, "1M": 1_000_000, "10M": 10_000_000, "50M": 50_000_000, "100M": 100_000_000}
Sizes = dict[tuple[Any, ...], int]

CASES = [
    Case(
        "durable 100k/1M",
        "durable",
        {"nodes": 100_000, "edges": 1_000_000, "epochs": 100, "batch": 1000, "turns": 3},
        limits={f"share of {name}": 0.9 for name in (PACED, WHOLE, WHOLE_CPU)},
    ),
    Case(
        "durable 1M/10M",
        "durable",
        {"nodes": 1_000_000, "edges": 10_000_000, "epochs": 100, "batch": 10_000},
        quick=False,
        limits={f"share of {name}": 0.9 for name in (PACED, WHOLE, WHOLE_CPU)},
    ),
    *(
        Case(
            f"durable restart {name}",
            "durable",
            {"nodes": edges // 10, "edges": edges},
            quick=edges <= 1_000_000,
            function="measure_restart",
        )
        for name, edges in EDGES.items()
    ),
]


def sizes(graph: Collection) -> Collection:
    """Return (size, number of components of that size)."""
    members = weakly_connected_components(graph).map(lambda node, label: label).count()
    return members.map(lambda label, size: size).count()


def measure(nodes: int, edges: int, epochs: int, batch: int, singles: int = 50, turns: int = 1) -> Figures:
    """Return the figures, on one worker: rates are the medians of several turns, in which the variants alternate."""
    begun = clock.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        small = RandomGraph(100, 1000)
        _plain(small, 3, 10, 3)
        _durable(small, 3, 10, directory)
    figures = {WARM_UP: clock.perf_counter() - begun}
    graph = RandomGraph(nodes, edges)
    with tempfile.TemporaryDirectory() as directory:  # so that no load that is measured is the first to use the memory
        _plain(graph, 0, 0, 0)
        _durable(graph, 0, 0, directory)
    runs: dict[str, list[Figures]] = {"": [], "ahead": [], "durable": []}
    for turn in range(turns):
        rates, expected, latencies = _plain(graph, epochs, batch, singles)
        runs[""].append(rates)
        with tempfile.TemporaryDirectory() as directory:
            rates, found = _durable(graph, epochs, batch, directory, ahead=True)
            check(found == expected, "the answer that was computed ahead is not that without durable collections")
            runs["ahead"].append(rates)
        with tempfile.TemporaryDirectory() as directory:
            rates, found = _durable(graph, epochs, batch, directory)
            check(found == expected, "the durable answer is not that of the program without durable collections")
            runs["durable"].append(rates)
            if turn == turns - 1:
                figures |= _of_latencies("not durable", latencies)
                figures |= _restarts(graph, epochs, batch, singles, directory)
    plain, ahead, durable = (_median(runs[name]) for name in ("", "ahead", "durable"))
    figures |= plain
    figures |= {f"ahead {name}": rate for name, rate in ahead.items()}
    figures |= {f"share of {name}, ahead": rate / plain[name] for name, rate in ahead.items()}
    figures |= {f"durable {name}": rate for name, rate in durable.items()}
    figures |= {f"share of {name}": rate / plain[name] for name, rate in durable.items()}
    return figures


def _median(runs: list[Figures]) -> Figures:
    return {name: float(np.median([run[name] for run in runs])) for name in runs[0]}


def _restarts(graph: RandomGraph, epochs: int, batch: int, singles: int, directory: str) -> Figures:
    """Start the program again with each flush policy; return the time of a restart, latencies and bytes on disk."""
    edges_shard = Shard("edges", Directory(directory).store("edges"))
    figures: Figures = {BYTES: edges_shard.manifest().size / len(graph.initial[0])}
    made = 2 * epochs
    for name, flush in FLUSHES.items():
        figures[RESTART], latencies = _restarted(graph, made, singles, batch, flush, directory)
        figures |= _of_latencies(name, latencies)
        made += singles
    source, target = graph.after(made * batch)
    check(Counter(edges_shard.read()) == Counter(zip(source.tolist(), target.tolist())), "the edges are wrong")
    return figures


def measure_restart(nodes: int, edges: int) -> Figures:
    """Return the processor time of a first run and of a restart, on one worker, and the most memory of both."""
    with tempfile.TemporaryDirectory() as directory:
        small = RandomGraph(100, 1000)
        _durable(small, 0, 0, directory)
        _restarted(small, 0, 1, 1, None, directory)
    graph = RandomGraph(nodes, edges)
    forget_peak()
    with tempfile.TemporaryDirectory() as directory:
        used = clock.process_time()
        _durable(graph, 0, 0, directory)
        figures = {"first run CPU s": clock.process_time() - used}
        used = clock.process_time()
        figures[RESTART], _ = _restarted(graph, 0, 1, 1, None, directory)
        figures |= {"restart CPU s": clock.process_time() - used, "peak GiB": peak() / (1 << 30)}
        store = Directory(directory).store
        edges_shard, found = Shard("edges", store("edges")), Shard("sizes", store("sizes")).read()
        figures[BYTES] = edges_shard.manifest().size / edges
    _, labels = from_scratch(*graph.after(1), nodes)
    expected = Counter(Counter(np.unique(labels, return_counts=True)[1].tolist()).items())
    check(found == expected, "the answer after the restart is wrong")
    return figures


def _of_latencies(name: str, latencies: list[float]) -> Figures:
    """Return the figures of latencies in seconds."""
    median, p90 = np.percentile(latencies, (50, 90)) * 1e3
    return {f"median ms, {name}": float(median), f"p90 ms, {name}": float(p90)}


def _plain(graph: RandomGraph, epochs: int, batch: int, singles: int) -> tuple[Figures, Sizes, list[float]]:
    """Return the rates without durable collections, the answer, and latencies of further epochs."""

    def program(worker: Worker) -> tuple[Figures, Sizes, list[float]]:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            answer = sizes(edges).output()
        rates = _rates(worker, session, graph, epochs, batch, answer.less_than)
        found: Sizes = dict(answer.contents())
        latencies = _latencies(worker, session, graph, (2 * epochs, singles, batch), answer.less_than)
        return rates, found, latencies

    return execute(program)[0]


def _durable(
    graph: RandomGraph, epochs: int, batch: int, directory: str, *, ahead: bool = False
) -> tuple[Figures, Sizes]:
    """Return the rates and the answer with a durable input and a durable output."""

    def program(worker: Worker) -> tuple[Figures, Sizes]:
        state = State.open(worker, directory)
        with worker.dataflow() as scope:
            shard = state.shard("edges", fields=["source", "target"], keep=0)
            session, edges = durable_input(scope, shard, ahead=ahead)
            answer = persist(sizes(edges), state.shard("sizes", fields=["size", "components"], keep=0))
        rates = _rates(worker, session, graph, epochs, batch, lambda time: not answer.is_durable(time))
        return rates, state.shard("sizes").shard.read()

    return execute(program)[0]


def _rates(
    worker: Worker,
    session: InputSession | DurableSession,
    graph: RandomGraph,
    epochs: int,
    batch: int,
    is_open: Callable[[int], bool],
) -> Figures:
    """Load the graph, change it epoch by epoch, and change it again at once; return the rates."""
    source, target = graph.initial
    edges = len(source)
    first = begun = clock.perf_counter()
    started = used = clock.process_time()
    mine = clock.thread_time()
    session.insert(source, target)
    session.advance_to(1)
    worker.step_while(lambda: is_open(1))
    rates = {
        LOAD: edges / (clock.perf_counter() - begun),
        LOAD_CPU: edges / (clock.process_time() - used),
        LOAD_WORKER: edges / (clock.thread_time() - mine),
    }
    for part, name in enumerate((PACED, AT_ONCE)):
        begun, used = clock.perf_counter(), clock.process_time()
        for epoch in range(part * epochs, (part + 1) * epochs):
            source, target, diff = graph.changes(epoch * batch, batch)
            session.update(source, target, diff=diff)
            session.advance_to(epoch + 2)
            if name == PACED:
                worker.step()
        worker.step_while(lambda: is_open(session.epoch))
        if name == PACED:
            rates[WHOLE] = (edges + 2 * epochs * batch) / (clock.perf_counter() - first)
            rates[WHOLE_CPU] = (edges + 2 * epochs * batch) / (clock.process_time() - started)
        rates[name] = 2 * epochs * batch / (clock.perf_counter() - begun)
    rates[CPU] = 2 * epochs * batch / (clock.process_time() - used)
    return rates


def _restarted(
    graph: RandomGraph, made: int, epochs: int, batch: int, flush: str | None, directory: str
) -> tuple[float, list[float]]:
    """Start the program again; return the seconds to its first new answer, and the latencies of further epochs."""

    def program(worker: Worker) -> tuple[float, list[float]]:
        begun = clock.perf_counter()
        state = State.open(worker, directory)
        with worker.dataflow() as scope:
            session, edges = durable_input(scope, state.shard("edges", keep=0), flush=flush)
            answer = persist(sizes(edges), state.shard("sizes", keep=0), flush=flush)

        def is_open(time: int) -> bool:
            return not answer.is_durable(time)

        _latencies(worker, session, graph, (made, 1, batch), is_open)
        seconds = clock.perf_counter() - begun
        return seconds, _latencies(worker, session, graph, (made + 1, epochs - 1, batch), is_open)

    return execute(program)[0]


def _latencies(
    worker: Worker,
    session: InputSession | DurableSession,
    graph: RandomGraph,
    part: tuple[int, int, int],
    is_open: Callable[[int], bool],
) -> list[float]:
    """Make epochs one after the other; return the seconds of each. `part` is the first, how many, and their changes."""
    first, epochs, batch = part
    seconds = []
    for epoch in range(first, first + epochs):
        source, target, diff = graph.changes(epoch * batch, batch)
        begun = clock.perf_counter()
        session.update(source, target, diff=diff)
        session.advance_to(epoch + 2)
        worker.step_while(lambda: is_open(session.epoch))
        seconds.append(clock.perf_counter() - begun)
    return seconds
