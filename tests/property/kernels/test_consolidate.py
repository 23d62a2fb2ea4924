"""Consolidation against its slow twin."""

from __future__ import annotations

import os
import weakref
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import SMALL, consolidate
from differential.kernels.radix import IN_CACHE, sort_words
from differential.kernels.words import pack_part
from differential.trace import parts as parts_module
from differential.trace.batch import Batch
from differential.trace.columns import Rows, UpdateColumns
from differential.trace.description import Description
from differential.trace.parts import consolidated as consolidated_parts
from tests.invariants import check
from tests.oracle.trace import consolidated
from tests.strategies_batches import rows_of, rows_of_batch, updates
from timely.progress.antichain import Antichain

DEPTHS = st.integers(1, 3)


def _check(columns: Rows) -> None:
    before = [column.copy() for column in columns]
    together = consolidate(*columns)
    batch = Batch(
        UpdateColumns.of(together), Description(Antichain([(0,) * columns[4].shape[1]]), Antichain(), Antichain())
    )
    check(batch)
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
    # The same rows many times over, reversed at every other time, are too many for merge sort and not in order.
    copies = SMALL // max(1, len(keys)) + 2
    spread = [np.concatenate([one, one[::-1]] * copies) for one in (keys, vals, index, diffs)]
    _check((*spread, table))


