"""A first batch is planned by itself as it is among all others."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given, settings, strategies as st

import differential.kernels.reduce_rounds as rounds
from differential.kernels import reduce_plan
from differential.kernels.reduce_layers import PENDING_TIME
from tests.oracle.blocks import columns_in
from tests.oracle.layers import Layers, Update, rows_of
from tests.thorough import examples

NONE = np.empty((0, 8), np.int64)


def emitted(state: rounds.ReduceState) -> tuple[Any, ...]:
    """Return what the function receives in each round and what is emitted if it doubles counts; what is pending."""
    found = []
    for number in range(state.rounds):
        active, offsets, vals, counts, fault = state.accumulate(number)
        rows = rows_of(*columns_in(*state.settle(offsets, vals, 2 * counts)))
        received = [state.keys[active], offsets, vals, counts, fault]
        found.append(([column.tolist() for column in received], rows, state.time_of(number, 0)))
    return found, state.pending.tolist()


@settings(max_examples=examples(100), deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(-2, 3), st.integers(0, 3)), st.sampled_from([1, 1, 2, -3]), min_size=1, max_size=12
    ),
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.data(),
)
@example(rows={(1, 0): 1, (1, 2): 1}, time=[1], data=None)
def test_a_first_batch_alone(rows: dict[tuple[int, int], int], time: list[int], data: Any) -> None:
    depth = len(time)
    updates: list[Update] = [(key, val, tuple(time), diff) for (key, val), diff in rows.items()]
    bounds = st.lists(st.tuples(*[st.integers(0, 4)] * depth), max_size=2)
    upper = np.array(data.draw(bounds) if data is not None else [], np.int64).reshape(-1, depth)
    batch = Layers([updates], depth)
    pending = np.empty((0, PENDING_TIME + depth), np.int64)
    assert reduce_plan.is_first(batch.table, pending, batch.table, NONE)
    assert emitted(rounds.plan(batch.table, pending, batch.table, NONE, upper)) == emitted(
        rounds.ReduceState(*rounds.plan_rounds(batch.table, pending, batch.table, NONE, upper))
    )


def test_a_batch_with_a_history_or_several_times_is_not_first() -> None:
    batch, other = Layers([[(1, 0, (0,), 1)]], 1), Layers([[(1, 0, (1,), 1)]], 1)
    several = Layers([[(1, 0, (0,), 1), (1, 0, (1,), 1)]], 1)
    none, pending = np.empty((0, PENDING_TIME + 1), np.int64), np.array([[1, 0, 5]])
    both = np.concatenate([batch.table, other.table])
    assert reduce_plan.is_first(batch.table, none, batch.table, NONE)
    assert not reduce_plan.is_first(batch.table, none, other.table, NONE)
    assert not reduce_plan.is_first(other.table, none, both, NONE)
    assert not reduce_plan.is_first(both, none, both, NONE)
    assert not reduce_plan.is_first(batch.table, none, batch.table, other.table)
    assert not reduce_plan.is_first(batch.table, pending, batch.table, NONE)
    assert not reduce_plan.is_first(several.table, none, several.table, NONE)
    assert not reduce_plan.is_first(Layers([[]], 1).table, none, Layers([[]], 1).table, NONE)
    assert not reduce_plan.is_first(NONE, none, NONE, NONE)
