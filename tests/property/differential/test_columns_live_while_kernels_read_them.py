"""No kernel reads a column that compiled code has released early."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import consolidate_parts
from differential.kernels.memory import address_of
from differential.trace import batcher, parts
from tests.addresses import watched
from tests.oracle.drawing import Drawing
from tests.oracle.scenario import check
from tests.thorough import examples

NO_TABLE = np.empty((0, 0), np.int64)


def test_a_column_that_has_been_freed_is_reported() -> None:
    keys, times = np.arange(3), np.zeros((1, 1), np.int64)
    with watched():
        table = address_of(keys, NOTHING, NOTHING, NOTHING, times).reshape(1, -1)
        consolidate_parts(table, NO_TABLE)
        del times
        with pytest.raises(AssertionError, match="consolidate_parts is given the address of times that nobody holds"):
            consolidate_parts(table, NO_TABLE)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(examples(3)))
@pytest.mark.parametrize("is_much", [False, True])
def test_columns_of_random_programs_outlive_the_kernels_that_read_them(
    monkeypatch: pytest.MonkeyPatch, seed: int, is_much: bool
) -> None:
    if is_much:  # few rows take the paths of many
        monkeypatch.setattr(batcher, "FEW", 2)
        monkeypatch.setattr(batcher, "_PILE", 2)
        monkeypatch.setattr(parts, "MANY", 4)
    drawing = Drawing(Random(seed))
    with watched():
        for _ in range(3):
            check(drawing.scenario(3, 8, 10, 2))