@settings(deadline=None)
@given(st.data())
def test_rows_in_several_parts_consolidate_as_in_one(data: Any) -> None:
    depth = data.draw(DEPTHS)
    parts = [data.draw(updates(depth)) for _ in range(data.draw(st.integers(1, 4)))]
    if data.draw(st.booleans()):
        # Too many for merge sort, in parts in reverse order.
        keys, vals, index, diffs, table = parts[0]
        parts += [(keys[::-1].copy(), vals[::-1].copy(), index[::-1].copy(), diffs[::-1].copy(), table)] * SMALL
    expected = consolidated([row for part in parts for row in rows_of(part)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts_module, "MANY", data.draw(st.sampled_from([0, parts_module.MANY])))
        batch = Batch(
            UpdateColumns.of(consolidated_parts(parts)),
            Description(Antichain([(0,) * depth]), Antichain(), Antichain()),
        )
    check(batch)
    assert rows_of_batch(batch) == expected
    assert not parts


def test_each_of_many_parts_is_released_once_it_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_every_layout_of_words_gives_the_same_result(
    key_scale: int, val_scale: int, diff_scale: int, times: int
) -> None:
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
def test_a_column_may_vary_in_a_single_bit(field: int, least: int) -> None:
    columns = [np.full(300, least), np.full(300, least), np.zeros(300, np.int64), np.full(300, least + 1)]
    columns[field] += np.random.default_rng(field).integers(0, 2, 300)
    keys, vals, index, diffs = columns
    _check((keys, vals, index, diffs, np.array([[3], [4]])))


def test_keys_that_differ_in_their_last_bit_stay_separate_even_if_values_and_times_agree() -> None:
    pairs = np.random.default_rng(2).integers(0, 4, 300)
    keys = pairs * 2**61 + np.random.default_rng(3).integers(0, 2, 300)
    _check((keys, pairs * 2**40, NOTHING, np.full(300, 2), np.array([[4]])))


@pytest.mark.parametrize("left", [0, 1])
def test_rows_that_cancel_leave_neither_values_nor_times(left: int) -> None:
    keys = np.repeat(np.arange(100, 0, -1), 2)
    diffs = np.tile([1, -1], 100)
    _check((keys, keys, NOTHING, diffs, np.array([[4]])))
    _check((np.append(keys, 7), np.append(keys, 0), NOTHING, np.append(diffs, 3), np.array([[4]])))
    index = np.full(200, 1 - left)
    _check((np.append(keys, 7), NOTHING, np.append(index, left), np.append(diffs, 3), np.array([[4], [5]])))


@pytest.mark.parametrize("many", [0, parts_module.MANY])
@pytest.mark.parametrize("bits", [0, 20])
def test_columns_absent_from_some_parts_are_combined_with_those_of_others(
    bits: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "MANY", many)
    wide = np.arange(60, 0, -1)
    one = wide, (wide << 2 * bits) - 2**30, wide % 2, wide << 2 * bits + bits // 2, np.array([[5], [3]])
    bare = wide << bits, NOTHING, NOTHING, NOTHING, np.array([[2]])
    batch = Batch(
        UpdateColumns.of(consolidated_parts([one, bare, bare])),
        Description(Antichain([(0,)]), Antichain(), Antichain()),
    )
    check(batch)
    assert rows_of_batch(batch) == consolidated([row for part in (one, bare, bare) for row in rows_of(part)])


def test_long_runs_of_one_key_with_wide_values_are_sorted() -> None:
    draw = np.random.default_rng(1)
    rows = 3000
    keys = draw.integers(0, 3, rows) * 2**61
    _check((keys, draw.integers(-(2**62), 2**62, 40)[draw.integers(0, 40, rows)], NOTHING, NOTHING, np.array([[4]])))


def _by_numpy(keys: Any, vals: Any, index: Any, diffs: Any) -> list[Any]:
    """Return the columns of rows of two times consolidated, from their definition."""
    order = np.lexsort((index, vals, keys))
    keys, vals, index, diffs = (column[order] for column in (keys, vals, index, diffs))
    first = np.flatnonzero(np.r_[True, (np.diff(keys) != 0) | (np.diff(vals) != 0) | (np.diff(index) != 0)])
    sums = np.add.reduceat(diffs, first)
    return [column[first][sums != 0] for column in (keys, vals, index)] + [sums[sums != 0]]


_DRAW = np.random.default_rng(11)
_MANY = IN_CACHE + IN_CACHE // 2
if os.environ.get("DIFFERENTIAL_KERNELS") == "interpreted":
    _MANY = 300  # and a small cache
    cast(Any, sort_words).prepare().__globals__["IN_CACHE"] = 64
_COLUMNS = {
    "few bits": _DRAW.integers(0, 500, _MANY),
    "many bits": _DRAW.integers(0, 1 << 45, _MANY),
    "all bits": _DRAW.integers(-(1 << 63), (1 << 63) - 1, 4000)[_DRAW.integers(0, 4000, _MANY)],
    "one value": np.full(_MANY, 7),
    "close to each other, but for one": np.where(np.arange(_MANY) == 9, 1 << 44, _DRAW.integers(0, 1 << 12, _MANY)),
    "skewed": (_DRAW.pareto(1.0, _MANY) * 10).astype(np.int64) % (1 << 22),
    "mostly one value": np.where(_DRAW.integers(0, 50, _MANY) == 0, _DRAW.integers(0, 1 << 30, _MANY), 5),
    "two columns": (_DRAW.integers(0, 700, _MANY) << 32) + _DRAW.integers(0, 700, _MANY) + (1 << 31),
    "two columns, one negative": (_DRAW.integers(-5, 5, _MANY) << 32) + _DRAW.integers(0, 700, _MANY) + (1 << 31),
}


@pytest.mark.parametrize("vals", _COLUMNS)
@pytest.mark.parametrize("keys", _COLUMNS)
@pytest.mark.parametrize("most", [2, 1 << 40])
def test_more_rows_than_the_cache_holds_are_sorted_and_summed(keys: str, vals: str, most: int) -> None:
    index, diffs = _DRAW.integers(0, 2, _MANY), _DRAW.integers(-most, most + 1, _MANY)
    rows = _COLUMNS[keys].copy(), _COLUMNS[vals].copy(), index, diffs
    result = consolidate(*rows, np.array([[3], [4]]))
    expected = _by_numpy(*rows)
    for column, right in zip(result, expected):
        assert np.array_equal(column, right)


@pytest.mark.parametrize("vals", _COLUMNS)
@pytest.mark.parametrize("keys", _COLUMNS)
def test_rows_that_the_cache_holds_are_sorted_and_summed(keys: str, vals: str) -> None:
    """Rows that differ, mostly agree, or agree in long runs, in the leading bits of their words."""
    for rows in (97, 250, 2500, _MANY // 2):
        start = int(_DRAW.integers(0, max(_MANY - rows, 1)))
        columns = _COLUMNS[keys][start:][:rows].copy(), _COLUMNS[vals][start:][:rows].copy()
        index, diffs = np.zeros(len(columns[0]), np.int64), np.ones(len(columns[0]), np.int64)
        expected = _by_numpy(*columns, index, diffs)
        keys_found, vals_found, _, sums, _ = consolidate(*columns, NOTHING, NOTHING, np.array([[3]]))
        assert np.array_equal(keys_found, expected[0])
        assert np.array_equal(vals_found if len(vals_found) != 0 else 0 * keys_found, expected[1])
        assert np.array_equal(sums if len(sums) != 0 else 0 * keys_found + 1, expected[3])


@pytest.mark.parametrize("field", range(2))
@pytest.mark.parametrize("base", [0, -(1 << 62), (1 << 50) + 12345, -1 << 8])
@pytest.mark.parametrize("high", [1, 20, 40, 60, 62])
@pytest.mark.parametrize("low", [0, 1, 9])
def test_bits_that_all_rows_have_in_common_are_restored(field: int, base: int, high: int, low: int) -> None:
    """Items that differ in a few high and a few low bits, and agree in the bits between."""
    draw = np.random.default_rng(high)
    differing = (draw.integers(0, 2, 300) << high) | draw.integers(0, 1 << low, 300)
    columns = [draw.integers(0, 3, 300), draw.integers(0, 3, 300)]
    columns[field] = differing | (base & ~((1 << high) | ((1 << low) - 1)))
    _check((*columns, NOTHING, NOTHING, np.array([[4]])))


def test_rows_in_order_are_only_folded() -> None:
    keys = np.repeat(np.arange(400), 2)
    _check((keys, NOTHING, NOTHING, NOTHING, np.array([[4]])))
    _check((keys, keys * 3, NOTHING, np.tile([1, -1], 400), np.array([[4]])))
