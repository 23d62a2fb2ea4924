"""What an imported arrangement shares, what wakes it, and what is left when it is dropped."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Arrangement, InputSession, Output, new_input
from differential.arrangement.export import Export
from differential.trace.as_of import AsOf
from timely import Antichain, Config, Worker, execute, execute_directly
from timely.dataflow.dataflow import Dataflow
from timely.errors import BuildError, OperatorError, TraceError


class Graph:
    """Edges 0 → 1, 1 → 2, ... present from the beginning, in a dataflow of their own."""

    def __init__(self, worker: Worker, edges: int = 100) -> None:
        self.worker = worker
        with worker.dataflow("graph") as scope:
            self.session, graph = new_input(scope)
            self.arrangement = graph.arrange_by_key()
            self.trace = self.arrangement.trace()
        self.dataflow = scope.dataflow
        self.session.insert(np.arange(edges), np.arange(edges) + 1)
        self.advance()

    def advance(self) -> None:
        self.session.advance_to(self.session.epoch + 1)
        self.worker.step_while(lambda: self.trace.upper.less_equal((self.session.epoch - 1,)))

    def advance_alone(self) -> None:
        """End the epoch, and let no other dataflow run."""
        self.session.advance_to(self.session.epoch + 1)
        self.dataflow.step()

    def import_joined(self, *nodes: int, since: int | None = None) -> tuple[Dataflow, InputSession, Output]:
        """Build a dataflow that outputs the edges from some nodes; return it, its input and its output."""
        with self.worker.dataflow("query") as scope:
            marks, marked = new_input(scope)
            output = self.trace.import_into(scope, since=since).join(marked).output()
        marks.insert(np.array(nodes))
        return scope.dataflow, marks, output


def test_an_import_copies_no_columns() -> None:
    def program(worker: Worker) -> None:
        graph = Graph(worker)
        graph.advance()
        graph.trace.set_logical_compaction(1)  # readers see the history as of 1, though the trace holds it as of 0
        before = graph.trace.statistics()
        arrangements: list[Arrangement] = []
        for _ in range(5):
            with worker.dataflow() as scope:
                arrangements.append(graph.trace.import_into(scope))
                reader = arrangements[-1].reader()
            worker.step()
            for own, shown in zip(graph.trace.batches(), reader.batches(), strict=True):
                assert shown.times.tolist() == [[1]]
                assert own.times.tolist() == [[0]]
                assert own.keys is shown.keys
                assert own.vals is shown.vals
        assert graph.trace.statistics()[:3] == before[:3]

    execute_directly(program)


def test_a_trace_without_imports_passes_nothing_on(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    for name in ("_pass_on", "_wake"):
        original = getattr(Export, name)

        def counted(export: Export, *given: Any, name: str = name, original: Any = original) -> None:
            calls[name] += 1
            original(export, *given)

        monkeypatch.setattr(Export, name, counted)

    def program(worker: Worker) -> None:
        graph = Graph(worker)
        consumers = list(graph.arrangement.stream.tee.consumers)
        graph.session.insert(0, 5)
        graph.advance()
        assert not calls
        for _ in range(3):
            dataflow, _, _ = graph.import_joined(0)
            worker.step()
            graph.session.insert(0, 5)
            graph.advance()
            assert calls["_pass_on"] == 1
            assert calls["_wake"] >= 1
            worker.drop_dataflow(dataflow)
            calls.clear()
            graph.session.insert(0, 5)
            graph.advance()
            assert not calls
        assert graph.arrangement.stream.tee.consumers == consumers
        assert not graph.dataflow._followers

    execute_directly(program)


def test_only_sealed_batches_and_the_frontier_wake_an_import() -> None:
    def program(worker: Worker) -> None:
        graph = Graph(worker)
        _, marks, output = graph.import_joined(0, 1)
        marks.close()
        graph.session.insert(0, 7)
        graph.advance()
        worker.step()
        assert output.contents() == {(0, 1): 1, (0, 7): 1, (1, 2): 1}
        assert output.less_than(3)
        graph.advance()  # nothing is sealed
        worker.step()
        assert not output.less_than(3)
        assert not worker.may_be_woken

    execute_directly(program)


def test_dropped_imports_leave_nothing_behind() -> None:
    def program(worker: Worker) -> None:
        graph = Graph(worker)
        gone = []
        for _ in range(20):
            dataflow, marks, output = graph.import_joined(0)
            marks.close()
            worker.step()
            assert graph.trace.statistics().readers == 2
            assert graph.trace.statistics().imports == 1
            gone.append(weakref.ref(dataflow.operators[0].scope))
            worker.drop_dataflow(dataflow)
            assert graph.trace.statistics()[3:] == (1, 0)
            del dataflow, marks, output
        gc.collect()
        assert [scope() for scope in gone] == [None] * 20

    execute_directly(program)


def test_a_dropped_import_no_longer_holds_compaction_back() -> None:
    def program(worker: Worker) -> None:
        graph = Graph(worker)
        other = graph.trace
        with worker.dataflow() as scope:
            again = other.import_into(scope).trace()
        dataflow, marks, _ = graph.import_joined(0)  # whose input of marks never advances
        worker.step()
        spine = again._handle.spine
        other.drop()
        again.allow_compaction_to(1)
        assert spine.logical == Antichain([(0,)])
        worker.drop_dataflow(dataflow)
        assert spine.logical == Antichain([(1,)])
        marks.close()

    execute_directly(program)


def test_a_dataflow_that_is_never_completed_leaves_nothing_behind() -> None:
    def program(worker: Worker) -> None:
        graph = Graph(worker)
        with suppress(ZeroDivisionError), worker.dataflow() as scope:
            graph.trace.import_into(scope).count()
            raise ZeroDivisionError
        del scope
        gc.collect()
        assert graph.trace.statistics()[3:] == (1, 0)

    execute_directly(program)


def test_imports_go_on_without_the_trace_they_came_from() -> None:
    def program(worker: Worker) -> dict[Any, int]:
        graph = Graph(worker)
        _, marks, output = graph.import_joined(0)
        graph.trace.drop()
        with pytest.raises(TraceError, match="was dropped"), worker.dataflow() as scope:
            graph.trace.import_into(scope)
        marks.close()
        graph.session.insert(0, 7)
        graph.session.close()
        worker.step_while(lambda: not output.done())
        return output.contents()

    assert execute_directly(program) == {(0, 1): 1, (0, 7): 1}


def test_a_trace_whose_dataflow_is_complete_can_be_imported() -> None:
    def program(worker: Worker) -> dict[Any, int]:
        graph = Graph(worker)
        graph.session.close()
        worker.step_while(lambda: bool(worker.dataflows))
        gone = weakref.ref(graph.dataflow.operators[0].scope)
        trace = graph.trace
        del graph.dataflow, graph.arrangement, graph.session
        gc.collect()
        assert gone() is None
        _, marks, output = graph.import_joined(1, 2)
        marks.close()
        worker.step_while(lambda: not output.done())
        assert trace.statistics()[3:] == (1, 0)
        return output.contents()

    assert execute_directly(program) == {(1, 2): 1, (2, 3): 1}


def test_an_import_ends_with_the_last_sealed_batch_if_the_exporting_dataflow_is_dropped() -> None:
    def program(worker: Worker) -> dict[Any, int]:
        graph = Graph(worker)
        _, marks, output = graph.import_joined(0, 5)
        graph.session.insert(0, 7)
        graph.advance()
        graph.session.insert(0, 8)  # not sealed
        graph.session.flush()
        worker.drop_dataflow(graph.dataflow)
        assert graph.trace.upper == Antichain()
        assert graph.trace.contents(9).records()[0, 7] == 1
        marks.advance_to(4)
        marks.remove(5)
        marks.close()
        worker.step_while(lambda: not output.done())
        return output.contents()

    assert execute_directly(program) == {(0, 1): 1, (0, 7): 1}


@pytest.mark.parametrize("workers", [1, 3])
def test_an_import_keeps_an_epoch_sealed_on_all_workers_when_the_exporting_dataflow_is_dropped(workers: int) -> None:
    def program(worker: Worker) -> dict[Any, int]:
        with worker.dataflow() as scope:
            session, towns = new_input(scope)
            trace = towns.arrange_by_key().trace()
            probe = towns.probe()
        graph = scope.dataflow
        if worker.index == 0:
            session.insert(np.array(["ann", "bob", "eve"]), np.array(["Rome", "Bonn", "Rome"]))
        session.advance_to(1)
        with worker.dataflow() as scope:
            imported = trace.import_into(scope)
            output = imported.as_collection().map(lambda name, town: town).count().output()
        worker.step_while(lambda: probe.less_than(1) or trace.upper.less_equal((0,)))
        worker.drop_dataflow(graph)
        worker.step_while(lambda: not output.done())
        return output.contents()

    assert execute(program, Config(workers=workers))[0] == {("Bonn", 1): 1, ("Rome", 2): 1}


def test_batches_sealed_while_the_importing_dataflow_is_built_are_imported() -> None:
    def program(worker: Worker) -> dict[Any, int]:
        graph = Graph(worker, edges=1)
        with worker.dataflow() as scope:
            imported = graph.trace.import_into(scope)
            output = imported.join(imported).output()
            graph.trace.drop()
            for target in range(2, 20):
                graph.session.insert(0, target)
                graph.advance_alone()
        graph.session.close()
        worker.step_while(lambda: not output.done())
        return output.contents()

    assert execute_directly(program) == {(0, *pair): 1 for pair in itertools.product(range(1, 20), repeat=2)}


def test_times_before_since_are_advanced_to_it() -> None:
    def program(worker: Worker) -> list[Any]:
        graph = Graph(worker)
        graph.session.insert(0, 7)
        graph.advance()
        graph.session.insert(0, 8)
        graph.advance()
        _, marks, output = graph.import_joined(0, since=1)
        marks.close()
        graph.session.close()
        worker.step_while(lambda: not output.done())
        return output.changes()

    assert execute_directly(program) == [((0, 1), (1,), 1), ((0, 7), (1,), 1), ((0, 8), (2,), 1)]


def test_a_reduction_is_complete_where_the_frontier_is_ahead_of_the_last_batch_imported() -> None:
    def program(worker: Worker) -> None:
        graph = Graph(worker, 1)
        graph.advance()  # without a batch: the trace ends at 1, and its frontier is at 2
        with worker.dataflow("query") as scope:
            counts = graph.trace.import_into(scope, since=1).count().output()
        worker.step_while(lambda: counts.less_than(2))
        assert counts.changes() == [((0, 1), (1,), 1)]

    execute_directly(program)


def test_an_impossible_import_is_refused() -> None:
    def program(worker: Worker) -> None:
        graph = Graph(worker)
        graph.advance()
        graph.trace.allow_compaction_to(1)
        with (
            pytest.raises(BuildError, match=rf"\(at {__file__}:\d+\): .* 1 coordinate"),
            worker.dataflow(outer=2) as scope,
        ):
            graph.trace.import_into(scope)
        with pytest.raises(TraceError, match="cannot restore those from"), worker.dataflow() as scope:
            graph.trace.import_into(scope, since=0)
        graph.trace.set_logical_compaction(Antichain())
        with pytest.raises(TraceError, match="empty frontier"), worker.dataflow() as scope:
            graph.trace.import_into(scope)
        with worker.dataflow() as scope, scope.iterative() as inner:
            session, numbers = new_input(scope)
            with pytest.raises(BuildError, match="take that of the arrangement outside"):
                numbers.arrange_by_key().enter(inner).trace()
        session.close()

    execute_directly(program)


def test_batches_in_transit_to_a_join_are_not_merged_with_those_it_has_received() -> None:
    def program(worker: Worker) -> dict[Any, int]:
        graph = Graph(worker, edges=1)
        _, marks, output = graph.import_joined(0, 1, 2)
        marks.advance_to(1)
        worker.step()
        graph.trace.drop()
        for epoch in range(1, 40):  # while the importing dataflow does not run
            graph.session.insert(epoch % 3, epoch)
            graph.advance_alone()
        marks.insert(1)
        marks.close()
        graph.session.close()
        worker.step_while(lambda: not output.done())
        return output.contents()

    expected = Counter({(0, 1): 1})
    for epoch in range(1, 40):
        expected[epoch % 3, epoch] += 2 if epoch % 3 == 1 else 1
    assert execute_directly(program) == expected


@pytest.mark.interpreted
def test_a_join_that_takes_batches_in_transit_for_the_past_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AsOf, "upper", property(lambda handle: handle.spine.upper))

    def program(worker: Worker) -> None:
        graph = Graph(worker)
        _, marks, _ = graph.import_joined(0)
        marks.close()
        for _ in range(3):
            worker.step()

    with pytest.raises(OperatorError, match="was taken for the past"):
        execute_directly(program)


GRID = list(itertools.product(range(3), repeat=2))


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from(GRID)), max_size=8),
    st.sets(st.sampled_from(GRID), min_size=1, max_size=3),
    st.integers(0, 2),
)
def test_times_of_two_coordinates_are_imported(rows: list[Any], times: set[Any], closed: int) -> None:
    since = Antichain(times)

    def program(worker: Worker) -> list[list[Any]]:
        with worker.dataflow(outer=2) as scope:
            session, pairs = new_input(scope)
            trace = pairs.arrange_by_key().trace()
        for key, value, time in rows:
            session.update_at(key, value, time=time)
        session.advance_to((closed, 0))
        worker.step()
        with worker.dataflow(outer=2) as scope:
            graph = trace.import_into(scope, since=since)
            outputs = [graph.as_collection().output(), graph.count().output(), graph.distinct().output()]
            outputs.append(graph.join(graph).output())
        worker.step()
        session.close()
        worker.step_while(lambda: not all(output.done() for output in outputs))
        return [output.changes() for output in outputs]

    changes = execute_directly(program)
    for time in GRID:
        if not since.less_equal(time):
            continue
        there = Counter((key, value) for key, value, at in rows if at[0] <= time[0] and at[1] <= time[1])
        per_key: Counter[Any] = Counter()
        for (key, _), count in there.items():
            per_key[key] += count
        joined = Counter(
            {(*one, other[1]): there[one] * there[other] for one in there for other in there if one[0] == other[0]}
        )
        expected = [there, Counter(per_key.items()), Counter(list(there)), joined]
        for found, truth in zip(changes, expected, strict=True):
            contents: Counter[Any] = Counter()
            for record, at, diff in found:
                if at[0] <= time[0] and at[1] <= time[1]:
                    contents[record] += diff
            assert contents == truth


def test_an_imported_trace_can_be_imported_again_while_batches_are_in_transit() -> None:
    def program(worker: Worker) -> dict[Any, int]:
        graph = Graph(worker, edges=1)
        traces = [graph.trace]
        for stage in range(1, 4):
            with worker.dataflow() as scope:
                index = traces[-1].import_into(scope)
                traces.append(index.trace())
            worker.step()
            for epoch in range(20):  # and no dataflow runs but the graph's
                graph.session.insert(epoch % 2, stage)
                graph.advance_alone()
                for trace in traces:
                    trace.set_physical_compaction(graph.session.epoch)
        with worker.dataflow() as scope:
            index = traces[-1].import_into(scope)
            output = index.join(index).output()
        graph.session.close()
        worker.step_while(lambda: not output.done())
        for trace in traces[1:]:
            assert trace.contents(100).records() == graph.trace.contents(100).records()
        return output.contents()

    edges = Counter({(0, 1): 1})
    for stage, epoch in itertools.product(range(1, 4), range(20)):
        edges[epoch % 2, stage] += 1
    joined = {
        (key, one, other): edges[key, one] * edges[key, other]
        for key, one, other in itertools.product(range(2), range(1, 4), range(1, 4))
    }
    assert execute_directly(program) == joined
