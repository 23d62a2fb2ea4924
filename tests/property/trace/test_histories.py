"""The joins of the pieces of two histories add up to the join of the histories."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.kernels.join import DONE, join
from differential.operators import histories
from differential.operators.histories import CodeWatchers, products
from differential.trace.batch import Batch, table_of
from differential.trace.description import Description
from tests.strategies_batches import times
from tests.thorough import examples
from timely import Antichain


@st.composite
def updates(draw: Any, depth: int) -> Any:
    """Draw the columns of many updates of few records."""
    few = st.integers(0, 1)
    rows = draw(st.lists(st.tuples(few, few, times(depth, 5), st.sampled_from([-1, 1, 2])), min_size=8, max_size=40))
    keys, vals, at, diffs = (np.array(column, np.int64) for column in zip(*rows))
    return keys, vals, np.arange(len(keys)), diffs, at


def joined(new: Batch, past: tuple[Batch, ...]) -> Counter[Any]:
    """Return the updates of a join, consolidated."""
    found: Counter[Any] = Counter()
    keys, new_vals, past_vals, times, time_index, diffs, position = join(table_of((new,)), 0, 1 << 40, table_of(past))
    assert position == DONE
    for row, key in enumerate(keys.tolist()):
        mine, theirs = (int(column[row]) if len(column) else 0 for column in (new_vals, past_vals))
        time = times[time_index[row] if len(time_index) else 0]
        found[key, mine, theirs, *time.tolist()] += int(diffs[row]) if len(diffs) else 1
    return Counter({row: diff for row, diff in found.items() if diff})


@pytest.mark.parametrize("short", [1, 2])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_pieces_of_two_histories_add_up_to_them(depth: int, short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "SHORT", short)
    origin = Antichain([(0,) * depth])
    whole = Description(origin, Antichain(), origin)
    were_cut = 0

    @settings(max_examples=examples(200), deadline=None)
    @given(updates(depth), st.lists(updates(depth), min_size=1, max_size=3))
    def check(mine: Any, theirs: list[Any]) -> None:
        nonlocal were_cut
        new, past = Batch.build(*mine, whole), tuple(Batch.build(*columns, whole) for columns in theirs)
        pieces = products(new, past, CodeWatchers(len, len))
        if pieces is not None:
            were_cut += 1
            found: Counter[Any] = Counter()
            for some, others in pieces:
                for row, diff in joined(some, others).items():
                    found[row] += diff
            assert {row: diff for row, diff in found.items() if diff} == joined(new, past)

    check()
    assert were_cut
