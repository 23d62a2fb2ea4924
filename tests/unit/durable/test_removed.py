"""A program whose durable collection is removed or replaced while it runs ends with an error that names it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from differential import Updates
from differential.durable import Directory, Shard, State, durable_input, persist
from differential.durable.local import LocalStore
from differential.durable.writer import Writer
from timely import Worker, execute_directly
from timely.errors import FencedError, OperatorError, StateError, StoreError


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("differential.durable.writer._FIRST_PAUSE", 0.0)


def run(state: Path, epochs: int, *, ahead: bool = False, harm: Callable[[], None] = lambda: None) -> int:
    """Make the epochs that are not durable, the last one after some harm; return the first of them."""

    def program(worker: Worker) -> int:
        opened = State.open(worker, str(state))
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, opened.shard("numbers", fields=["number"]), ahead=ahead)
            answer = persist(numbers.count(), opened.shard("answer", fields=["number", "count"]))
        first = session.epoch
        for epoch in range(first, epochs):
            if epoch == epochs - 1:
                harm()
            session.insert(epoch % 2)
            session.advance_to(epoch + 1)
            worker.step_while(lambda: not answer.is_durable(session.epoch))
        session.close()
        worker.step_while(lambda: not answer.done())
        return first

    return execute_directly(program)


def remove(shard: Path) -> None:
    shutil.rmtree(shard)


def remove_manifest(shard: Path) -> None:
    (shard / "manifest.json").unlink()


def replace(shard: Path) -> None:
    shutil.rmtree(shard)
    shutil.copytree(shard.parent.parent / "old" / shard.name, shard)


@pytest.mark.parametrize(
    ("harm", "name", "ahead", "complaint"),
    [
        (remove, "numbers", False, "was removed"),
        (remove, "answer", True, "was removed"),
        (remove_manifest, "numbers", True, "was removed"),
        (remove_manifest, "answer", False, "was removed"),
        (replace, "numbers", False, "was replaced by an older copy"),
        (replace, "numbers", True, "was replaced by an older copy"),
        (replace, "answer", False, "was replaced by an older copy"),
    ],
)
def test_the_next_epoch_is_refused(
    tmp_path: Path, harm: Callable[[Path], None], name: str, ahead: bool, complaint: str
) -> None:
    state = tmp_path / "state"
    run(state, 1)
    shutil.copytree(state, tmp_path / "old")
    run(state, 2)
    shutil.copytree(state, tmp_path / "whole")
    where = f"{name!r} in .*{re.escape(str(state / name))}"
    with pytest.raises(OperatorError, match=f"{where}.* {complaint} while this program wrote to it.*from a copy"):
        run(state, 4, ahead=ahead, harm=lambda: harm(state / name))
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "whole", state)
    assert run(state, 4) == 2
    assert Shard("answer", Directory(str(state)).store("answer")).read() == {(0, 2): 1, (1, 2): 1}


def test_a_directory_that_is_removed_is_not_made_again(tmp_path: Path) -> None:
    """Otherwise a copy could not be restored to where it was."""
    shard = Shard("numbers", LocalStore(str(tmp_path / "numbers")))
    writer = Writer.claim(shard, "input")
    writer.check()
    shutil.rmtree(tmp_path / "numbers")
    changes: list[Callable[[], object]] = [
        writer.check,
        lambda: writer.append(1, []),
        lambda: writer.append(1, [Updates.at((0,), (np.array([7]),))]),
        lambda: writer.note({"file": 1}),
    ]
    for change in changes:
        with pytest.raises(FencedError, match=f"{tmp_path}/numbers.* was removed while this program wrote to it"):
            change()
    assert not (tmp_path / "numbers").exists()
    Writer.claim(shard, "input").append(1, [])
    assert shard.manifest().upper == 1


def test_parts_that_are_removed_are_named(tmp_path: Path) -> None:
    shard = Shard("numbers", LocalStore(str(tmp_path / "numbers")))
    writer = Writer.claim(shard, "input")
    writer.append(1, [Updates.at((0,), (np.array([7]),))])
    shutil.rmtree(tmp_path / "numbers" / "parts")
    with pytest.raises(StoreError, match=f"cannot write {tmp_path}/numbers/parts/.*No such file or directory"):
        writer.append(2, [Updates.at((1,), (np.array([8]),))])
    with pytest.raises(StateError, match="is missing: restore the directory"):
        shard.read()
