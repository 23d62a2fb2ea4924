"""Operators with private state beside each other, and beside answers that are behind: no state is lost unnoticed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from differential.durable import Directory, Shard, State, durable_input, persist, stateful
from differential.durable.writer import Writer
from tests.unit.durable.test_snapshots import EPOCHS, Crashed, Streaks, expected, updates
from timely import Config, Worker, execute
from timely.errors import OperatorError, StateError

EVERY = {"answer": 2, "other": 3}


def two(where: Path, last: int, names: Sequence[str] = ("answer", "other"), workers: int = 1, **how: Any) -> None:
    """Make the epochs of operators that are to keep their states every two and every three epochs."""

    def program(worker: Worker) -> None:
        state = State.open(worker, str(where), replay=how.get("replay", False))
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers", keep=how.get("keep", 0)))
            made = []
            for name in names:
                streaks = stateful(numbers, Streaks, state.shard(f"{name}-state"), every=EVERY[name])
                made.append(persist(streaks, state.shard(name)))
            if how.get("copies", False):
                made.append(persist(numbers, state.shard("copy")))
        for epoch in range(session.epoch, last):
            for number in EPOCHS[epoch][worker.index :: worker.peers]:
                session.insert(number)
            session.advance_to(epoch + 1)
            worker.step_while(lambda: not all(each.is_durable(session.epoch) for each in made))
        session.close()
        worker.step_while(lambda: not all(each.done() for each in made))

    execute(program, Config(workers=workers))


def snapshot(where: Path, name: str) -> Shard:
    return Shard(f"{name}-state", Directory(str(where)).store(f"{name}-state"))


def test_operators_that_keep_their_states_at_different_epochs_go_on_from_one_time(tmp_path: Path) -> None:
    for last in range(1, len(EPOCHS) + 1):
        two(tmp_path, last, workers=1 + last % 2)
        for name in EVERY:
            assert updates(str(tmp_path), name) == expected(EPOCHS[:last])
    for name in EVERY:
        shard = snapshot(tmp_path, name)
        shard.verify()
        assert shard.manifest().upper == 9
        assert sorted(state.name for state in shard.manifest().states) == shard.store.names()


@pytest.mark.parametrize("commits", range(5))
def test_a_crash_between_the_commits_of_two_states_loses_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    left = commits

    def crashing(self: Writer, *arguments: Any, keep_states: Any = Writer.keep_states) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Crashed
        keep_states(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "keep_states", crashing)
        with pytest.raises(OperatorError, match="Crashed"):
            two(tmp_path, len(EPOCHS))
    uppers = {snapshot(tmp_path, name).manifest().upper for name in EVERY}
    assert len(uppers) == 1 + commits % 2
    before = Streaks.restored
    two(tmp_path, len(EPOCHS), workers=2)
    assert Streaks.restored - before == (4 if commits > 1 else 0), "of each operator, on each worker"
    for name in EVERY:
        assert updates(str(tmp_path), name) == expected(EPOCHS)


def test_a_new_operator_with_state_begins_where_the_other_one_is(tmp_path: Path) -> None:
    two(tmp_path, 5, ["answer"])
    two(tmp_path, len(EPOCHS))
    assert updates(str(tmp_path)) == expected(EPOCHS)
    assert [snapshot(tmp_path, name).manifest().frontiers for name in EVERY] == [{6, 9}] * 2


def test_an_operator_that_was_left_out_while_the_other_went_on_is_refused(tmp_path: Path) -> None:
    two(tmp_path, 5, keep=None)
    two(tmp_path, 8, ["answer"], keep=None)
    with pytest.raises(
        StateError, match=r"no state of the same frontier \('answer-state' in .* at 8, 'other-state' in "
    ):
        two(tmp_path, len(EPOCHS), keep=None)
    two(tmp_path, len(EPOCHS), keep=None, replay=True)
    for name in EVERY:
        assert updates(str(tmp_path), name) == expected(EPOCHS)


def test_an_answer_that_comes_back_before_the_state_of_an_operator_is_refused(tmp_path: Path) -> None:
    """Changes from there on would find an operator that has not seen those before."""
    two(tmp_path, 3, ["answer"], keep=None, copies=True)
    two(tmp_path, 8, ["answer"], keep=None)
    with pytest.raises(
        StateError, match=r"'answer-state' in .* has the state of an operator at 8, and 'copy' in .* changes from 3 on"
    ):
        two(tmp_path, len(EPOCHS), ["answer"], keep=None, copies=True)
    shutil.copytree(tmp_path, tmp_path / "other")
    two(tmp_path, len(EPOCHS), ["answer"], keep=None, copies=True, replay=True)
    assert updates(str(tmp_path)) == expected(EPOCHS)
    shutil.rmtree(tmp_path / "other" / "copy")
    two(tmp_path / "other", len(EPOCHS), ["answer"], keep=None, copies=True)
    assert updates(str(tmp_path / "other")) == expected(EPOCHS)


def test_a_replay_of_a_part_of_the_past_does_not_replace_the_state_of_an_operator(tmp_path: Path) -> None:
    two(tmp_path, 8, ["answer"], keep=5)
    assert Shard("numbers", Directory(str(tmp_path)).store("numbers")).manifest().since == 2
    with pytest.raises(StateError, match=r"has the state of an operator at [468], and replay=True makes .* from 2 on"):
        two(tmp_path, len(EPOCHS), ["answer"], keep=5, replay=True)
    two(tmp_path, len(EPOCHS), ["answer"], keep=5)
    assert updates(str(tmp_path)) == expected(EPOCHS)


BEGAN = [[], [], [], [], sorted({number for epoch in EPOCHS[:5] for number in epoch}), *EPOCHS[5:]]
"""What an operator receives that begins at 4."""


def begun(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an operator begin at 4, and keep no state, and another answer be final before 1."""
    monkeypatch.setitem(EVERY, "answer", 100)
    two(where, 1, [], keep=None, copies=True)
    two(where, 5, [], keep=None)
    two(where, 7, ["answer"], keep=None)
    manifest = snapshot(where, "answer").manifest()
    assert (manifest.since, manifest.states) == (4, ())


