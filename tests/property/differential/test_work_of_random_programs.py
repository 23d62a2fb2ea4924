"""Random programs are drawn within a bound of work, and the work counted is what operators really do."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from differential import new_input
from tests.oracle import drawing
from tests.oracle.graphs import DELTA_QUERIES
from tests.oracle.scenario import Scenario
from tests.oracle.work import Differences, occurrences
from timely import Config, Worker, execute

LOOP_TO_ITSELF = [((1, 1), (0,), 1), ((1, 1), (1,), 2), ((1, 1), (2,), -1)]


@pytest.mark.parametrize("name", DELTA_QUERIES)
def test_delta_queries_of_several_workers_make_a_row_for_each_choice_of_differences(name: str) -> None:
    assert made(name, workers=2) == occurrences((name, ("input", 0)), Scenario([], [LOOP_TO_ITSELF, []]))
    assert made(name, workers=2) == 3 ** (6 if name == "cliques" else 3)
    assert made(name, workers=1) <= made(name, workers=2)


def made(name: str, workers: int) -> int:
    """Return how many rows a delta query makes of an edge that changes three times."""
    times: list[Any] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            DELTA_QUERIES[name].build(edges).inspect(lambda record, time, diff: times.append(time))
        if worker.index == 0:
            for record, time, diff in LOOP_TO_ITSELF:
                session.update_at(*record, time=time, diff=diff)
        session.close()

    execute(program, Config(workers=workers))
    return len(times)


def test_differences_are_what_earlier_times_and_rounds_do_not_explain() -> None:
    differences = Differences()
    for time in ((0, 0), (0, 1), (1, 0), (1, 1)):
        differences.add(time, [{"always": 1, "sum": sum(time)}, {"always": 1, "product": time[0] * time[1]}])
    assert differences.number == {"always": 1, "sum": 4, "product": 1}


def test_a_round_that_other_times_lack_equals_the_round_before() -> None:
    differences = Differences()
    for time, rounds in (((0,), [{"a": 1}]), ((1,), [{"a": 1}, {"a": 1, "b": 1}]), ((2,), [{"a": 1}])):
        differences.add(time, rounds)
    assert differences.number == {"a": 1, "b": 2}


def test_differences_in_rounds_of_a_loop_count() -> None:
    once = [((1, 1), (0,), 1)]
    more = ("concat", ("distinct", ("variable", 0)), ("input", 1))
    # There is one edge at first, and the same one twice afterwards; its results are not even.
    loop = ("iterate", ("input", 0), ("concat", more, ("even", ("motif", ("variable", 0)))))
    assert occurrences(loop, Scenario([], [once, once])) == 2**3


@pytest.mark.lengthy
def test_a_program_that_does_too_much_work_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def most() -> int:
        draw = drawing.Drawing(Random(0))
        scenarios = [draw.scenario(4, 12, 14, 5) for _ in range(10)]
        return max(occurrences(program, scenario) for scenario in scenarios for program in scenario.programs)

    assert most() > 100
    monkeypatch.setattr(drawing, "MOST_OCCURRENCES", 100)
    assert most() <= 100
