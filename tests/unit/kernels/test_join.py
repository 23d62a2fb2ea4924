"""The join kernel, case by case."""

from __future__ import annotations

import numpy as np

from differential.kernels.join import DONE, join
from tests.oracle.layers import Layers, Update


def layer(*keys: int, time: tuple[int, ...] = (0,), val: int = 0, diff: int = 1) -> list[Update]:
    return [(key, val, time, diff) for key in keys]


def test_empty_batches_make_no_pairs() -> None:
    none, empty = Layers([], 1), Layers([[], []], 1)
    for new in (none, empty):
        for past in (none, empty):
            *columns, onward = join(new.table, 0, 10, past.table)
            assert [column.shape for column in columns] == [(0,), (0,), (0,), (0, 0), (0,), (0,)]
            assert onward == DONE


def test_the_depth_of_an_empty_batch_does_not_matter() -> None:
    new, past = Layers([[], layer(1, time=(2, 3))], 2), Layers([[], layer(1, time=(0, 4))], 2)
    new.table[0, 7] = 0
    _, _, _, times, _, _, _ = join(new.table, 0, 10, past.table)
    assert times.tolist() == [[2, 4]]


def test_a_row_meets_the_rows_of_its_key_in_every_layer() -> None:
    new, past = Layers([layer(5, val=7)], 1), Layers([layer(4, 5, val=1), layer(6), layer(5, val=2)], 1)
    keys, new_vals, past_vals, times, time_index, diffs, onward = join(new.table, 0, 10, past.table)
    assert (keys.tolist(), new_vals.tolist(), past_vals.tolist()) == ([5, 5], [7, 7], [1, 2])
    assert (times.tolist(), time_index.tolist(), diffs.tolist(), onward) == ([[0]], [], [], DONE)


def test_values_absent_on_one_side_stay_absent() -> None:
    keyed, plain = Layers([layer(1, 2, val=3)], 1), Layers([layer(1, 2)], 1)
    _, new_vals, past_vals, *_ = join(keyed.table, 0, 10, plain.table)
    assert (new_vals.tolist(), past_vals.tolist()) == ([3, 3], [])
    _, new_vals, past_vals, *_ = join(plain.table, 0, 10, keyed.table)
    assert (new_vals.tolist(), past_vals.tolist()) == ([], [3, 3])


def test_a_column_absent_in_only_some_batches_is_filled_in() -> None:
    several = Layers([layer(1, val=3, diff=2), layer(2)], 1)
    one = Layers([layer(1, 2, val=7)], 1)
    _, new_vals, past_vals, _, _, diffs, _ = join(several.table, 0, 10, one.table)
    assert (new_vals.tolist(), past_vals.tolist(), diffs.tolist()) == ([3, 0], [7, 7], [2, 1])
    _, new_vals, past_vals, _, _, diffs, _ = join(one.table, 0, 10, several.table)
    assert (new_vals.tolist(), past_vals.tolist(), diffs.tolist()) == ([7, 7], [3, 0], [2, 1])


def test_a_new_time_after_all_past_times_but_the_first_is_joined_with_the_first() -> None:
    new, past = Layers([layer(1, time=(2, 2))], 2), Layers([layer(1, time=(0, 9)) + layer(1, time=(1, 1), val=1)], 2)
    _, _, _, times, time_index, _, _ = join(new.table, 0, 10, past.table)
    assert times[time_index].tolist() == [[2, 9], [2, 2]]


def test_diffs_are_multiplied() -> None:
    new, past = Layers([layer(1, diff=-2)], 1), Layers([layer(1, diff=3), layer(1)], 1)
    assert join(new.table, 0, 10, past.table)[5].tolist() == [-6, -2]


def test_times_join_in_the_lattice() -> None:
    new, past = Layers([layer(1, time=(0, 5))], 2), Layers([layer(1, time=(3, 2))], 2)
    assert join(new.table, 0, 10, past.table)[3].tolist() == [[3, 5]]


def test_pairs_with_layers_of_one_time_each_are_at_different_times() -> None:
    new, past = Layers([layer(1, 2)], 1), Layers([layer(1, time=(3,)), layer(1, 2, time=(4,)), layer(2, time=(3,))], 1)
    keys, _, _, times, time_index, _, _ = join(new.table, 0, 10, past.table)
    assert (keys.tolist(), times[time_index].tolist()) == ([1, 1, 2, 2], [[3], [4], [4], [3]])
    assert times.tolist() == [[3], [4]]


