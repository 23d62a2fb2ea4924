"""Joins that emit many pairs for few records: their pairs are consumed piece by piece."""

from __future__ import annotations

import pytest

import differential.delta.lookup as looking_up
import differential.operators.join_arrangements as joining
from differential import Collection
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
