"""A durable collection is a multiset at each time, whatever was claimed, appended, merged and given up in between."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given, strategies as st

from differential import Collection, Updates
from differential.durable import Directory, Shard, State, compaction, durable_input, persist, rows
from differential.durable.keep import Keep
from differential.durable.local import LocalStore
from differential.durable.writer import Writer
from timely import Config, Worker, execute

Update = tuple[tuple[Any, ...], int, int]

small = st.integers(-2, 2)
records = st.one_of(
    st.lists(st.tuples(small, small), max_size=6),
    st.lists(st.tuples(st.sampled_from(["", "a", "b", "ä"]), small), max_size=6),
    st.lists(st.tuples(st.sampled_from([0.5, -0.0, 0.0, 1e300]), st.booleans()), max_size=6),
    st.lists(st.tuples(st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from([b"", b"\0", b"ab"])), max_size=6),
)


def updates_of(records: Sequence[tuple[Any, ...]], times: Sequence[int], diffs: Sequence[int]) -> Updates:
    columns = []
    for column in zip(*records):
        array = np.array(column, np.dtypes.StringDType() if type(column[0]) is str else None)
        if type(column[0]) is bytes:
            array = np.empty(len(column), np.object_)
            array[:] = column
        columns.append(array)
    index = np.arange(len(times)) if len(times) > 1 else np.zeros(0, np.int64)
    return Updates(tuple(columns), np.array(times)[:, None], index, np.array(diffs))


@given(st.data())
def test_consolidated_is_sorted_and_adds_up(data: st.DataObject) -> None:
    chosen = data.draw(records.filter(len))
    number = len(chosen)
    times = data.draw(st.lists(st.integers(0, 3), min_size=number, max_size=number))
    diffs = data.draw(st.lists(small, min_size=number, max_size=number))
    since = data.draw(st.none() | st.integers(0, 4))
    updates = updates_of(chosen, times, diffs)
    table = rows.table_of([updates], rows.fields_of(updates, None))
    found = rows.consolidated(table, since)
    expected: Counter[Any] = Counter()
    for record, time, diff in zip(chosen, times, diffs):
        expected[*record, max(time, since or 0)] += diff
    listed = [tuple(row.values()) for row in found.to_pylist()]
    assert listed == sorted((*key, diff) for key, diff in expected.items() if diff)
    assert rows.digest(found) == rows.digest(table)
    assert rows.from_bytes(rows.to_bytes(found), rows.fields_of(updates, None)) == found
    assert rows.digests(found) == rows.digests(rows.consolidated(rows.updates_to_table(table), since))
    assert len(rows.difference(found, found)) == 0
    if listed:
        again = rows.updates_of(found)
        assert rows.consolidated(rows.table_of([again], rows.fields_of(again, None))) == found
