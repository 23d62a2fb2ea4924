"""An imported trace is right at every time from its own frontier on, whenever it is imported.

A program changes a shared graph. Meanwhile queries over it are installed and dropped, and compaction is allowed, by
different workers at different moments. The truth is the multiset of all changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from benchmarks.simulated import SimulatedNetwork
from differential import Collection, InputSession, Output, Trace, new_input
from differential.delta.half_join import half_join
from timely import Antichain, Config, Worker
from timely.dataflow.dataflow import Dataflow

NODES = 4
Record = tuple[int, ...]
Contents = Counter[Record]
Action = tuple[str, int, int, int, int]
Made = tuple[InputSession, Output, Trace]
Install = Callable[[Worker], Made]


def _reached(graph: Contents, marks: Contents) -> Contents:
    reached = {mark[0] for mark in marks}
    while more := {target for source, target in graph if source in reached} - reached:
        reached |= more
    return Counter((node,) for node in reached)


def _joined(graph: Contents, marks: Contents) -> Contents:
    joined: Contents = Counter()
    for (source, target), count in graph.items():
        joined[source, target] += count * marks[source,]
    return joined


def _counted(graph: Contents, marks: Contents) -> Contents:
    degrees: Contents = Counter()
    for (source, _), count in graph.items():
        degrees[source] += count  # type: ignore[index]
    return Counter((key, count) for key, count in degrees.items() if count)  # type: ignore[misc]


def _arriving(graph: Contents, marks: Contents) -> Contents:
    return _counted(Counter({(target, source): count for (source, target), count in graph.items()}), marks)


def _by_halves(graph: Any, marks: Collection) -> Collection:
    """Join by two half joins, each change of one side with the other side as it was."""
    marked = half_join(marks, graph, lambda source, target: (source, target), inclusive=True)
    changed = half_join(graph.as_collection(), marks.arrange_by_key(), lambda s, t: (s, t), inclusive=False)
    return marked.concat(changed)


def _reach(graph: Any, marks: Collection) -> Collection:
    roots = marks.distinct()

    def step(inner: Collection) -> Collection:
        near = inner.join_map(graph.enter(inner.scope), lambda source, target: (target,), keys=1)
        return near.concat(roots.enter(inner.scope)).distinct()

    return roots.iterate(step)


def _reach_once(graph: Any, marks: Collection) -> Collection:
    """Do the same over edges that each occur once, which the loop itself ensures."""
    roots = marks.distinct()

    def step(inner: Collection) -> Collection:
        edges = graph.enter(inner.scope).distinct()
        return inner.join_map(edges, lambda source, target: (target,)).concat(roots.enter(inner.scope)).distinct()

    return roots.iterate(step)


Query = tuple[Callable[[Any, Collection], Collection], Callable[[Contents, Contents], Contents]]
QUERIES: list[Query] = [
    (lambda graph, marks: graph.as_collection(), lambda graph, marks: graph),
    (lambda graph, marks: graph.join(marks), _joined),
    (lambda graph, marks: marks.join_map(graph, lambda source, target: (source, target)), _joined),
    (lambda graph, marks: graph.count(), _counted),
    (lambda graph, marks: graph.distinct(), lambda graph, marks: Counter(list(graph))),
    (
        lambda graph, marks: graph.reduce(lambda groups: (groups.index, *groups.values)),
        lambda graph, marks: Counter(list(graph)),
    ),
    (_by_halves, _joined),
    (_reach, _reached),
    (_reach_once, _reached),
    (lambda graph, marks: graph.as_collection().map(lambda source, target: target).count(), _arriving),
]


class History:
    """All changes made to a collection, and its contents as of any time."""

    def __init__(self) -> None:
        self.changes: list[tuple[Record, int, int]] = []

    def at(self, epoch: int) -> Contents:
        contents: Contents = Counter()
        for record, then, diff in self.changes:
            if then <= epoch:
                contents[record] += diff
        return Counter({record: count for record, count in contents.items() if count})


class Import:
    """One query over the shared graph, installed and dropped on one worker after the other."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.marks = History()
        self.since: dict[int, int] = {}
        self.sessions: dict[int, InputSession] = {}
        self.dataflows: dict[int, Any] = {}
        self.output: Output | None = None
        self.emitted: list[tuple[Record, int, int]] = []
        self.is_dropped = False

    def install(self, worker: Worker, trace: Trace, since: int | None) -> None:
        with worker.dataflow("query") as scope:
            graph = trace.import_into(scope, since=since)
            self.sessions[worker.index], marks = new_input(scope)
            output = self.query[0](graph, marks).output()
        self.dataflows[worker.index] = scope.dataflow
        ((self.since[worker.index],),) = trace.logical.elements if since is None else ((since,),)
        if worker.index == 0:
            self.output = output

    def check(self, graph: History) -> None:
        """Compare the final output with the truth, at all times from which on all workers know the graph."""
        if self.output is None or self.is_dropped:
            return
        self.emitted += [(record, time[0], diff) for record, time, diff in self.output.changes()]
        for epoch in range(max(self.since.values()), 12):
            if self.output.less_than(epoch + 1):
                break
            emitted: Contents = Counter()
            for record, then, diff in self.emitted:
                if then <= epoch:
                    emitted[record] += diff
            expected = self.query[1](graph.at(epoch), self.marks.at(epoch))
            found = {record: count for record, count in emitted.items() if count}
            assert Counter(found) == expected, f"query {QUERIES.index(self.query)}, since {self.since}, at {epoch}"


