"""Tests of what an arrangement can be asked for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from differential import Arrangement, Collection
from tests.oracle.grid import on_workers, run
from timely import Worker, execute_directly

UPDATES = [((1, 2), (0,), 2), ((1, 3), (0,), 1), ((2, 2), (1,), 1)]

ASKED: list[tuple[Callable[[Arrangement], Collection], Callable[[Collection], Collection]]] = [
    (lambda index: index.join(index), lambda one: one.join(one)),
    (
        lambda index: index.join_map(index, lambda k, v, w: (v, w)),
        lambda one: one.join_map(one, lambda k, v, w: (v, w)),
    ),
    (lambda index: index.count(), lambda one: one.count()),
    (lambda index: index.distinct(), lambda one: one.distinct()),
    (
        lambda index: index.reduce(lambda groups: (groups.index, *groups.values)),
        lambda one: one.reduce(lambda groups: (groups.index, *groups.values)),
    ),
]


@on_workers
@pytest.mark.parametrize(("of_index", "of_collection"), ASKED)
def test_an_arrangement_says_what_its_collection_does(of_index: Any, of_collection: Any, workers: int) -> None:
    said = run(lambda one: of_index(one.arrange_by_key()), UPDATES, workers=workers)
    assert said == run(of_collection, UPDATES, workers=workers)
    assert said


def test_one_index_serves_all_who_ask() -> None:
    def program(worker: Worker) -> int:
        with worker.dataflow() as scope:
            index = Collection.of(scope, np.arange(3), np.arange(3)).arrange_by_key()
            for of_index, _ in ASKED:
                of_index(index)
            return sum(operator.name == "arrange" for operator in scope.dataflow.operators)

    assert execute_directly(program) == 1


@on_workers
def test_an_arrangement_by_whole_records_has_no_values(workers: int) -> None:
    assert run(lambda one: one.arrange_by_self().count(), UPDATES, workers=workers) == [
        ((1, 2, 2), (0,), 1),
        ((1, 3, 1), (0,), 1),
        ((2, 2, 1), (1,), 1),
    ]
