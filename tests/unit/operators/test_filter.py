"""Tests of `filter`."""

from __future__ import annotations

import numpy as np
import pytest

from differential import Collection, example
from tests.oracle.grid import on_workers, run
from timely.errors import OperatorError


@on_workers
def test_records_that_satisfy_the_predicate_are_kept_unchanged(workers: int) -> None:
    updates = [((1, 5), (0,), 2), ((2, 6), (0,), 1), ((3, 5), (1,), 1), ((1, 5), (2,), -1)]
    changes = run(lambda one: one.filter(lambda key, value: value < 6), updates, workers=workers)
    assert changes == [updates[0], updates[2], updates[3]]


def test_a_filter_keeps_the_key() -> None:
    def program(scope):  # type: ignore[no-untyped-def]
        pairs = Collection.of(scope, np.array([1, 1, 2]), np.array(["a", "b", "a"]), keys=2)
        kept = pairs.filter(lambda number, letter: letter != "b")
        assert kept.keys == 2
        return kept.count()

    assert example(program) == [((1, "a", 1), 1), ((2, "a", 1), 1)]


def test_one_answer_for_all_rows_is_refused() -> None:
    for predicate in (lambda number: 2 in number, lambda number: np.bool_(True), lambda number: number is None):
        with pytest.raises(OperatorError, match=r"length 3, and returned one value, (True|False): it receives whole"):
            example(lambda scope, kept=predicate: Collection.of(scope, np.arange(3)).filter(kept))
