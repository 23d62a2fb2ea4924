"""Counting in the order of times, against adding everything up again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from differential.kernels.blocks import columns_of
from differential.kernels.compile import NOTHING
from differential.kernels.count import Negative, count_block, count_changes, distinct_block, record_changes
from differential.kernels.wide import Overflow
from differential.trace.batch import Batch, table_of
from differential.trace.description import Description
from tests.strategies_batches import batches, rows_of, rows_of_batch, rows_of_batches
from timely.progress.antichain import Antichain

LEAST = Antichain([(0,)])


@settings(deadline=None)
@given(st.data())
def test_the_output_of_a_key_adds_up_to_its_count(data: Any) -> None:
    past = [batch for batch in data.draw(st.lists(batches(1), max_size=4)) if len(batch)]
    new = data.draw(batches(1))
    sorted_by_time = Batch.build(
        new.keys, NOTHING, new.time_index, new.diffs, new.times, Description(LEAST, LEAST, LEAST)
    )
    own = sorted_by_time
    before: defaultdict[int, int] = defaultdict(int)
    for key, count, _, diff in rows_of_batches(past):
        before[key] += count * diff
    assume(all(map(_is_a_word, before.values())))
    if not all(map(_is_a_word, _totals(own, before))):
        with pytest.raises(Overflow):
            count_changes(own.keys, own.time_index, own.diffs, table_of(past), 1)
        return
    if min(_totals(own, before), default=0) < 0:
        with pytest.raises(Negative) as negative:
            count_changes(own.keys, own.time_index, own.diffs, table_of(past), 0)
        key, total, time = negative.value.args
        rows = [row for row in rows_of_batch(own) if row[0] == key and row[2] <= tuple(own.times[time].tolist())]
        assert total == before[key] + sum(diff for *_, diff in rows) < 0
    else:
        signed, unsigned = (count_changes(*_columns(own), table_of(past), each) for each in (1, 0))
        assert [column.tolist() for column in unsigned] == [column.tolist() for column in signed]
    keys, counts, index, diffs = count_changes(*_columns(own), table_of(past), 1)
    emitted: defaultdict[int, list[tuple[tuple[int, ...], int, int]]] = defaultdict(list)
    for key, count, time, diff in rows_of((keys, counts, index, diffs, own.times)):
        emitted[key].append((time, count, diff))
    for key in {row[0] for row in rows_of_batch(own)} | emitted.keys():
        total = before[key]
        expected = []
        for _, _, time, diff in sorted(row for row in rows_of_batch(own) if row[0] == key):
            after = total + diff
            expected += [(time, count, sign) for count, sign in sorted(((total, -1), (after, 1))) if count]
            total = after
        assert emitted[key] == expected
    if len(own.times) == 1:
        together = Batch.build(keys, counts, index, diffs, own.times, Description(LEAST, LEAST, LEAST))
        assert [column.tolist() for column in (keys, counts, index, diffs)] == [
            column.tolist() for column in (together.keys, together.vals, together.time_index, together.diffs)
        ]
        block, rows = count_block((own.columns.head,), table_of(past), 1)
        assert rows == len(keys)
        assert [column.tolist() for column in columns_of(block)] == [
            column.tolist() for column in (keys, counts, index, diffs, own.times)
        ]


@settings(deadline=None)
@given(st.data())
def test_the_count_of_a_record_is_known_before_and_after_each_of_its_rows(data: Any) -> None:
    new = data.draw(batches(1))
    layers = [batch for batch in [*data.draw(st.lists(batches(1), max_size=4)), new] if len(batch)]
    before, after = record_changes(new.keys, new.vals, new.diffs, table_of(layers))
    total: defaultdict[tuple[int, int], int] = defaultdict(int)
    for key, val, _, diff in rows_of_batches(layers):
        total[key, val] += diff
    for key, val, _, diff in rows_of_batch(new):
        total[key, val] -= diff
    assert len(before) == len(after) == len(new)
    for row, (key, val, _, diff) in enumerate(rows_of_batch(new)):
        assert before[row] == total[key, val]
        total[key, val] += diff
        assert after[row] == total[key, val]


@settings(deadline=None)
@given(st.data())
def test_a_record_is_distinct_where_it_begins_or_ceases_to_occur(data: Any) -> None:
    drawn = data.draw(batches(1))
    new = Batch.build(drawn.keys, drawn.vals, NOTHING, drawn.diffs, np.array([[3]]), Description(LEAST, LEAST, LEAST))
    past = [batch for batch in data.draw(st.lists(batches(1), max_size=4)) if len(batch)]
    occurrences: defaultdict[tuple[int, int], int] = defaultdict(int)
    for key, val, _, diff in rows_of_batches(past):
        occurrences[key, val] += diff
    changes, through = [], table_of([*past, new])
    for row, (key, val, time, diff) in enumerate(rows_of_batch(new)):
        before, after = occurrences[key, val], occurrences[key, val] + diff
        if after < 0:
            with pytest.raises(Negative) as negative:
                distinct_block((new.columns.head,), through)
            assert negative.value.args == (key, after, row)
            return
        if bool(before) != bool(after):
            changes.append((key, val, time, 1 if after else -1))
    block, count = distinct_block((new.columns.head,), through)
    assert count == len(changes)
    keys, vals, index, diffs, times = columns_of(block)
    assert rows_of((keys, vals, index, diffs, times)) == changes
    if changes:
        together = Batch.build(keys, vals, index, diffs, times, Description(LEAST, LEAST, LEAST))
        assert [column.tolist() for column in (keys, vals, index, diffs)] == [
            column.tolist() for column in (together.keys, together.vals, together.time_index, together.diffs)
        ]


def test_a_record_is_found_however_far_it_is() -> None:
    for rows in (1, 5, 20, 60, 84, 300):
        vals = 3 * np.arange(rows)
        past = Batch.build(np.full(rows, 5), vals, NOTHING, vals + 1, np.array([[0]]), Description(LEAST, LEAST, LEAST))
        table, key, none = table_of([past]), np.array([5]), np.array([0])
        for val in range(3 * rows):
            before, _ = record_changes(key, np.array([val]), none, table)
            assert before.tolist() == [val + 1 if val % 3 == 0 else 0]
        for stride in (2, 7, 31):
            every = np.arange(0, 3 * rows, stride)
            before, _ = record_changes(np.full(len(every), 5), every, np.zeros(len(every), np.int64), table)
            assert before.tolist() == [val + 1 if val % 3 == 0 else 0 for val in every.tolist()]


def _columns(batch: Batch) -> tuple[Any, Any, Any]:
    return batch.keys, batch.time_index, batch.diffs


def _totals(batch: Batch, before: Mapping[int, int]) -> Iterator[int]:
    """Yield the counts of keys after each row of a batch with one row for each key and time."""
    totals = dict(before)
    for key, _, _, diff in sorted(rows_of_batch(batch), key=lambda row: row[2]):
        totals[key] = totals.get(key, 0) + diff
        yield totals[key]


def _is_a_word(number: int) -> bool:
    return -(1 << 63) <= number < 1 << 63
