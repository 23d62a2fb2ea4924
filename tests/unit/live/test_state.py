"""What a state makes of looks: at dataflows that end, and when looking begins again."""

from __future__ import annotations

import time as clock
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from timely.live.client import JobView
from timely.live.figures import FIGURES
from timely.live.latency import Epoch
from timely.live.looking import NANOSECONDS, RECEIVED, ROWS, DataflowSeen, ProcessSeen, WorkerSeen
from timely.live.shape import Box, Diagram, DiagramNode
from timely.live.state import REMEMBERED, DataflowState, JobState, StateChanges, decoded, encoded
from timely.live.top import parts
from timely.progress.antichain import Antichain


def shape(dataflow: int) -> Diagram:
    """Return the shape of a dataflow of one operator."""
    node = DiagramNode("count", 0, "job.py:3", "operator", True)
    return Diagram(dataflow, f"question {dataflow}", [Box("question", -1, False)], [node], [])


def look(
    records: dict[int, int], epochs: dict[int, list[Epoch]] | None = None, frontier: int | None = None
) -> list[ProcessSeen]:
    """Return what is seen of a worker whose dataflows have received so many records, each in a microsecond."""
    frontiers = {} if frontier is None else {0: ((frontier,),)}
    dataflows = {}
    for index, received in records.items():
        rows = np.zeros((1, 7), np.int64)
        rows[0, RECEIVED], rows[0, NANOSECONDS], rows[0, ROWS] = received, 1000 * received, 7
        dataflows[index] = DataflowSeen(rows, frontiers)
    return [ProcessSeen(0, 1, [WorkerSeen(0, "waits", "", dataflows)], epochs or {})]


def state_of(*dataflows: int) -> JobState:
    state = JobState()
    state.add_shapes(map(shape, dataflows))
    return state


def figure(state: JobState, name: str) -> float:
    """Return the sum of the samples of a figure."""
    (found,) = [each for each in FIGURES if each.name == name]
    return sum(value for _, value in found.samples(state))


def test_numbers_go_on_where_they_were_when_looking_begins_again() -> None:
    state = state_of(0)
    for received, total in [(100, 100), (250, 250), (0, 250), (30, 280), (0, 280), (0, 280), (5, 285)]:
        state.take(look({0: received}))
        (worker,) = state.worker_rows()
        assert (worker[3] >= 0, worker[4] >= 0) == (True, True), worker
        assert state.dataflows[0].rows[0, [RECEIVED, ROWS]].tolist() == [total, 7]
        assert state.by_worker(0, 0) == [[0, 0, 1000 * total, total, 0, 0, 7, 0]]
        assert figure(state, "timely_operator_records_received") == total
        assert figure(state, "timely_worker_records_received") == total
        assert figure(state, "timely_worker_seconds") == pytest.approx(total * 1e-6)


def test_what_a_worker_has_done_counts_after_its_dataflow_is_over() -> None:
    state, before = state_of(0, 1), 0.0
    for records in [{0: 1000, 1: 10}, {0: 1000, 1: 50}, {0: 1000}, {0: 1010}, {}]:
        state.take(look(records))
        now = figure(state, "timely_worker_records_received")
        assert now >= before, "a counter fell, which Prometheus takes for a new beginning"
        before = now
    assert before == 1060
    assert figure(state, "timely_operator_records_received") == 0
    assert figure(state, "timely_worker_kept_bytes") == 0


def test_an_epoch_is_shown_once_though_its_dataflow_is_over() -> None:
    state = state_of(0)
    changes = StateChanges(state)
    state.take(look({0: 1}, {0: [Epoch(Antichain(), 0, 2000)]}))
    assert changes.as_data([])["dataflows"]["0"]["epochs"] == [1, 2000, 2000, 2000]
    assert state.take(look({})) == {0}
    assert "epochs" not in changes.as_data([])["dataflows"].get("0", {})
    assert sum(state.dataflows[0].taken) == 1