@pytest.mark.parametrize("replay", [False, True])
def test_an_operator_without_a_state_begins_where_it_began_though_an_answer_is_further_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replay: bool
) -> None:
    """Its answers are final from there on. Loading the inputs as of an earlier time must not let it see more."""
    begun(tmp_path, monkeypatch)
    two(tmp_path, len(EPOCHS), ["answer"], keep=None, copies=True, replay=replay)
    assert updates(str(tmp_path)) == expected(BEGAN)


def test_a_new_operator_begins_where_another_one_without_a_state_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path, monkeypatch)
    monkeypatch.setitem(EVERY, "other", 100)
    for last in (8, len(EPOCHS)):
        two(tmp_path, last, keep=None, copies=True)
    for name in EVERY:
        assert updates(str(tmp_path), name) == expected(BEGAN)


def test_an_operator_whose_first_state_was_not_committed_with_the_others_begins_where_all_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path, monkeypatch)
    monkeypatch.setitem(EVERY, "other", 100)
    two(tmp_path, 7, keep=None)
    monkeypatch.setitem(EVERY, "answer", 8)
    monkeypatch.setitem(EVERY, "other", 8)
    commits = 0

    def crashing(self: Writer, *arguments: Any, keep_states: Any = Writer.keep_states) -> None:
        nonlocal commits
        commits += 1
        if commits == 2:
            raise Crashed
        keep_states(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "keep_states", crashing)
        with pytest.raises(OperatorError, match="Crashed"):
            two(tmp_path, len(EPOCHS), keep=None)
    assert sorted(snapshot(tmp_path, name).manifest().upper for name in EVERY) == [5, 8]
    two(tmp_path, len(EPOCHS), keep=None, copies=True)
    for name in EVERY:
        assert updates(str(tmp_path), name) == expected(BEGAN)
