"""Inputs at different epochs: each goes on at its own, unless an answer that depends on it is final there already."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from differential.durable import Directory, Shard, State, durable_input, persist, stateful
from tests.unit.durable.test_snapshots import Streaks
from timely import Config, Worker, execute, execute_directly

NAMES = ("left", "right")


class Crashed(Exception):
    pass


def run(where: str, last: Mapping[str, int], *, keep: int | None = None, crashes: bool = False) -> dict[str, Any]:
    """Make epochs of `left` and `right`, and persist the left and both; return the epoch at which each begins."""

    def program(worker: Worker) -> dict[str, Any]:
        state = State.open(worker, where)
        with worker.dataflow() as scope:
            inputs = {name: durable_input(scope, state.shard(name, keep=keep)) for name in ("left", "right")}
            one, other = (collection for _, collection in inputs.values())
            answers = [persist(one, state.shard("one")), persist(other.concat(one), state.shard("both"))]
            output = other.output()
        sessions = {name: session for name, (session, _) in inputs.items()}
        begun: dict[str, Any] = {name: session.epoch for name, session in sessions.items()}
        for name, session in sessions.items():
            for epoch in range(session.epoch, last[name]):
                if epoch % worker.peers == worker.index:
                    session.insert(epoch if name == "left" else -epoch - 1)
                session.advance_to(epoch + 1)
        if crashes:
            ends = last["left"], min(last.values())
            worker.step_while(lambda: not all(a.is_durable(end) for a, end in zip(answers, ends)))
            raise Crashed
        for session in sessions.values():
            session.close()
        worker.step_while(lambda: not all(answer.done() for answer in answers))
        changes = [(record, time) for record, (time,), _ in output.changes()]
        assert all(time == max(-record[0] - 1, begun["right"] - 1) for record, time in changes)
        return begun

    return execute(program, Config(workers=2))[0]


@pytest.mark.parametrize("keep", [None, 0])
def test_an_input_that_is_behind_makes_the_epochs_that_it_has_not_made(tmp_path: Path, keep: int | None) -> None:
    """An answer of the other input alone is final at later epochs."""
    where = str(tmp_path)
    with pytest.raises(Crashed):
        run(where, {"left": 8, "right": 5}, keep=keep, crashes=True)
    with pytest.raises(Crashed):
        run(where, {"left": 12, "right": 6}, keep=keep, crashes=True)
    assert run(where, {"left": 12, "right": 9}, keep=keep) == {"left": 12, "right": 6}
    both = Shard("both", Directory(where).store("both"))
    for epoch in range(12):
        numbers = [*range(epoch + 1), *(-each - 1 for each in range(min(epoch + 1, 9)))]
        assert both.read(epoch) == {(number,): 1 for number in numbers}
    assert run(where, {"left": 12, "right": 12}, keep=keep) == {"left": 12, "right": 12}, "closed at the last epoch"


def test_an_input_that_was_closed_goes_on_after_the_changes_that_a_snapshot_has(tmp_path: Path) -> None:
    """No answer is durable, so only the snapshot states what is final."""

    def program(worker: Worker, last: int) -> tuple[int, Any]:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            (table, rows), (session, numbers) = (
                durable_input(scope, state.shard(name)) for name in ("table", "numbers")
            )
            output = stateful(rows.concat(numbers), Streaks, state.shard("streaks"), every=4).output()
        begun = table.epoch
        table.insert(100 + begun)
        table.close()
        for epoch in range(session.epoch, last):
            session.insert(7)
            session.advance_to(epoch + 1)
            worker.step_while(lambda: output.less_than(session.epoch))
        session.close()
        worker.step_while(lambda: not output.done())
        return begun, output.contents()

    assert execute_directly(lambda worker: program(worker, 10)) == (0, {(100, 1): 1, (7, 10): 1})
    kept = Shard("streaks", Directory(str(tmp_path)).store("streaks")).manifest().upper
    assert kept in (4, 8)
    begun, contents = execute_directly(lambda worker: program(worker, 11))
    assert begun == kept
    assert contents == {(100, 1): 1, (7, 11): 1, (100 + kept, 1): 1}


def test_an_answer_that_was_left_out_finds_the_input_that_was_closed_as_it_was(tmp_path: Path) -> None:
    """While it is left out, the input goes on after what is final for it."""

    def program(worker: Worker, names: list[str]) -> list[int]:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            made = {name: durable_input(scope, state.shard(name)) for name in names}
            answers = [persist(made["table"][1], state.shard(name)) for name in ["copy"] if len(names) == 2]
        begun = [session.epoch for session, _ in made.values()]
        for name, (session, _) in reversed(made.items()):  # an answer is final as far as inputs are when it ends
            for _ in range(5 if name == "numbers" else 1):
                session.insert(session.epoch)
                session.advance_to(session.epoch + 1)
            session.close()
            while not session.is_durable(9):
                worker.step_or_park(0.01)
        worker.step_while(lambda: not all(answer.done() for answer in answers))
        return begun

    assert execute_directly(lambda worker: program(worker, ["table", "numbers"])) == [0, 0]
    assert execute_directly(lambda worker: program(worker, ["table"])) == [5], "the answer is final before 5"
    assert execute_directly(lambda worker: program(worker, ["table", "numbers"])) == [6, 5]
    copy, table = (Shard(name, Directory(str(tmp_path)).store(name)) for name in ("copy", "table"))
    assert copy.manifest().about == {"inputs": ["table"]}
    assert [copy.read(time) for time in range(7)] == [table.read(time) for time in range(7)]


def test_a_new_operator_with_state_begins_in_each_run_with_the_same_changes(tmp_path: Path) -> None:
    """Its input is behind the time at which it begins, and it has no snapshot when the program is started again."""

    def program(worker: Worker, ends: tuple[int, int], is_more: bool) -> None:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            (left, one), (right, other) = (durable_input(scope, state.shard(name)) for name in ("left", "right"))
            answers = [persist(one, state.shard("one"))]
            if is_more:
                streaks = stateful(other, Streaks, state.shard("streaks"), every=100)
                answers.append(persist(streaks, state.shard("answer")))
        for session, end in zip((left, right), ends):
            for epoch in range(session.epoch, end):
                session.insert(7)
                session.advance_to(epoch + 1)
        worker.step_while(lambda: not all(answer.is_durable(end) for answer, end in zip(answers, ends)))
        worker.step_while(lambda: not right.is_durable(ends[1]))
        raise Crashed

    for ends, is_more in (((8, 5), False), ((10, 10), True), ((12, 12), True)):
        with pytest.raises(Crashed):
            execute_directly(lambda worker, e=ends, m=is_more: program(worker, e, m))
    answer = Shard("answer", Directory(str(tmp_path)).store("answer"))
    assert {time: answer.read(time) for time in range(7, 12)} == {time: {(7, time - 6): 1} for time in range(7, 12)}


def test_an_answer_that_has_ended_appends_no_more_while_another_input_goes_on(tmp_path: Path) -> None:
    """An input that is ahead activates the answers when its last parts are merged, which may be later."""

    def program(worker: Worker) -> int:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            (left, one), (right, _) = (durable_input(scope, state.shard(name), ahead=name == "left") for name in NAMES)
            answer = persist(one, state.shard("answer"))
        left.insert(7)
        left.close()
        worker.step_while(lambda: not answer.done())
        right.insert(7)
        right.advance_to(5)
        worker.step_while(lambda: not right.is_durable(5))
        state.activate_outputs()
        for _ in range(20):
            worker.step()
        right.close()
        return state.shard("answer").shard.manifest().upper

    assert execute_directly(program) == 1
