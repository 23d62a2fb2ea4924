"""Tests of the tables that kernels read columns by."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import consolidate_parts
from differential.trace.parts import table_of_parts

NO_TABLE = np.empty((0, 0), np.int64)


def test_a_table_keeps_the_columns_alive_that_it_points_to_and_no_longer() -> None:
    keys, times = np.arange(1000)[::-1].copy(), np.zeros((1, 1), np.int64)
    alive = weakref.ref(keys)
    table = table_of_parts([(keys, NOTHING, NOTHING, NOTHING, times)])
    del keys, times
    gc.collect()
    assert alive() is not None
    assert consolidate_parts(table, NO_TABLE)[0].tolist() == list(range(1000))
    del table
    assert alive() is None
