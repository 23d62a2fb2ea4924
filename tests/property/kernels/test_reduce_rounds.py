"""Each round of a reduction in Python, against the definition as of the times that the round visits.

In a round, a group is what its key accumulates to at the time visited. What is emitted for it is the reduction, less
the output at that time: that of earlier calls, and of earlier rounds.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from differential.kernels.compile import NOTHING
from differential.kernels.reduce_layers import PENDING_TIME
from differential.kernels.reduce_replay import INPUT, OUTPUT
from differential.kernels.reduce_rounds import (
    ReduceState,
    accumulate_round,
    plan,
    settle_round,
)
from tests.oracle.blocks import columns_in
from tests.oracle.layers import Layers, Update, consolidated, rows_of
from tests.oracle.reduce import Multiset, Reduction, accumulate, closure_under_join, count
from tests.property.kernels.test_reduce import histories, split, table_of, uppers
from tests.thorough import examples
from timely.order import Time
from timely.progress.antichain import Antichain


def halved(values: Multiset) -> Multiset:
    found: Counter[int] = Counter()
    for val, diff in values.items():
        found[val >> 1] += diff
    return {val: diff for val, diff in found.items() if diff}


def first_of_each_sign(values: Multiset) -> Multiset:
    return {min(values): 1, max(values) + 5: -1} if values else {}


REDUCTIONS: dict[str, Reduction] = {"count": count, "halved": halved, "first of each sign": first_of_each_sign}


class Rounds:
    """The rounds of one call, each compared with what the updates before it mean."""

    def __init__(self, state: ReduceState, input: list[Update], output: list[Update], reduction: Reduction) -> None:
        self.state, self.input, self.output, self.reduction = state, input, output, reduction
        self.visited: dict[int, list[Time]] = {}

    def accumulate(self, number: int) -> list[tuple[int, Time]]:
        """Accumulate the groups of a round; return the key of each, and the time at which it is visited."""
        state = self.state
        *found, state.carried[INPUT] = accumulate_round(
            state.groups, state.times, state.input, state.carried[INPUT], state.active, number
        )
        state.active, offsets, vals, counts, fault = found
        visits = [(int(key), state.time_of(number, at)) for at, key in enumerate(state.keys[state.active])]
        expected = [sorted(accumulate(self.input, time).get(key, {}).items()) for key, time in visits]
        assert np.diff(offsets).tolist() == [len(group) for group in expected]
        assert counts.tolist() == [diff for group in expected for _, diff in group]
        right = [val for group in expected for val, _ in group]
        assert vals.tolist() == (right if any(right) else [])
        negative = [visit for visit, group in zip(visits, expected) if any(diff < 0 for _, diff in group)]
        assert fault.tolist() == ([negative[0][0], *negative[0][1]] if negative else [])
        for key, time in visits:
            self.visited.setdefault(key, []).append(time)
        return visits

    def settle(self, visits: list[tuple[int, Time]], random: Random) -> list[Update]:
        """Settle a round; return what it emits."""
        sizes, vals, counts, expected = [0], list[int](), list[int](), list[Update]()
        for key, time in visits:
            right = self.reduction(accumulate(self.input, time).get(key, {}))
            wrong = accumulate(self.output, time).get(key, {})
            rows = list(right.items()) + [(val, 0) for val in right] + [(9, 1), (9, -1)] * random.randrange(2)
            random.shuffle(rows)
            vals += [val for val, _ in rows]
            counts += [diff for _, diff in rows]
            sizes.append(len(vals))
            expected += [
                (key, val, time, right.get(val, 0) - wrong.get(val, 0)) for val in sorted(right.keys() | wrong.keys())
            ]
        state = self.state
        columns = [np.array(column, np.int64) for column in (sizes, vals, counts)]
        columns[1] = columns[1] if any(vals) else NOTHING
        columns[2] = columns[2] if any(diff != 1 for diff in counts) else NOTHING
        *emitted, state.carried[OUTPUT] = settle_round(
            state.groups, state.times, state.output, state.carried[OUTPUT], state.active, *columns
        )
        rows_emitted = rows_of(*columns_in(*emitted))
        assert rows_emitted == [row for row in expected if row[3] != 0]
        self.output += rows_emitted
        return rows_emitted


def check_rounds(depth: int, updates: list[Update], frontiers: list[Antichain], random: Random, name: str) -> None:
    """Replay a history call by call; compare each round of each call."""
    lower, seen, output = Antichain([(0,) * depth]), list[Update](), list[Update]()
    waiting: Any = np.empty((0, PENDING_TIME + depth), np.int64)
    for upper in frontiers:
        new = [row for row in updates if lower.less_equal(row[2]) and not upper.less_equal(row[2])]
        batches, before = split(new, random, 2), split(seen, random, 3)
        seen = seen + new
        fresh, layers, emitted = Layers(batches, depth), Layers(before + batches, depth), Layers([output], depth)
        due = [(int(key), tuple(time)) for key, _, *time in waiting.tolist() if not upper.less_equal(tuple(time))]
        state = plan(fresh.table, waiting, layers.table, emitted.table, table_of(upper, depth))
        waiting = state.pending
        call = Rounds(state, seen, list(output), REDUCTIONS[name])
        for number in range(state.rounds):
            call.settle(call.accumulate(number), random)
        output = consolidated(call.output)
        for key, visits in call.visited.items():
            assert visits == sorted(set(visits))
            times = {row[2] for row in seen if row[0] == key} | {time for other, time in due if other == key}
            assert set(visits) <= closure_under_join(times)
        touched = {(row[0], row[2]) for row in consolidated(new)} | set(due)
        assert touched <= {(key, time) for key, visits in call.visited.items() for time in visits}
        lower = upper
    assert len(waiting) == 0


@settings(max_examples=examples(300), deadline=None)
@given(st.data(), st.integers(1, 3), st.sampled_from(list(REDUCTIONS)), st.randoms(use_true_random=False))
def test_a_round_accumulates_and_settles_what_the_definition_does(
    data: Any, depth: int, name: str, random: Random
) -> None:
    updates = data.draw(histories(depth, data.draw(st.booleans())))
    check_rounds(depth, updates, data.draw(uppers(depth)), random, name)


def test_a_long_history_is_settled_round_by_round() -> None:
    dice = Random(2)
    updates = consolidated((dice.randrange(3), dice.randrange(9), (dice.randrange(30),), 1) for _ in range(200))
    check_rounds(1, updates, [Antichain([(10,)]), Antichain([(11,)]), Antichain()], dice, "count")
