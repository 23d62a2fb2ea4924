"""The figures that others collect of a job, for Prometheus and OpenTelemetry: names, meanings and values.

OpenTelemetry collects in a thread of its own, while another one changes the state. So each loop runs over a copy, which
`tuple` and `sorted` make in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from timely.live.looking import BYTES, NANOSECONDS, QUEUED, RECEIVED, ROWS, RUNS, SENT
from timely.live.state import DataflowState, JobState, WorkerState

Labels = tuple[str, ...]
Sample = tuple[Labels, float]
Samples = Callable[[JobState], Iterator[Sample]]
OPERATOR = ("dataflow", "operator", "name", "scope")
WORKER = ("process", "worker")


class Figure(NamedTuple):
    """What is collected: its name and text, whether it only grows, its labels, and its samples now."""

    name: str
    text: str
    is_counter: bool
    labels: tuple[str, ...]
    samples: Samples


def label_of(index: int, dataflow: DataflowState) -> str:
    return _text(f"{index} {dataflow.shape.name}")


def _labels(index: int, dataflow: DataflowState, node: int) -> Labels:
    return label_of(index, dataflow), str(node), _text(dataflow.shape.nodes[node].name), _text(dataflow.path(node))


def _text(name: str) -> str:
    """Return a name as UTF-8 can have it: that of a file may have other bytes."""
    return name.encode(errors="backslashreplace").decode()


def _of_operators(column: int, scale: float = 1.0) -> Samples:
    def samples(state: JobState) -> Iterator[Sample]:
        for index, dataflow in tuple(state.dataflows.items()):
            if dataflow.is_over:
                continue
            for number, node in enumerate(dataflow.shape.nodes):
                if node.kind == "operator":
                    yield _labels(index, dataflow, number), float(dataflow.rows[number, column]) * scale

    return samples


def _of_workers(value: Callable[[JobState, WorkerState], float]) -> Samples:
    def samples(state: JobState) -> Iterator[Sample]:
        for index, worker in sorted(state.workers.items()):
            yield (str(worker.process), str(index)), float(value(state, worker))

    return samples


def _counted(column: int, scale: float = 1.0) -> Samples:
    """Return samples of what was counted of workers, which only grows, though dataflows end."""
    return _of_workers(lambda _, worker: worker.counted[column] * scale)


def _there(column: int) -> Samples:
    """Return samples of what is there now of the dataflows of workers."""

    def total(state: JobState, worker: WorkerState) -> int:
        operators = {number: dataflow.operators for number, dataflow in tuple(state.dataflows.items())}
        totals = tuple(worker.totals.items())
        return sum(int(rows[: operators.get(number, 0), column].sum()) for number, rows in totals)

    return _of_workers(total)


def _frontiers(state: JobState) -> Iterator[Sample]:
    for index, dataflow in tuple(state.dataflows.items()):
        for number, times in sorted(dataflow.frontiers.items()):
            if times and not dataflow.is_over:
                yield _labels(index, dataflow, number), float(min(time[0] for time in times))


def _running(state: JobState) -> Iterator[Sample]:
    yield (), float(sum(not dataflow.is_over for dataflow in tuple(state.dataflows.values())))


def _warnings(state: JobState) -> Iterator[Sample]:
    for kind, count in sorted(state.warnings.items()):
        yield (kind,), float(count)


FIGURES = (
    Figure("timely_operator_activations", "How often the operator ran.", True, OPERATOR, _of_operators(RUNS)),
    Figure(
        "timely_operator_seconds",
        "Seconds inside the operator and what runs in line with it.",
        True,
        OPERATOR,
        _of_operators(NANOSECONDS, 1e-9),
    ),
    Figure("timely_operator_records_received", "Records that it took.", True, OPERATOR, _of_operators(RECEIVED)),
    Figure("timely_operator_records_sent", "Records that it emitted.", True, OPERATOR, _of_operators(SENT)),
    Figure("timely_operator_queued_messages", "Messages that wait for it.", False, OPERATOR, _of_operators(QUEUED)),
    Figure("timely_operator_kept_rows", "Rows in its trace.", False, OPERATOR, _of_operators(ROWS)),
    Figure("timely_operator_kept_bytes", "Bytes of its trace.", False, OPERATOR, _of_operators(BYTES)),
    Figure("timely_operator_frontier", "First coordinate of its frontier.", False, OPERATOR, _frontiers),
    Figure("timely_worker_seconds", "Seconds inside operators.", True, WORKER, _counted(NANOSECONDS, 1e-9)),
    Figure("timely_worker_records_received", "Records that its operators took.", True, WORKER, _counted(RECEIVED)),
    Figure("timely_worker_queued_messages", "Messages that wait there.", False, WORKER, _there(QUEUED)),
    Figure("timely_worker_kept_bytes", "Bytes of its traces.", False, WORKER, _there(BYTES)),
    Figure(
        "timely_worker_progress_bytes",
        "Bytes of progress that it sent to other processes.",
        True,
        WORKER,
        _of_workers(lambda _, worker: worker.seen.progress_bytes),
    ),
    Figure(
        "timely_worker_answering",
        "Whether its process answers.",
        False,
        WORKER,
        _of_workers(lambda state, worker: worker.process not in state.silent),
    ),
    Figure("timely_dataflows_running", "Dataflows that are not complete.", False, (), _running),
    Figure("timely_warnings", "Warnings and notices.", True, ("kind",), _warnings),
)
EPOCHS = "timely_epoch_seconds"
EPOCHS_TEXT = "Seconds from the end of an epoch's input until its answers are final, of the epochs that were measured."
