"""Tests of `output`."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from differential import Collection, Output, example, new_input
from timely import Scope, Worker, execute, execute_directly
from timely.config import Config
from timely.errors import BuildError, OperatorError


def counting(where: int, epochs: int = 3) -> object:
    """Count even and odd numbers; return for each epoch the changes and the contents that this worker sees."""

    def program(worker: Worker) -> list[tuple[list[object], dict[object, int]]]:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            output: Output = numbers.map(lambda number: number % 2).count().output(where)
        seen = []
        for epoch in range(epochs):
            if worker.index == 0:
                session.insert(np.arange(epoch, epoch + 3))
            session.advance_to(epoch + 1)
            worker.step_while(lambda: output.less_than(session.epoch))
            seen.append((output.changes(), dict(output.contents())))
        session.close()
        worker.step_while(lambda: not output.done())
        assert output.changes() == []
        return seen

    return program


@pytest.mark.parametrize("workers", [1, 3])
def test_the_chosen_worker_receives_everything_and_the_others_nothing(workers: int) -> None:
    results = execute(counting(workers - 1), config=Config(workers=workers))  # type: ignore[arg-type]
    numbers: Counter[int] = Counter()
    for epoch, (changes, contents) in enumerate(results[workers - 1]):
        before = {(key, count) for key, count in numbers.items()}
        numbers.update(number % 2 for number in range(epoch, epoch + 3))
        after = {(key, count) for key, count in numbers.items()}
        assert contents == dict.fromkeys(after, 1)
        assert {record for record, _, diff in changes if diff > 0} == after - before
        assert {record for record, _, diff in changes if diff < 0} == before - after
        assert {time for _, time, _ in changes} == {(epoch,)}
    for seen in results[: workers - 1]:
        assert all(changes == [] and contents == {} for changes, contents in seen)


def test_an_output_adds_up_diffs_beyond_64_bits_and_an_arrangement_refuses_them() -> None:
    def updates(scope: Scope) -> Collection:
        large = [Collection.of(scope, 1).explode(lambda one: (one, one * 2**62)) for _ in range(5)]
        return large[0].concat(*large[1:])

    assert example(updates) == [((1,), 5 * 2**62)]
    with pytest.raises(OperatorError, match="how often 1 occurs does not fit into 64 bits"):
        example(lambda scope: updates(scope).consolidate())


def test_an_output_takes_large_unsigned_integers_of_a_function_and_an_arrangement_refuses_them() -> None:
    def numbers(scope: Scope) -> Collection:
        return Collection.of(scope, [1, 2]).map(lambda x: x.astype(np.uint64) + np.uint64(2**63))

    assert example(numbers) == [((2**63 + 1,), 1), ((2**63 + 2,), 1)]
    for arranged in (Collection.count, Collection.distinct, Collection.consolidate):
        with pytest.raises(OperatorError, match=r"too large for a 64-bit integer: typed\(column, 'uint64'\)"):
            example(lambda scope, arranged=arranged: arranged(numbers(scope)))  # type: ignore[misc]


def test_an_output_is_read_once_the_dataflow_is_complete() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            output = Collection.of(scope, 1).output()
            assert not output.done()
            for read in (output.changes, output.contents, lambda: output.less_than(1)):
                with pytest.raises(BuildError, match="leave its `with` block"):
                    read()

    execute_directly(program)


def test_a_value_that_is_not_a_time_of_the_output_is_refused() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            output = Collection.of(scope, np.array([1])).output()
        for time in ((), (5, 2)):
            with pytest.raises(BuildError, match=r"is not a time of operator 'output' .* 1 coordinate"):
                output.less_than(time)

    execute_directly(program)


def test_every_nan_is_one_record_after_all_numbers() -> None:
    numbers = np.array([np.nan, 2.0, -np.nan, np.inf, -0.0, 0.0])
    assert example(lambda scope: Collection.of(scope, numbers)) == [
        ((0.0,), 2),
        ((2.0,), 1),
        ((np.inf,), 1),
        ((np.nan,), 2),
    ]


def test_records_of_different_widths_cannot_be_read() -> None:
    def program(scope: Scope) -> Collection:
        return Collection.of(scope, 1, 2).concat(Collection.of(scope, 1))

    with pytest.raises(OperatorError, match=r"others [12]: all records"):
        example(program)
