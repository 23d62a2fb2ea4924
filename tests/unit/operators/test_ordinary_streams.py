"""A collection needs a stream of updates; an ordinary stream of records is refused with what makes a collection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from differential import Collection
from timely import Config, Worker, execute
from timely.errors import OperatorError


def in_a_loop(numbers: Collection) -> Collection:
    with numbers.scope.iterative() as inner:
        return numbers.enter(inner).leave()


def at_rounds(numbers: Collection) -> Collection:
    with numbers.scope.iterative() as inner:
        return numbers.enter_at(inner, lambda *columns: 1).leave()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("data", [[1, 2], (np.array([1, 2]), np.array([3, 4]))], ids=repr)
@pytest.mark.parametrize(
    "use",
    [
        lambda numbers: numbers,
        lambda numbers: numbers.map(lambda *columns: columns),
        lambda numbers: numbers.inspect(lambda *update: None),
        lambda numbers: numbers.attempt(lambda *columns: columns).results,
        lambda numbers: numbers.consolidate(),
        lambda numbers: numbers.count(),
        lambda numbers: numbers.join(numbers),
        in_a_loop,
        at_rounds,
    ],
)
def test_a_stream_of_records_is_refused(use: Callable[[Collection], Collection], data: Any, workers: int) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            answer = use(Collection(scope.to_stream(data))).output()
        worker.step_while(lambda: not answer.done())

    words = r"DataError: .* carries batches of updates .*, not of type (list|Columns): Collection\.of\(.*new_input\("
    with pytest.raises(OperatorError, match=words):
        execute(program, Config(workers=workers))
