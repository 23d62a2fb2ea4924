"""A change of the first or last values of a key costs the same however many records the key has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from differential import Collection, new_input
from differential.operators import selected
from timely import Worker, execute_directly
from timely.lowlevel import typed

ROWS, CHANGES = 20_000, 200
Columns = tuple[Any, ...]

VALUES: dict[str, Callable[[Any], Columns]] = {
    "floats": lambda n: (n * 0.5, n),
    "timestamps": lambda n: (n + 1_767_225_600_000_000, n, n),
    "nullable integers": lambda n: (typed(n << 34, "int64?"), n),
    "text": lambda n: (np.char.add("name ", np.char.zfill(n.astype(str), 9)),),
    "wide rows": lambda n: (n,) * 7,
}
OPERATORS: dict[str, Callable[[Collection], Collection]] = {
    "max": lambda one: one.max(),
    "top_k": lambda one: one.top_k(10),
    "argmax": lambda one: one.argmax(lambda key, first, *others: first),
}


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows there are in each batch that is sorted by value."""
    found: list[int] = []
    in_value_order = selected.in_value_order

    def counted(batch: Any, order: int) -> Any:
        found.append(int(batch[0][0]))
        return in_value_order(batch, order)

    monkeypatch.setattr(selected, "in_value_order", counted)
    return found


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("values", VALUES)
def test_a_change_of_a_large_group_sorts_few_rows(values: str, name: str, sizes: list[int]) -> None:
    """Records that are greatest come and go, so that another one is greatest each time."""

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            output = OPERATORS[name](collection).output()
        session.insert(np.zeros(ROWS, np.int64), *VALUES[values](np.arange(ROWS)))
        for change in range(CHANGES):
            session.advance_to(change + 1)
            worker.step_while(lambda least=change + 1: output.less_than(least))  # type: ignore[misc]
            if change == 0:
                assert sum(sizes) == ROWS
                sizes.clear()
            place = ROWS + change if change % 3 else ROWS - 1 - change // 3
            session.update(np.zeros(1, np.int64), *VALUES[values](np.array([place])), diff=1 if change % 3 else -1)
        assert sum(sizes) < 20 * CHANGES
        session.close()
        worker.step_while(lambda: not output.done())

    execute_directly(program)


def test_a_value_of_another_key_does_not_change_what_a_group_costs(sizes: list[int]) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            output = collection.top_k(10).output()
        session.insert(np.zeros(ROWS, np.int64), np.arange(ROWS), np.arange(ROWS))
        for epoch, diff in enumerate([1, -1, 1, -1]):
            session.update([1], [1 << 40], [5], diff=diff)
            session.update([0], [ROWS + epoch], [5], diff=1)
            session.advance_to(epoch + 1)
            worker.step_while(lambda least=epoch + 1: output.less_than(least))  # type: ignore[misc]
            assert sum(sizes[1 if epoch == 0 else 0 :]) < 20
            sizes.clear()
        session.close()
        worker.step_while(lambda: not output.done())

    execute_directly(program)