class Run:
    """The workers, the shared graph, and the dataflows that import it."""

    def __init__(self, peers: int, seed: int) -> None:
        self.network = SimulatedNetwork(peers, seed)
        self.workers = [Worker(allocator, Config()) for allocator in self.network.allocators]
        self.graph = History()
        self.imports: list[Import] = []
        self.sessions: list[InputSession] = []
        self.traces: list[Trace] = []
        self.dataflows: list[Dataflow] = []
        for worker in self.workers:
            with worker.dataflow("graph") as scope:
                session, edges = new_input(scope)
                self.traces.append(edges.arrange_by_key().trace())
                edges.count()
            self.sessions.append(session)
            self.dataflows.append(scope.dataflow)
        self.to_build: list[list[Import]] = [[] for _ in self.workers]

    def act(self, action: Action) -> None:
        kind, at, first, second, third = action
        worker = self.workers[at % len(self.workers)]
        getattr(self, kind)(worker, first, second, third)
        self.check()

    def change(self, worker: Worker, source: int, target: int, diff: int) -> None:
        session = self.sessions[worker.index]
        record = source % NODES, target % NODES
        # Records that all operators take occur a positive number of times at all times.
        there = min(self.graph.at(epoch)[record] for epoch in range(session.epoch, 13))
        change = 1 if diff % 3 or there < 1 else -1
        session.update(*record, diff=change)
        session.flush()
        self.graph.changes.append((record, session.epoch, change))

    def advance(self, worker: Worker, steps: int, *_: int) -> None:
        session = self.sessions[worker.index]
        session.advance_to(min(session.epoch + 1 + steps % 2, 10))

    def install(self, worker: Worker, query: int, since: int, _: int) -> None:
        """Let all workers build a query over the graph: this one now, unless others are first, the others later."""
        if len(self.imports) < 4:
            new = Import(QUERIES[query % len(QUERIES)])
            self.imports.append(new)
            for waiting in self.to_build:
                waiting.append(new)
            self.build(worker, since)

    def build(self, worker: Worker, since: int, *_: int) -> None:
        if self.to_build[worker.index]:
            trace = self.traces[worker.index]
            ((logical,),) = trace.logical.elements
            self.to_build[worker.index].pop(0).install(worker, trace, logical + since % 3 if since % 2 else None)

    def mark(self, worker: Worker, number: int, node: int, ahead: int) -> None:
        for each in self.imports[number % 4 : number % 4 + 1]:
            session = each.sessions.get(worker.index)
            if session is not None and not each.is_dropped and session.epoch < 10:
                session.advance_to(min(session.epoch + ahead % 2, 9))
                session.insert(node % NODES)
                session.flush()
                each.marks.changes.append(((node % NODES,), session.epoch, 1))

    def compact(self, worker: Worker, ahead: int, *_: int) -> None:
        trace = self.traces[worker.index]
        ((logical,),) = trace.logical.elements
        closed = trace.upper.elements[0][0] if trace.upper else 10
        trace.allow_compaction_to(min(logical + 1 + ahead % 3, max(closed, logical)))

    def drop(self, worker: Worker, number: int, *_: int) -> None:
        for each in self.imports[number % 4 : number % 4 + 1]:
            if len(each.dataflows) == len(self.workers):
                each.is_dropped = True
                for index, dataflow in each.dataflows.items():
                    self.workers[index].drop_dataflow(dataflow)

    def step(self, worker: Worker, messages: int, *_: int) -> None:
        for _ in range(messages):
            self.network.deliver_one()
        worker.step()

    def step_alone(self, worker: Worker, messages: int, *_: int) -> None:
        """Let the graph run ahead of the dataflows that import it."""
        for _ in range(messages):
            self.network.deliver_one()
        self.dataflows[worker.index].step()

    def outrun(self, worker: Worker, source: int, target: int, number: int) -> None:
        """Have marks met with the graph when more of that is sealed than the query has received."""
        self.mark(worker, number, source, 1)
        self.change(worker, source, target, 1)
        self.advance(worker, 0)
        self.step_alone(worker, 2)
        self.mark(worker, number, target, 1)
        self.step(worker, 2)

    def check(self) -> None:
        for each in self.imports:
            each.check(self.graph)
        for epoch in range(12):
            if any(trace.upper.less_equal((epoch,)) for trace in self.traces):
                break
            if all(trace.logical.less_equal((epoch,)) for trace in self.traces):
                found: Contents = Counter()
                for trace in self.traces:
                    found.update(trace.contents(epoch).records())
                assert found == self.graph.at(epoch), epoch

    def finish(self) -> None:
        for worker in self.workers:
            while self.to_build[worker.index]:
                self.build(worker, 0)
        for session in self.sessions:
            session.close()
        for each in self.imports:
            for session in each.sessions.values():
                session.close()
        for _ in range(1000):
            while self.network.deliver_one() is not None:
                pass
            incomplete = [worker.step() for worker in self.workers]
            if not any(incomplete) and not self.network.pending:
                break
        else:
            raise AssertionError("\n".join(worker.explain(patience=0) for worker in self.workers))
        self.check()
        for trace in self.traces:
            assert trace.upper == Antichain()
            assert trace.statistics()[3:] == (1, 0)
        for worker in self.workers:
            worker.close()


KINDS = ["change"] * 4 + ["advance"] * 3 + ["step"] * 3 + ["step_alone"] * 3
KINDS += ["outrun"] * 2 + ["install", "build", "mark", "compact", "drop"]
ACTIONS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 3), *[st.integers(0, len(QUERIES) - 1)] * 3),
    min_size=20,
    max_size=60,
)


def _check(peers: int, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(ACTIONS, st.integers(0, 1000))
    def check(actions: list[Action], seed: int) -> None:
        run = Run(peers, seed)
        for action in actions:
            run.act(action)
        run.finish()

    check()


@pytest.mark.parametrize("peers", [1, 2])
def test_imported_traces_are_right_at_every_closed_time(peers: int) -> None:
    _check(peers, 30)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("peers", [1, 2, 3, 4])
def test_imported_traces_are_right_at_every_closed_time_of_long_runs(peers: int) -> None:
    _check(peers, 800)
