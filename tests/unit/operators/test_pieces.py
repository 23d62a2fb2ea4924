"""Joins that emit many pairs for few records: these are consumed piece by piece, and those that cancel do not meet."""

from __future__ import annotations

from typing import Any

import pytest

import differential.delta.lookup as looking_up
import differential.operators.join_arrangements as joining
from differential import Collection, new_input
from differential.delta import half_join
from timely import InputPort, OutputPort, Pipeline, Worker, execute_directly


def waiting(worker: Worker, program_of: str) -> list[int]:
    """Return how many messages each activation of the operator after a join receives."""
    found: list[int] = []

    def take(input: InputPort, output: OutputPort) -> None:
        found.append(len(list(input.drain())))

    with worker.dataflow() as scope:
        left = Collection.of(scope, [1] * 16, list(range(16)))
        right = Collection.of(scope, [1] * 16, list(range(16)))
        if program_of == "join":
            pairs = left.join(right)
        else:
            pairs = half_join.half_join(left, right.arrange_by_key(), lambda *columns: columns)
        pairs.stream.unary(Pipeline(), take)
    while worker.step():
        pass
    return found


@pytest.mark.parametrize("program_of", ["join", "half_join"])
def test_pairs_are_consumed_piece_by_piece(program_of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "ROWS_PER_BATCH", 16)
    monkeypatch.setattr(looking_up, "ROWS_PER_BATCH", 16)
    monkeypatch.setattr(half_join, "PIECE", 16)
    found = execute_directly(lambda worker: waiting(worker, program_of))
    assert sum(found) >= 8
    assert max(found) == 1


def epochs_at_once(epochs: int) -> tuple[list[Any], int]:
    """Return the changes of a join of a count with itself when all epochs are sent at once, and how many rows met."""
    met = 0

    def both(key: Any, one: Any, other: Any) -> Any:
        nonlocal met
        met += len(key)
        return key, one, other

    def program(worker: Worker) -> list[Any]:
        with worker.dataflow() as scope:
            session, records = new_input(scope)
            total = records.map(lambda number: number * 0).count()  # one record at any time
            output = total.join_map(total, both).output()
        for epoch in range(epochs):
            session.insert(epoch)
            session.advance_to(epoch + 1)
        session.close()
        worker.step_while(lambda: not output.done())
        return output.changes()

    return execute_directly(program), met


def test_epochs_sent_at_once_do_not_all_meet_each_other() -> None:
    changes, met = epochs_at_once(2000)
    expected = [((0, 1, 1), (0,), 1)]
    for epoch in range(1, 2000):
        expected += [((0, epoch, epoch), (epoch,), -1), ((0, epoch + 1, epoch + 1), (epoch,), 1)]
    assert changes == expected
    assert met < 1_000_000, "each of 4,000 updates meets each of the other side"
