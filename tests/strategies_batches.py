"""Strategies for updates, tables of times, frontiers and batches, in every form that columns can have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from differential.kernels.compile import NOTHING, Ints
from differential.trace.batch import Batch
from differential.trace.columns import Rows
from differential.trace.description import Description
from tests.oracle.trace import Row
from timely.progress.antichain import Antichain

FORMS = ("plain", "no values", "no diffs", "one time", "bare")
EXTREMES = (-(2**63), -(2**62), -1, 0, 1, 2**40, 2**63 - 1)


def times(depth: int, top: int = 3) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw times of `depth` small coordinates."""
    return st.tuples(*[st.integers(0, top)] * depth)


def frontiers(depth: int, top: int = 3, *, least: int = 0) -> st.SearchStrategy[Antichain]:
    """Draw antichains of such times, including the empty one unless `least` is positive."""
    return st.lists(times(depth, top), min_size=least, max_size=3).map(Antichain)


@st.composite
def updates(draw: Any, depth: int, *, most: int = 30, wide: bool = True) -> Rows:
    """Draw updates as columns, some of them absent, under a table of times unsorted and with repetitions."""
    form = draw(st.sampled_from(FORMS))
    items = (
        st.one_of(st.integers(-3, 3), st.sampled_from(EXTREMES)) if wide and draw(st.booleans()) else st.integers(0, 3)
    )
    keys = draw(st.lists(items, max_size=most))
    rows = len(keys)
    table = draw(st.lists(times(depth), min_size=1, max_size=1 if form in ("one time", "bare") else 6))

    def column(elements: st.SearchStrategy[int]) -> Ints:
        return np.array(draw(st.lists(elements, min_size=rows, max_size=rows)), np.int64)

    return (
        np.array(keys, np.int64),
        column(items) if form not in ("no values", "bare") else NOTHING,
        column(st.integers(0, len(table) - 1)) if len(table) > 1 else NOTHING,
        column(st.integers(-2, 2)) if form not in ("no diffs", "bare") else NOTHING,
        np.array(table, np.int64),
    )


def rows_of(columns: Rows) -> list[Row]:
    """Return columns as a list of rows."""
    keys, vals, index, diffs, table = columns
    rows = len(keys)
    spelled = [tuple(time) for time in table.tolist()]
    return list(
        zip(
            keys.tolist(),
            vals.tolist() if len(vals) else [0] * rows,
            [spelled[at] for at in (index.tolist() if len(index) else [0] * rows)],
            diffs.tolist() if len(diffs) else [1] * rows,
        )
    )


def rows_of_batch(batch: Batch) -> list[Row]:
    """Return the rows of a batch."""
    return rows_of((batch.keys, batch.vals, batch.time_index, batch.diffs, batch.times))


def rows_of_batches(batches: Iterable[Batch]) -> list[Row]:
    """Return the rows of all batches."""
    return [row for batch in batches for row in rows_of_batch(batch)]


@st.composite
def batches(draw: Any, depth: int, *, most: int = 30) -> Batch:
    """Draw a batch, of times that no description limits."""
    least = Antichain([(0,) * depth])
    return Batch.build(*draw(updates(depth, most=most)), Description(least, Antichain(), least))
