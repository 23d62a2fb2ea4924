"""Tests of joins of keys that may have nulls on one side alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from differential import new_input
from differential.frames import typed
from tests.oracle.grid import on_workers
from timely import Config, Worker, execute

PLAIN: list[tuple[str, list[Any]]] = [
    ("int64", [-3, 0, 2**63 - 1]),
    ("uint64", [0, 5, 2**63]),
    ("float32", [-0.5, 0.25, float("inf")]),
    ("float64", [-0.5, 0.1, float("nan")]),
    ("bool", [False, True, True]),
    ("text", ["", "a longer text than sixteen bytes", "\U0010ffff"]),
]
"""Types, and three values of each. The last of two types has the same code as a null."""


def joined(workers: int, left: Any, right: Any) -> list[list[Any]]:
    """Return the records of a join, a semijoin and an antijoin of columns of keys, whose values number the rows."""

    def program(worker: Worker) -> Any:
        with worker.dataflow() as scope:
            (first, one), (second, other) = new_input(scope), new_input(scope)
            keys = other.map(lambda key, number: key).distinct()
            outputs = [each.output() for each in (one.join(other), one.semijoin(keys), one.antijoin(keys))]
        if worker.index == 0:
            first.insert(left, np.arange(len(left)))
            second.insert(right, np.arange(len(right)))
        first.close()
        second.close()
        worker.step_while(lambda: not all(output.done() for output in outputs))
        return [output.contents() for output in outputs]

    parts = execute(program, Config(workers=workers))
    return [[record for part in parts for record in part[number]] for number in range(3)]


def shown(records: Iterable[Any]) -> list[str]:
    """Return records as text, in which NaN equals NaN."""
    return sorted(map(repr, records))


@on_workers
@pytest.mark.parametrize(("name", "values"), PLAIN)
def test_a_null_equals_no_value_of_a_side_that_has_no_nulls(workers: int, name: str, values: list[Any]) -> None:
    plain, nulls = typed(values, name), typed([values[0], None, values[1]], f"{name}?")
    for left, right in ((plain, nulls), (nulls, plain)):
        ours, theirs = left.tolist(), right.tolist()
        pairs = [
            (key, row, number)
            for row, key in enumerate(ours)
            for number, other in enumerate(theirs)
            if repr(key) == repr(other)
        ]
        matched = {row for _, row, _ in pairs}
        both, found, missed = joined(workers, left, right)
        assert pairs
        assert shown(both) == shown(pairs)
        assert shown(found) == shown((ours[row], row) for row in matched)
        assert shown(missed) == shown((ours[row], row) for row in set(range(3)) - matched)
