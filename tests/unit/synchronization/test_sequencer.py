"""Tests of `Sequencer`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.dataflow.running import on_workers
from timely import Config, Sequencer, Worker, execute, execute_directly
from timely.errors import DataError


@on_workers
def test_all_workers_see_all_commands_in_one_order_and_each_senders_in_its_own(workers: int) -> None:
    def program(worker: Worker) -> list[Any]:
        commands, seen = Sequencer(worker), []
        for number in range(20):
            commands.push((worker.index, number))
            worker.step()
            seen += commands
        commands.close()
        while not commands.done():
            worker.step_or_park()
            seen += commands
        return seen

    first, *others = execute(program, Config(workers=workers))
    assert all(other == first for other in others)
    assert len(first) == 20 * workers
    for index in range(workers):
        assert [number for sender, number in first if sender == index] == list(range(20))


def test_every_worker_receives_its_own_copy_of_a_command_as_it_was_when_pushed() -> None:
    def program(worker: Worker) -> Any:
        commands = Sequencer(worker)
        command = {"text": ["é", b"\0", None, True, 2**70, 0.5], (1, 2): (3, [4])}
        if worker.index == 1:
            commands.push(command)
            command["text"] = "changed"
        commands.close()
        worker.step_while(lambda: not commands.has_arrived)
        (seen,) = commands
        seen["seen by"] = worker.index
        return seen

    for index, seen in enumerate(execute(program, Config(workers=3))):
        assert seen == {"text": ["é", b"\0", None, True, 2**70, 0.5], (1, 2): (3, [4]), "seen by": index}


def test_a_command_that_is_not_plain_data_is_refused_when_it_is_pushed() -> None:
    def program(worker: Worker) -> None:
        Sequencer(worker).push(lambda: None)

    with pytest.raises(DataError, match="a function cannot be sent to another process"):
        execute_directly(program)


@on_workers
def test_a_sequencer_left_open_does_not_keep_a_program_from_ending(workers: int) -> None:
    def program(worker: Worker) -> None:
        Sequencer(worker).push("unread")

    execute(program, Config(workers=workers))
