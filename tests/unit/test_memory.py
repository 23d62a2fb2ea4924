"""The number of live objects does not grow with the number of epochs, nor with that of dataflows."""

from __future__ import annotations

import gc
from collections import Counter

import numpy as np
import pytest

from differential import new_input
from timely import Worker, execute


def _alive() -> Counter[str]:
    gc.collect()
    return Counter(type(thing).__name__ for thing in gc.get_objects())


@pytest.mark.lengthy
def test_epochs_that_insert_and_remove_an_edge_leave_no_objects_behind() -> None:
    def program(worker: Worker) -> list[Counter[str]]:
        with worker.dataflow() as scope:
            edges, graph = new_input(scope)
            # The roots and the output never change, though their inputs do in every epoch.
            roots = graph.map(lambda source, target: (source * 0, source * 0)).distinct()
            distances = roots.iterate(
                lambda inner: inner.join_map(graph, lambda _, far, node: (node, far + 1)).concat(roots).min()
            )
            output = distances.join(graph.count()).map(lambda *columns: columns[0] * 0).distinct().output()
        edges.insert(np.arange(10), np.arange(1, 11))
        edges.advance_to(1)
        seen = []
        for epoch in range(1, 301):
            edges.insert(epoch % 5, epoch % 5 + 3)
            if epoch > 1:
                edges.remove((epoch - 1) % 5, (epoch - 1) % 5 + 3)
            edges.advance_to(epoch + 1)
            worker.step_while(lambda reached=epoch + 1: output.less_than(reached))
            output.changes()
            if epoch % 100 == 0:
                seen.append(_alive())
        edges.close()
        worker.step_while(lambda: not output.done())
        return seen

    for seen in execute(program):
        assert seen[0]["Batch"] > 0
        assert max(one["Batch"] for one in seen[1:]) < seen[0]["Batch"] + 30
        assert max(one["Antichain"] for one in seen[1:]) < seen[0]["Antichain"] + 60
        assert max(one.total() for one in seen[1:]) < seen[0].total() + 300


def test_a_worker_that_is_never_idle_keeps_no_traces_of_dataflows_that_have_ended() -> None:
    def program(worker: Worker) -> list[tuple[int, ...]]:
        seen = []
        for number in range(20):
            with worker.dataflow() as scope:
                edges, graph = new_input(scope)
                output = graph.join(graph.count()).distinct().output()
            edges.insert(np.arange(10), np.arange(1, 11))
            edges.advance_to(1)
            if number % 2:
                worker.step_while(lambda answer=output: answer.less_than(1))
                worker.drop_dataflow(scope.dataflow)
            else:
                edges.close()
                worker.step_while(lambda answer=output: not answer.done())
            del scope, edges, graph, output
            alive = _alive()
            seen.append(tuple(alive[name] for name in ("Spine", "Encoder", "Dataflow")))
        return seen

    (seen,) = execute(program)
    # What tests before this one have left may be collected meanwhile.
    assert all(after <= before for before, after in zip(seen[0], seen[-1])), seen
