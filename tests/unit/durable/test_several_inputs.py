"""Inputs at different epochs: each goes on at its own, unless an answer that depends on it is final there already."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from differential.durable import Directory, Shard, State, durable_input, persist, stateful
from tests.unit.durable.test_snapshots import Streaks
from timely import Config, Worker, execute, execute_directly


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
