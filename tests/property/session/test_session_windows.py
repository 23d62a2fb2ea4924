"""Sessions of records that come and go are those of an oracle, wherever blocks of cells end."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Session
from differential.operators.groups import Groups
from differential.session import sessions, windows
from tests.oracle import event_time as oracle

rows = st.tuples(st.integers(0, 1), st.just(0), st.integers(-25, 25))


@given(st.integers(1, 9), st.sampled_from([1, 2, 3, 256]), st.lists(st.lists(rows, max_size=8), min_size=2, max_size=6))
@settings(max_examples=60, deadline=None)
def test_sessions_of_records_that_come_and_go(gap: int, block: int, commits: list[list[tuple[int, int, int]]]) -> None:
    """A row that is there leaves, and any other one comes."""
    present: Counter[Any] = Counter()
    with mock.patch.object(windows, "CELLS_PER_BLOCK", block), Session() as db:
        table = db.table("visits", {"key": int, "x": int, "at": int})
        view = db.view("counts", lambda t: t.visits.window(sessions(gap), at="at").group_by("key").count())
        for commit in commits:
            for row in commit:
                if present[row]:
                    table.delete([row])
                    present[row] -= 1
                else:
                    table.insert([row])
                    present[row] += 1
            db.commit()
            assert Counter(view.records()) == oracle.in_sessions(+present, gap)


@pytest.mark.parametrize("apart", [7, 20, 10_000])
def test_a_change_reads_few_rows_of_a_group_with_many_sessions(apart: int) -> None:
    read: Counter[str] = Counter()

    def counted(name: str) -> Any:
        original = getattr(windows._Sessions, name)

        def reduced(self: Any, groups: Groups) -> Any:
            read[name] += len(groups.index)
            return original(self, groups)

        return mock.patch.object(windows._Sessions, name, reduced)

    with counted("_runs_of_block"), counted("_sessions_of_group"), Session() as db:
        visits = db.table("visits", {"at": int})
        view = db.view("counts", lambda t: t.visits.window(sessions(10), at="at").count())
        times = np.arange(20_000) * apart + np.arange(20_000) // 10 * 10
        visits.insert(at=times)
        db.commit()
        read.clear()
        visits.insert(at=int(times[9_999]) + 1)
        db.commit()
        assert len(view) == (2_000 if apart == 7 else 20_000)
        assert 0 < read["_runs_of_block"] <= 256
        assert read["_sessions_of_group"] <= 200
