"""What is not a retention, duration, name or field is refused where it is stated, not taken for something else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import differential as dd
from differential import new_input
from differential.durable import Directory, Shard, State, durable_input, persist
from timely import Worker, execute_directly
from timely.errors import ConfigError


def refused(tmp_path: Path, complaint: str, use: Callable[[Any, State], object]) -> None:
    def program(worker: Worker) -> None:
        state = State.open(worker, tmp_path)
        with worker.dataflow() as scope:
            use(scope, state)

    with pytest.raises(ConfigError, match=complaint):
        execute_directly(program)


@pytest.mark.parametrize("keep", [1.5, True, dt.timedelta(hours=1), [1], b"1h"])
def test_what_is_no_retention_keeps_nothing_for_ever(tmp_path: Path, keep: Any) -> None:
    refused(tmp_path, "keep=.* must be a number of epochs", lambda _, state: state.shard("words", keep=keep))
    with pytest.raises(ConfigError, match=r"keep=.* must be a number of epochs"):
        dd.Session(state=tmp_path / "db", keep=keep)


def test_a_number_of_numpy_is_a_retention(tmp_path: Path) -> None:
    def program(worker: Worker) -> None:
        state = State.open(worker, tmp_path)
        with worker.dataflow() as scope:
            words, _ = durable_input(scope, state.shard("words", keep=np.int64(1)))  # type: ignore[arg-type]
        for epoch in range(3):
            words.insert(epoch)
            words.advance_to(epoch + 1)
            worker.step_while(lambda: not words.is_durable(words.epoch))

    execute_directly(program)
    assert Shard("words", Directory(str(tmp_path)).store("words")).manifest().since == 1


@pytest.mark.parametrize("flush", [1, 0.5, dt.timedelta(seconds=1)])
def test_what_is_no_duration_is_no_flush(tmp_path: Path, flush: Any) -> None:
    refused(tmp_path, "is not a duration", lambda scope, state: durable_input(scope, state.shard("words"), flush=flush))
    refused(tmp_path, "is not a duration", lambda s, state: persist(new_input(s)[1], state.shard("words"), flush=flush))


@pytest.mark.parametrize("fields", ["word", [1], [""], []])
def test_fields_are_a_list_of_names(tmp_path: Path, fields: Any) -> None:
    refused(tmp_path, "fields of 'words' are a list of names", lambda _, state: state.shard("words", fields=fields))


def test_a_value_of_a_field_that_is_not_named_is_refused(tmp_path: Path) -> None:
    def use(_: Any, state: State) -> object:
        return state.shard("stock", fields=["part", "price"], added={"prize": 0.0})

    refused(tmp_path, "added= has a value of 'prize', but 'stock' has no such field: part, price", use)


@pytest.mark.parametrize("name", [None, 3, b"words"])
def test_a_name_is_text(tmp_path: Path, name: Any) -> None:
    refused(tmp_path, "cannot name a durable collection", lambda _, state: state.shard(name))
