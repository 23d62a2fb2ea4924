"""What kernels receive from Python and return to it: numbers, arrays with their owners, and exceptions."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

from differential.kernels.compile import Batches, Ints, Table, Times, kernel
from differential.kernels.wide import Overflow


@kernel
def parts_of(items: Ints, table: Table, start: int) -> tuple[Ints, Ints, Table, Ints, Ints]:
    """Return an argument, a part of it, a row-wise part of another, an empty part, and something new."""
    return items, items[start:], table[1:], items[len(items) :], items + 1


@kernel
def kinds_of(number: int, real: float) -> tuple[int, float, bool]:
    return number + 1, real / 2, number > 3


@kernel
def clear(items: Ints) -> None:
    items[:] = 0


@kernel
def folded(items: Ints, rows: int) -> Table:
    return items.copy().reshape((rows, len(items) // rows))


@kernel
def refused(key: int, val: int) -> int:
    if val > 2:
        raise Overflow(key, val)
    if val == 2:
        raise ValueError("two")
    return val


@kernel
def refused_within(key: int, val: int) -> int:
    return refused(key, val) + 1


@pytest.mark.timeout(200)
def test_parts_of_arguments_keep_them_alive_and_whole_ones_are_the_same_object() -> None:
    items, table = np.arange(5), np.array([[0, 1], [2, 3], [4, 5]])
    alive = weakref.ref(items), weakref.ref(table)
    whole, part, rows, nothing, new = parts_of(items, table, 2)
    assert whole is items
    assert (part.base is items, rows.base is table) == (True, True)
    assert [each.tolist() for each in (part, rows, nothing, new)] == [
        [2, 3, 4],
        [[2, 3], [4, 5]],
        [],
        [1, 2, 3, 4, 5],
    ]
    del items, whole, table, nothing
    gc.collect()
    assert all(each() is not None for each in alive)
    del part, rows
    assert (alive[0](), alive[1]()) == (None, None)
    new[0] = 7
    assert new.tolist() == [7, 2, 3, 4, 5]


@pytest.mark.timeout(200)
def test_numbers_truths_and_nothing_are_returned() -> None:
    assert kinds_of(3, 5) == (4, 2.5, False)
    assert kinds_of(np.int64(-1), -1.0) == (0, -0.5, False)
    assert kinds_of((1 << 63) - 1, 0.0) == (-1 << 63, 0.0, True)
    items = np.arange(3)
    assert clear(items) is None  # type: ignore[func-returns-value]
    assert items.tolist() == [0, 0, 0]


@pytest.mark.timeout(200)
@pytest.mark.parametrize("number", [1.5, "1", None, 1 << 63, -(1 << 63) - 1])
def test_what_is_no_integer_of_64_bits_is_refused(number: int) -> None:
    with pytest.raises(TypeError, match=r"kinds_of: argument 1 must be an integer of 64 bits; it is"):
        kinds_of(number, 0.0)


@pytest.mark.timeout(200)
@pytest.mark.parametrize("given", [(), (1,), (1, 2.0, 3)])
def test_another_number_of_arguments_is_refused(given: tuple[float, ...]) -> None:
    with pytest.raises(TypeError, match=rf"kinds_of takes 2 arguments, not {len(given)}"):
        kinds_of(*given)  # type: ignore[arg-type, call-arg]


@pytest.mark.timeout(200)
def test_a_contiguous_array_has_another_shape() -> None:
    assert folded(np.arange(6), 2).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert folded(np.arange(6), 6).shape == (6, 1)


@pytest.mark.timeout(200)
@pytest.mark.parametrize("function", [refused, refused_within])
def test_exceptions_have_their_values_through_calls_of_kernels(function: object) -> None:
    with pytest.raises(Overflow) as raised:
        function(-7, 1 << 62)  # type: ignore[operator]
    assert raised.value.args == (-7, 1 << 62)
    with pytest.raises(ValueError, match=r"^two$"):
        function(0, 2)  # type: ignore[operator]
    assert function(0, 0) == (0 if function is refused else 1)  # type: ignore[operator]


@kernel
def summed(batches: Batches, times: Times) -> tuple[int, int, Ints]:
    """Return the numbers of rows of batches, of batches and of coordinates of times, and the sum of each coordinate."""
    rows = 0
    for batch in range(len(batches)):
        rows += batches[batch, 0]
    sums = np.zeros(times.shape[1], np.int64)
    for row in range(len(times)):
        for coordinate in range(times.shape[1]):
            sums[coordinate] += times[row, coordinate]
    return rows, len(batches), sums


@pytest.mark.timeout(200)
def test_a_tuple_of_heads_or_of_times_is_a_table() -> None:
    heads = tuple(np.arange(first, first + 9) for first in (5, 7, -1))
    times = ((1, 2), (3, -4))
    rows, batches, sums = summed(heads, times)
    assert (rows, batches, sums.tolist()) == (11, 3, [4, -2])
    table = np.array([head[:8] for head in heads])
    assert summed(table, np.array(times))[:2] == (11, 3)
    assert summed((), np.empty((0, 2), np.int64))[:2] == (0, 0)
    assert summed((), ((np.int64(1),),))[2].tolist() == [1]
    assert summed((), ((-1,),))[2].tolist() == [-1]


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("heads", "times", "words"),
    [
        ((np.arange(9), np.arange(7)), ((1,),), r"argument 1 must be .*; 1: it has no whole row"),
        ((np.arange(9), [0] * 8), ((1,),), r"argument 1 must be .*; 1: it is of type list"),
        ([np.arange(9)], ((1,),), r"argument 1 must be .*; it is of type list"),
        ((np.arange(9.0),), ((1,),), r"argument 1 must be .*; 0: it is of type float64"),
        ((), (), r"argument 2 must be .*; it is \(\)"),
        ((), ((1,), (1, 2)), r"argument 2 must be .*; it is \(\(1,\), \(1, 2\)\)"),
        ((), ((1,), [1]), r"argument 2 must be .*; it is \(\(1,\), \[1\]\)"),
        ((), (("1",),), r"argument 2 must be .*; it is \(\('1',\),\)"),
        ((), ((1 << 63,),), r"argument 2 must be "),
    ],
)
def test_a_tuple_that_is_no_table_is_refused(heads: object, times: object, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        summed(heads, times)


@pytest.mark.timeout(200)
def test_columns_without_items_are_one_array() -> None:
    first, second = parts_of(np.arange(2), np.zeros((1, 2), np.int64), 1)[3], folded(np.arange(4), 2)
    assert first is parts_of(np.arange(3), np.zeros((1, 2), np.int64), 1)[3]
    assert (len(first), second.shape) == (0, (2, 2))


OUTLIVED = """
import builtins
from differential import Session
from differential.kernels import loader

with Session() as db:
    db.table("numbers", {"x": [1, 2]})
    db.commit()
builtins.kernels = list(loader._functions.values())
assert builtins.kernels
"""
"""Keeps kernels in the module that is freed last as the interpreter ends."""


def test_kernels_that_outlive_their_module_are_freed() -> None:
    # What is freed is overwritten, so that whoever still reads it finds nonsense.
    environ = os.environ | {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "255"}
    done = subprocess.run([sys.executable, "-c", OUTLIVED], env=environ, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
