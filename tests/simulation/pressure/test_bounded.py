"""Queues are bounded and everything arrives, however workers differ in speed and whatever operators emit."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings, strategies as st

from tests.simulation.pressure.model import QUEUE_BYTES, Program, Run, Step
from tests.thorough import examples
from timely import Worker
from timely.dataflow.schedule import Schedule

steps = st.one_of(
    st.just(Step("spread")),
    st.builds(Step, st.just("multiply"), st.integers(1, 5)),
    st.builds(Step, st.just("slowly"), st.integers(1, 5)),
    st.builds(Step, st.just("diamond"), st.integers(1, 3)),
    st.builds(Step, st.just("loop"), st.integers(1, 4)),
)


def is_small(chosen: list[Step]) -> bool:
    product = 1
    for step in chosen:
        product *= step.factor + 1 if step.kind == "diamond" else 1 if step.kind == "loop" else step.factor
    return product <= 30


programs = st.builds(
    Program,
    st.lists(st.sampled_from([1, 10]), min_size=1, max_size=3).map(tuple),
    st.lists(steps, max_size=3).filter(is_small).map(tuple),
    st.integers(1, 20),
    st.integers(0, 1 << 30),
)
FLOOD = Program((1, 20), (Step("multiply", 4), Step("multiply", 4), Step("multiply", 4)), 8, 1)
"""A chain of four exchanges that makes 64 records of one."""


def hold(program: Program) -> None:
    run = Run(program).finish()
    alone = Run(program._replace(speeds=(1,) * len(program.speeds)), queue_bytes=1 << 40).finish()
    assert run.found == alone.found
    assert sum(run.found.values()) >= 512 * program.batches * len(program.speeds)


@pytest.mark.lengthy
@settings(max_examples=3, deadline=None)
@example(Program((10, 1, 10), (Step("loop", 2),), 3, 29))  # takes messages before older ones
@given(programs)
def test_queues_are_bounded_and_everything_arrives(program: Program) -> None:
    hold(program)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=examples(400), deadline=None)
@given(programs)
def test_queues_are_bounded_and_everything_arrives_in_many_programs(program: Program) -> None:
    hold(program)


@pytest.mark.lengthy
@pytest.mark.parametrize("last", [Step("slowly", 1), Step("loop", 3)])
def test_a_flood_reaches_the_bound_and_no_more(last: Step) -> None:
    program = FLOOD._replace(steps=(*FLOOD.steps[1:], last))
    hold(program)
    share = QUEUE_BYTES // 2
    most = Run(program).finish().most_owed
    assert share < most
    assert most < 2 * share or program.has_loop


@pytest.mark.interpreted
def test_operators_that_do_not_wait_break_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Schedule, "holds_back", lambda *_: False)
    with pytest.raises(AssertionError, match="are allowed"):
        Run(FLOOD).finish()


def test_sources_that_do_not_wait_break_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "is_congested", False)
    program = Program((1, 20), (), 60, 1)
    with pytest.raises(AssertionError, match="are allowed"):
        Run(program).finish()