def test_a_dataflow_that_is_over_is_done_though_nobody_saw_its_last_frontier() -> None:
    state, view = state_of(0), JobView()
    changes = StateChanges(state)
    view.take("shape", shape(0).as_data())
    view.take("tick", changes.as_data([], state.take(look({0: 1}, frontier=4))))
    assert view.dataflows[0].frontiers == {0: "4"}
    view.take("tick", changes.as_data([], state.take(look({}))))
    assert view.dataflows[0].frontiers == {0: "done"}


def test_dataflows_that_are_over_are_forgotten_but_for_the_last_ones() -> None:
    state, view = state_of(0), JobView()
    changes = StateChanges(state)
    view.take("shape", shape(0).as_data())
    for question in range(1, 100):
        state.add_shapes([shape(question)])
        view.take("shape", shape(question).as_data())
        over = state.take(look({0: 1, question: 1}))
        view.take("tick", changes.as_data([], over, state.forget()))
    state.take(look({0: 1}))
    state.forget()
    assert [*state.dataflows] == [0, *range(100 - REMEMBERED, 100)]
    assert view.dataflows.keys() <= {0, *range(98 - REMEMBERED, 100)}
    assert not view.dataflows[0].is_over
    assert changes.as_data([])["dataflows"].keys() <= {"0", "99"}


def test_a_node_that_is_not_there_has_no_numbers() -> None:
    state = state_of(0)
    state.take(look({0: 1}))
    assert [state.by_worker(0, node) for node in (-5, -1, 1)] == [[], [], []]
    assert state.by_worker(7, 0) == []


def test_a_process_that_has_never_answered_is_shown_as_one_that_does_not() -> None:
    state = state_of(0)
    state.take(look({0: 1}))
    state.silent[1] = clock.monotonic() - 4
    _, (index, process, pid, *numbers, silent) = state.worker_rows()
    assert (index, process, pid, *numbers) == ("?", 1, "?", 0.0, 0, 0, "", "")
    assert silent >= 4
    view = JobView()
    view.workers = state.worker_rows()
    console = Console(file=StringIO(), width=100)
    for part in parts(view):
        console.print(part)
    assert "no answer for 4 s" in console.file.getvalue()  # type: ignore[attr-defined]
    answer = look({0: 1})[0]
    state.take([replace(answer, process=1, workers=[replace(answer.workers[0], index=1)])])
    assert [row[:2] for row in state.worker_rows()] == [[0, 0], [1, 1]]


def test_changed_rows_are_sent_as_integers_of_64_bits_in_base64() -> None:
    rows = np.array([[9, 9, 9, 9, 9, 9, 9], [1, 2, -1, 1 << 40, 0, 6, 7]])
    before = np.array([[9, 9, 9, 9, 9, 9, 9], [0, 0, 0, 0, 0, 0, 0]])
    text = encoded(rows.tobytes(), before.tobytes())
    assert text == ("AQAAAAAAAAABAAAAAAAAAAIAAAAAAAAA//////////8AAAAAAAEAAAAAAAAAAAAABgAAAAAAAAAHAAAAAAAAAA==")
    assert decoded(text) == [[1, 1, 2, -1, 1 << 40, 0, 6, 7]]
    assert encoded(rows.tobytes(), rows.tobytes()) == ""


def test_figures_can_be_collected_while_another_thread_takes_in_dataflows() -> None:
    state = state_of(0, 1)
    state.take(look({0: 1, 1: 1}))

    class Busy(DataflowState):
        """A dataflow beside which another one appears whenever somebody asks whether it is over."""

        @property
        def is_over(self) -> bool:  # type: ignore[override]
            state.add_shapes([shape(len(state.dataflows))])
            return False

        @is_over.setter
        def is_over(self, value: bool) -> None:
            pass

    first = state.dataflows[0]
    state.dataflows[0] = Busy(first.shape, first.rows, first.operators, {0: ((3,),)})
    for each in FIGURES:
        list(each.samples(state))
