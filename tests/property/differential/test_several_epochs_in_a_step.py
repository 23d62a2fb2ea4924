"""Changes of several epochs between two steps go out together, and mean what they mean one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection, InputSession, new_input
from tests.thorough import examples
from timely import Config, Worker, execute, execute_directly
from timely.errors import CapabilityError, DataflowFailed, OperatorError

ROWS = st.tuples(st.integers(0, 2), st.sampled_from([-1, 1, 2]))
ACTIONS = st.one_of(
    st.tuples(st.just("change"), ROWS),
    st.tuples(st.just("columns"), st.lists(ROWS, max_size=3)),
    st.tuples(st.just("later"), st.tuples(ROWS, st.integers(0, 3))),
    st.tuples(st.just("advance"), st.integers(0, 2)),
    st.tuples(st.sampled_from(["step", "flush", "look"]), st.none()),
)
NAMES = np.array(["", "é", "a text that is longer than an item"], np.dtypes.StringDType())


def act(session: InputSession, worker: Worker, action: str, what: Any, named: bool) -> None:
    """Do one thing with a session."""

    def field(row: int) -> Any:
        return str(NAMES[row]) if named else row

    now = session.epoch
    if action == "change":
        row, diff = what
        session.update(field(row), diff=diff)
    elif action == "columns":
        rows, diffs = (np.array([pair[place] for pair in what], np.int64) for place in (0, 1))
        session.update(NAMES[rows] if named else rows, diff=diffs)
    elif action == "later":
        (row, diff), wait = what
        session.update_at(field(row), time=now + wait, diff=diff)
    elif action == "advance":
        session.advance_to(now + what)
        assert session.epoch == now + what
    elif action == "step":
        worker.step()
    elif action == "flush":
        session.flush()
    else:
        assert not session.is_congested


def model(actions: list[tuple[str, Any]]) -> Counter[tuple[int, int]]:
    """Return the changes that actions make, without a dataflow: the difference of each record at each epoch."""
    made: Counter[tuple[int, int]] = Counter()
    now = 0
    for action, what in actions:
        if action == "advance":
            now += what
        elif action == "change":
            made[what[0], now] += what[1]
        elif action == "columns":
            for row, diff in what:
                made[row, now] += diff
        elif action == "later":
            (row, diff), wait = what
            made[row, now + wait] += diff
    return made


@given(st.lists(ACTIONS, max_size=25), st.booleans())
@settings(deadline=None, max_examples=examples(300))
def test_the_changes_are_those_of_single_steps(actions: list[tuple[str, Any]], named: bool) -> None:
    expected = sorted((row, epoch, diff) for (row, epoch), diff in model(actions).items() if diff)

    def program(worker: Worker, is_stepped: bool) -> Any:
        with worker.dataflow() as scope:
            session, rows = new_input(scope)
            output, pairs = rows.output(signed=True), rows.join(rows).output(signed=True)
        for action, what in actions:
            act(session, worker, action, what, named)
            if is_stepped:
                worker.step()
        session.close()
        worker.step_while(lambda: not (output.done() and pairs.done()))
        found = [(NAMES.tolist().index(row) if named else row, *rest) for (row,), *rest in output.changes()]
        assert sorted((row, epoch, diff) for row, (epoch,), diff in found) == expected
        return output.changes(), pairs.changes()

    one_by_one = execute_directly(lambda worker: program(worker, True))
    assert execute_directly(lambda worker: program(worker, False)) == one_by_one


def least(key: Any, values: list[tuple[Any, int]]) -> list[Any]:
    return [values[0][0]]


IN_PYTHON: dict[str, Callable[[Collection], Collection]] = {
    "reduce": lambda rows: rows.reduce(lambda groups: (groups.index, groups.values[0] + 10 * groups.counts)),
    "reduce_each": lambda rows: rows.reduce_each(least),
    "totals": lambda rows: rows.totals(lambda key, value: value, lambda key, value: 1),
    "cogroup": lambda rows: rows.cogroup(rows, lambda sides: (sides.left.index, sides.left.values[0])),
    "prefix_sum": lambda rows: rows.map(lambda key, value: (key, value, value)).prefix_sum(bits=3),
    "in a loop": lambda rows: rows.iterate(
        lambda inner: rows.concat(inner.map(lambda key, value: (key, np.maximum(value - 1, 0)))).reduce_each(least)
    ),
}


@pytest.mark.parametrize("name", IN_PYTHON)
@given(history=st.lists(st.sets(st.tuples(st.integers(0, 1), st.integers(0, 4)), max_size=4), max_size=30))
@settings(deadline=None, max_examples=examples(30))
def test_a_reduction_in_python_of_many_epochs_is_that_of_single_steps(
    name: str, history: list[set[tuple[int, int]]]
) -> None:
    def program(worker: Worker, is_stepped: bool) -> Any:
        with worker.dataflow() as scope:
            session, rows = new_input(scope)
            output = IN_PYTHON[name](rows).output()
        present: set[tuple[int, int]] = set()
        for epoch, records in enumerate(history):
            for record in sorted(present ^ records):
                session.update(*record, diff=1 if record in records else -1)
            present = records
            session.advance_to(epoch + 1)
            if is_stepped:
                worker.step_while(lambda: output.less_than(session.time))
        session.close()
        worker.step_while(lambda: not output.done())
        return output.changes()

    one_by_one = execute_directly(lambda worker: program(worker, True))
    assert execute_directly(lambda worker: program(worker, False)) == one_by_one


def test_a_hundred_epochs_between_two_steps_are_two_batches() -> None:
    def program(worker: Worker) -> list[tuple[Any, int]]:
        batches: list[tuple[Any, int]] = []
        with worker.dataflow() as scope:
            session, rows = new_input(scope)
            probe = rows.stream.inspect_batch(lambda time, batch: batches.append((time, len(batch)))).probe()
        for epoch in range(100):
            session.insert(epoch)
            session.advance_to(epoch + 1)
        assert session.time == (100,)
        assert probe.less_than((1,))
        worker.step_while(lambda: probe.less_than(session.time))
        return batches

    assert execute_directly(program) == [((0,), 1), ((1,), 99)]


@pytest.mark.composed  # otherwise a step calls the function, and `flush` does not raise its error
def test_an_error_in_one_epoch_leaves_the_session_at_its_time() -> None:
    def refuse(numbers: Any) -> Any:
        if (numbers == 3).any():
            raise ValueError("three")
        return numbers

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, rows = new_input(scope)
            output = rows.map(refuse).output()
        for epoch in range(6):
            session.insert(epoch)
            session.advance_to(epoch + 1)
        session.insert(99)
        with pytest.raises(OperatorError, match="three"):
            session.flush()
        assert session.time == (6,)
        session.insert(100)
        with pytest.raises(DataflowFailed, match=r"lost what it was computing when operator 'map' failed at time "):
            session.flush()
        with pytest.raises(DataflowFailed):
            worker.step_while(lambda: not output.done())
        assert output.changes() == []

    execute_directly(program)


def test_what_waits_is_bounded_so_that_the_worker_becomes_congested() -> None:
    def program(worker: Worker) -> bool:
        with worker.dataflow() as scope:
            session, rows = new_input(scope)
            counts = rows.count().output()
        for _ in range(1000):
            session.insert(np.arange(100))
            session.advance_to(session.epoch + 1)
            if worker.is_congested:
                break
        found = worker.is_congested
        session.close()
        worker.step_while(lambda: not counts.done())
        return found

    assert execute(program, Config(workers=2, queue_bytes=1 << 18)) == [True, True]


def test_a_session_that_is_ahead_refuses_what_it_refuses_otherwise() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, rows = new_input(scope, name="rows")
            output = rows.output()
        for epoch in range(5):
            session.insert(epoch)
            session.advance_to(epoch + 1)
        assert repr(session) == "InputSession(Input('rows', time=(1,)), advanced to (5,))"
        for mistake in (lambda: session.advance_to(4), lambda: session.update_at(0, time=4)):
            with pytest.raises(CapabilityError, match=r"\(5,\)"):
                mistake()
        assert session.time == (5,)
        session.close()
        with pytest.raises(CapabilityError, match="was closed"):
            session.advance_to(9)
        worker.step_while(lambda: not output.done())
        assert output.contents() == {(epoch,): 1 for epoch in range(5)}

    execute_directly(program)


def test_a_dataflow_that_is_dropped_takes_no_changes_that_wait() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, rows = new_input(scope)
            rows.probe()
        for epoch in range(5):
            session.insert(epoch)
            session.advance_to(epoch + 1)
        worker.drop_dataflow(scope.dataflow)
        worker.step()
        session.close()
        with pytest.raises(CapabilityError, match="was closed"):
            session.insert(1)

    execute_directly(program)
