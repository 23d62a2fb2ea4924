"""Building dataflows: what an operator costs before data arrives, and after it is dropped.

Many small dataflows, and one large one, are chains of scheduled operators, the most expensive kind. `streams` chains
run side by side between two hubs, where tracking each pair of operators would cost their number squared. All inputs
advance by one epoch, all dataflows are dropped, and the remaining memory is measured. Times are the processor time of
the worker's thread.
"""

from __future__ import annotations

import gc
import time as clock
from functools import partial

from benchmarks.harness import Case, Figures, check
from benchmarks.residence import resident
from timely import Input, InputPort, OutputPort, Pipeline, Probe, Worker, execute, new_input
from timely.dataflow.operators.concat import concatenate

BUILD, PER_OPERATOR, ADVANCE = "build CPU s", "build CPU us/operator", "one epoch, CPU us/operator"
MEMORY, LEFT = "bytes/operator", "bytes/operator after dropping"


def _case(name: str, processes: int, dataflows: int, operators: int, streams: int = 1, quick: bool = False) -> Case:
    parameters = {"dataflows": dataflows, "operators": operators, "streams": streams}
    return Case(
        f"construction {name}",
        "construction",
        parameters,
        processes,
        quick=quick,
        limits={PER_OPERATOR: 150, MEMORY: 16_384, LEFT: 4_096},
    )


CASES = [
    _case("1,000 of 10", 1, 1_000, 10, quick=True),
    _case("1 of 10,000", 1, 1, 10_000, quick=True),
    _case("1 of 10,000, side by side", 1, 1, 10_000, 1_000),
    _case("1,000 of 10, 2 processes", 2, 1_000, 10),
]


def measure(dataflows: int, operators: int, streams: int) -> Figures:
    """Return the figures of the first worker of this process."""
    return execute(lambda worker: _program(worker, dataflows, operators, streams))[0]


def _program(worker: Worker, dataflows: int, operators: int, streams: int) -> Figures:
    _built(worker, 10, 2)
    _drop(worker)  # whatever is loaded or created once exists now
    count = dataflows * operators
    gc.collect()
    before, begun = resident(), clock.thread_time()
    built = [_built(worker, operators, streams) for _ in range(dataflows)]
    figures = {BUILD: clock.thread_time() - begun}
    figures[PER_OPERATOR] = 1e6 * figures[BUILD] / count
    figures[MEMORY] = (resident() - before) / count
    begun = clock.thread_time()
    _advance(worker, built)
    figures[ADVANCE] = 1e6 * (clock.thread_time() - begun) / count
    built.clear()
    _drop(worker)
    figures[LEFT] = (resident() - before) / count
    return figures


def _built(worker: Worker, operators: int, streams: int) -> tuple[Input, Probe]:
    with worker.dataflow() as scope:
        handle, stream = new_input(scope)
        chains = [stream] * streams
        for _ in range(operators // streams):
            chains = [chain.unary(Pipeline(), _same) for chain in chains]
        probe = concatenate(chains).probe()
    check(len(scope.dataflow.plan.nodes) == operators + 1, f"{len(scope.dataflow.plan.nodes)} operators")
    return handle, probe


def _advance(worker: Worker, built: list[tuple[Input, Probe]]) -> None:
    """Complete one epoch in all dataflows."""
    for handle, _ in built:
        handle.advance_to(1)
    for _, probe in built:
        worker.step_while(partial(probe.less_than, 1))


def _same(input: InputPort, output: OutputPort) -> None:
    for right, batch in input:
        output.give(right, batch)


def _drop(worker: Worker) -> None:
    for index in [dataflow.index for dataflow in worker.dataflows]:
        worker.drop_dataflow(index)
    check(not worker.dataflows, "not all dataflows were dropped")
    gc.collect()
