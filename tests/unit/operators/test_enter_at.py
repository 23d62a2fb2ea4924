"""Records enter a loop at the rounds given for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from differential import Collection, Updates, example
from timely import Scope
from timely.errors import OperatorError


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30))), st.sampled_from([1, 1000]))
def test_each_row_gets_its_round_as_a_further_coordinate(rows: list[tuple[int, int]], factor: int) -> None:
    index, rounds = np.array(rows, np.int64).reshape(-1, 2).T
    updates = Updates((np.arange(len(rows)),), np.array([[4], [6], [5]]), index.copy(), np.ones(len(rows), np.int64))
    found = updates.entered_at(rounds * factor, 30 * factor)
    assert found is not None
    assert found.each_time() == [((4, 6, 5)[time], round * factor) for time, round in rows]
    assert len(found.times) == len(set(found.each_time()))


@pytest.mark.parametrize("rounds", [-1, 0.5, 2**61, np.uint64(2**63)])
def test_a_value_that_is_not_a_round_is_refused(rounds: float | np.uint64) -> None:
    def program(scope: Scope) -> Collection:
        with scope.iterative() as inner:
            return (
                Collection.of(scope, np.arange(3))
                .enter_at(inner, lambda x: x.astype(np.asarray(rounds).dtype) * rounds)
                .leave()
            )

    with pytest.raises(OperatorError, match="one integer, from 0 to"):
        example(program)
