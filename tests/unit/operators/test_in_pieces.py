"""Many updates made of one batch: consumers run after each piece, and times are those of the batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection
from differential.data.updates import Updates
from differential.operators import in_pieces as pieces
from differential.operators.in_pieces import in_pieces
from tests.oracle.grid import Update, contents, grid, run
from tests.thorough import examples
from timely import InputPort, OutputPort, Pipeline, Worker, execute_directly


def repeated(updates: Updates) -> Iterator[Updates]:
    """Yield one piece for each row, which has the row as often as its number; 0 makes an empty piece."""
    for row, number in enumerate(updates.columns[0].tolist()):
        yield updates.take(np.full(number, row))


UPDATES = st.lists(st.tuples(st.tuples(st.integers(0, 4)), st.tuples(st.integers(0, 3)), st.sampled_from([1, 2])))


@given(UPDATES, st.integers(1, 3), st.integers(0, 999), st.sampled_from([1, 3, 100]))
@settings(max_examples=examples(25), deadline=None)
def test_pieces_of_any_length_are_what_the_transform_yields_at_the_times_of_its_batches(
    updates: list[Update], workers: int, seed: int, most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "ROWS_PER_PIECE", most)
        found = run(lambda each: in_pieces(each, repeated, name="repeated"), updates, workers=workers, seed=seed)
    expected: dict[object, int] = {}
    for record, time, diff in updates:
        expected[record, time] = expected.get((record, time), 0) + diff * record[0]
    assert {(record, time): diff for record, time, diff in found} == {at: diff for at, diff in expected.items() if diff}


@given(UPDATES, st.integers(1, 3), st.integers(0, 999))
@settings(max_examples=examples(25), deadline=None)
def test_a_loop_waits_for_all_pieces(updates: list[Update], workers: int, seed: int) -> None:
    def below(found: Updates) -> Iterator[Updates]:
        for row, number in enumerate(found.columns[0].tolist()):
            for less in range(number)[-2:]:
                yield found.take(np.array([row])).with_columns((np.array([less]),))

    def program(given: Collection) -> Collection:
        return given.iterate(lambda inner: in_pieces(inner, below, name="below").concat(given).distinct())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "ROWS_PER_PIECE", 1)
        changes = run(program, updates, workers=workers, seed=seed)
    for time in grid(updates):
        most = max([record[0] for record in contents(updates, time)], default=-1)
        assert contents(changes, time) == dict.fromkeys([(number,) for number in range(most + 1)], 1)


def test_a_piece_is_consumed_before_the_next_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "ROWS_PER_PIECE", 2)
    made, received = [], []

    def thrice(updates: Updates) -> Iterator[Updates]:
        for number in range(3):
            made.append(number)
            yield updates

    def take(input: InputPort, output: OutputPort) -> None:
        received.append((len(made), len(list(input.drain()))))

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            in_pieces(Collection.of(scope, [1, 2]), thrice, name="thrice").stream.unary(Pipeline(), take)
        while worker.step():
            pass

    execute_directly(program)
    assert [each for each in received if each[1]] == [(1, 1), (2, 1), (3, 1)]