def test_pairs_with_two_layers_of_one_time_each_are_at_different_times() -> None:
    new, past = Layers([layer(1)], 1), Layers([layer(1, time=(3,)), layer(1, time=(4,))], 1)
    _, _, _, times, time_index, _, _ = join(new.table, 0, 10, past.table)
    assert (times.tolist(), time_index.tolist()) == ([[3], [4]], [0, 1])


def test_a_new_time_after_all_the_past_is_the_only_time() -> None:
    new, past = Layers([layer(1, time=(60,))], 1), Layers([[(1, 0, (time,), 1) for time in range(50)]], 1)
    _, _, _, times, time_index, _, _ = join(new.table, 0, 100, past.table)
    assert (times.tolist(), len(time_index)) == ([[60]], 0)


def test_equal_joins_of_different_times_are_one_time() -> None:
    new = Layers([[(1, val, (val % 7, 9), 1) for val in range(30)]], 2)
    past = Layers([[(1, val, (8, val % 5), 1) for val in range(30)]], 2)
    keys, _, _, times, time_index, _, _ = join(new.table, 0, 10**6, past.table)
    assert (len(keys), times.tolist(), len(time_index)) == (900, [[8, 9]], 0)


def test_only_the_times_of_pairs_are_in_the_table() -> None:
    new = Layers([[(1, 0, (1,), 1), (2, 0, (2,), 1), (9, 0, (99,), 1)]], 1)
    past = Layers([[(1, 0, (0,), 1), (2, 0, (3,), 1), (8, 0, (77,), 1)]], 1)
    _, _, _, times, time_index, _, _ = join(new.table, 0, 10, past.table)
    assert sorted(times.tolist()) == [[1], [3]]
    assert times[time_index].tolist() == [[1], [3]]


def test_a_key_with_very_many_pairs_comes_in_pieces() -> None:
    rows = [(0, val, (0,), 1) for val in range(10_000)]
    new, past = Layers([rows[:3]], 1), Layers([rows], 1)
    for limit, length in ((1, 4096), (5000, 5000), (9000, 9000), (12_000, 20_000)):
        assert len(join(new.table, 0, limit, past.table)[0]) == length
        position, found = 0, []
        while position != DONE:
            keys, new_vals, past_vals, _, _, _, position = join(new.table, position, limit, past.table)
            found += list(zip(new_vals.tolist() or [0] * len(keys), past_vals.tolist()))
        assert found == [(left, right) for left in range(3) for right in range(10_000)]


def test_a_row_that_reaches_the_limit_is_the_last() -> None:
    rows = [(0, val, (0,), 1) for val in range(3000)]
    new, past = Layers([rows[:3]], 1), Layers([rows], 1)
    assert len(join(new.table, 0, 1, past.table)[0]) == 3000


def test_many_times_on_both_sides_are_distinguished() -> None:
    times = [(time, 1500 - time) for time in range(1500)]
    new = Layers([[(key, 0, time, 1) for key, time in enumerate(times)]], 2)
    past = Layers([[(key, 0, time, 1) for key, time in enumerate(reversed(times))]], 2)
    keys, _, _, table, time_index, _, _ = join(new.table, 0, 10**6, past.table)
    assert keys.tolist() == list(range(1500))
    joins = [list(map(max, left, right)) for left, right in zip(times, reversed(times))]
    assert table[time_index].tolist() == joins
    assert len(np.unique(table, axis=0)) == len(table)


def test_very_many_keys_come_in_pieces() -> None:
    keys = np.arange(300_000)
    new, past = Layers([layer(0)], 1), Layers([layer(0)], 1)
    for side in (new, past):
        side.table[0, :2] = len(keys), keys.ctypes.data
    first, *_, onward = join(new.table, 0, 10**6, past.table)
    second, *_, end = join(new.table, onward, 10**6, past.table)
    assert (len(first), end) == (1 << 18, DONE)
    assert np.array_equal(np.concatenate([first, second]), keys)
