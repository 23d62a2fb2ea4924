"""Consolidation against its slow twin."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import SMALL, consolidate
from differential.kernels.words import pack_part
from differential.trace import parts as parts_module
from differential.trace.batch import Batch
from differential.trace.parts import consolidated as consolidated_parts
from tests.oracle.trace import consolidated
from tests.strategies_batches import Columns, rows_of, rows_of_batch, updates
from timely.progress.antichain import Antichain

DEPTHS = st.integers(1, 3)


def _check(columns: Columns) -> None:
    before = [column.copy() for column in columns]
    together = consolidate(*columns)
    batch = Batch(*together, Antichain([(0,) * columns[4].shape[1]]), Antichain(), Antichain())
    batch.validate()
    assert rows_of_batch(batch) == consolidated(rows_of(columns))
    assert all(np.array_equal(column, old) for column, old in zip(columns, before)), "the input was changed"
    *spelled, times = columns
    halves = [(*(column[half::2].copy() for column in spelled), times) for half in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts_module, "MANY", 0)
        for one, other in zip(consolidated_parts(halves), together, strict=True):
            assert np.array_equal(one, other)


@settings(deadline=None)
@given(st.data())
def test_few_rows_are_sorted_and_summed(data: Any) -> None:
    _check(data.draw(updates(data.draw(DEPTHS))))


@settings(deadline=None)
@given(st.data())
def test_many_rows_are_sorted_and_summed(data: Any) -> None:
    keys, vals, index, diffs, table = data.draw(updates(data.draw(DEPTHS)))
    # The same rows many times over, turned round at every other time, are too many for merge sort and not in order.
    copies = SMALL // max(1, len(keys)) + 2
    spread = [np.concatenate([one, one[::-1]] * copies) for one in (keys, vals, index, diffs)]
    _check((*spread, table))


@settings(deadline=None)
@given(st.data())
def test_rows_in_several_parts_are_as_those_in_one(data: Any) -> None:
    depth = data.draw(DEPTHS)
    parts = [data.draw(updates(depth)) for _ in range(data.draw(st.integers(1, 4)))]
    if data.draw(st.booleans()):
        # Too many for merge sort, in parts that come turned round.
        keys, vals, index, diffs, table = parts[0]
        parts += [(keys[::-1].copy(), vals[::-1].copy(), index[::-1].copy(), diffs[::-1].copy(), table)] * SMALL
    expected = consolidated([row for part in parts for row in rows_of(part)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts_module, "MANY", data.draw(st.sampled_from([0, parts_module.MANY])))
        batch = Batch(*consolidated_parts(parts), Antichain([(0,) * depth]), Antichain(), Antichain())
    batch.validate()
    assert rows_of_batch(batch) == expected
    assert not parts


def test_of_many_rows_each_part_is_let_go_of_once_it_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[int] = []

    def watched(*arguments: Any) -> None:
        pack_part(*arguments)
        alive.append(sum(key() is not None for key in keys))

    monkeypatch.setattr(parts_module, "MANY", 200)
    monkeypatch.setattr(parts_module, "pack_part", watched)
    parts = [(np.arange(50), NOTHING, NOTHING, NOTHING, np.array([[1]])) for _ in range(4)]
    keys = [weakref.ref(part[0]) for part in parts]
    assert consolidated_parts(parts)[3].tolist() == [4] * 50
    assert alive == [4, 3, 2, 1]


@pytest.mark.parametrize("key_scale", [1, 2**30, 2**61])
@pytest.mark.parametrize("val_scale", [0, 1, 2**50, 2**62])
@pytest.mark.parametrize("diff_scale", [0, 1, 2**30, 2**55])
@pytest.mark.parametrize("times", [1, 5])
def test_every_way_of_packing_gives_the_same(key_scale: int, val_scale: int, diff_scale: int, times: int) -> None:
    draw = np.random.default_rng(key_scale + val_scale + diff_scale + times)
    rows = 700
    columns = (
        draw.integers(-3, 4, rows) * key_scale,
        draw.integers(-2, 2, rows) * val_scale + draw.integers(0, 5, rows) if val_scale else NOTHING,
        draw.integers(0, times, rows) if times > 1 else NOTHING,
        draw.integers(-2, 3, rows) * diff_scale if diff_scale else NOTHING,
        draw.integers(0, 3, (times, 2)),
    )
    _check(columns)


@pytest.mark.parametrize("least", [0, 7])
@pytest.mark.parametrize("field", range(4))
def test_a_column_may_differ_by_one_bit_only(field: int, least: int) -> None:
    columns = [np.full(300, least), np.full(300, least), np.zeros(300, np.int64), np.full(300, least + 1)]
    columns[field] += np.random.default_rng(field).integers(0, 2, 300)
    keys, vals, index, diffs = columns
    _check((keys, vals, index, diffs, np.array([[3], [4]])))


def test_keys_that_differ_in_their_last_bit_are_kept_apart_though_values_and_times_agree() -> None:
    pairs = np.random.default_rng(2).integers(0, 4, 300)
    keys = pairs * 2**61 + np.random.default_rng(3).integers(0, 2, 300)
    _check((keys, pairs * 2**40, NOTHING, np.full(300, 2), np.array([[4]])))


@pytest.mark.parametrize("left", [0, 1])
def test_what_cancels_leaves_neither_its_values_nor_its_time(left: int) -> None:
    keys = np.repeat(np.arange(100, 0, -1), 2)
    diffs = np.tile([1, -1], 100)
    _check((keys, keys, NOTHING, diffs, np.array([[4]])))
    _check((np.append(keys, 7), np.append(keys, 0), NOTHING, np.append(diffs, 3), np.array([[4]])))
    index = np.full(200, 1 - left)
    _check((np.append(keys, 7), NOTHING, np.append(index, left), np.append(diffs, 3), np.array([[4], [5]])))


@pytest.mark.parametrize("many", [0, parts_module.MANY])
@pytest.mark.parametrize("bits", [0, 20])
def test_columns_absent_from_some_parts_have_room_among_those_of_others(
    bits: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "MANY", many)
    wide = np.arange(60, 0, -1)
    one = wide, (wide << 2 * bits) - 2**30, wide % 2, wide << 2 * bits + bits // 2, np.array([[5], [3]])
    bare = wide << bits, NOTHING, NOTHING, NOTHING, np.array([[2]])
    batch = Batch(*consolidated_parts([one, bare, bare]), Antichain([(0,)]), Antichain(), Antichain())
    batch.validate()
    assert rows_of_batch(batch) == consolidated([row for part in (one, bare, bare) for row in rows_of(part)])


def test_long_runs_of_one_key_with_wide_values_are_sorted() -> None:
    draw = np.random.default_rng(1)
    rows = 3000
    keys = draw.integers(0, 3, rows) * 2**61
    _check((keys, draw.integers(-(2**62), 2**62, 40)[draw.integers(0, 40, rows)], NOTHING, NOTHING, np.array([[4]])))


def test_rows_in_order_are_only_folded() -> None:
    keys = np.repeat(np.arange(400), 2)
    _check((keys, NOTHING, NOTHING, NOTHING, np.array([[4]])))
    _check((keys, keys * 3, NOTHING, np.tile([1, -1], 400), np.array([[4]])))
