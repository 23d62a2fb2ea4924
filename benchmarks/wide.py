"""Rows of several columns: orders of five columns are joined with customers, and their amounts are added up by region.

The values of a row do not fit into one word, since one of them is a float. The figures are seconds of processor time;
the same join of rows that have two columns of small integers, which do fit, is for comparison.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import WARM_UP, Case, Figures, check
from benchmarks.residence import forget_peak, have_at_hand, peak
from differential import new_input
from timely import Worker, execute_directly

CUSTOMERS, REGIONS = 50_000, 50
WIDE, NARROW, RATIO = "five columns, CPU s", "two columns, CPU s", "ratio"
CHANGE, PEAK = "1 changed order, CPU us", "peak bytes/row"
BYTES_PER_ROW = 500
"""An upper bound of the memory for each row."""
CHANGES = 500

CASES = [
    Case("wide rows 1M", "wide", {"rows": 1_000_000}),
    Case("wide rows 5M", "wide", {"rows": 5_000_000}, quick=False),
]


def measure(rows: int) -> Figures:
    """Return the figures for so many orders."""
    begun = clock.perf_counter()
    execute_directly(lambda worker: _run(worker, 1_000, is_wide=True))
    figures: Figures = {WARM_UP: clock.perf_counter() - begun}
    have_at_hand(BYTES_PER_ROW * rows)
    before = forget_peak()
    wide, change = execute_directly(lambda worker: _run(worker, rows, is_wide=True))
    used = (peak() - before) / rows
    narrow, _ = execute_directly(lambda worker: _run(worker, rows, is_wide=False))
    return figures | {WIDE: wide, NARROW: narrow, RATIO: wide / narrow, CHANGE: change * 1e6, PEAK: used}


def _run(worker: Worker, rows: int, is_wide: bool) -> tuple[float, float]:
    """Return the seconds of the first answer, and of the median change."""
    random = np.random.default_rng(7)
    customer, amount = random.integers(0, CUSTOMERS, rows), random.integers(1, 1_000, rows)
    others = (np.arange(rows), random.random(rows), random.integers(0, 5, rows)) if is_wide else ()
    region = random.integers(0, REGIONS, CUSTOMERS)
    with worker.dataflow() as scope:
        orders, placed = new_input(scope)
        customers, living = new_input(scope)
        joined = placed.join_map(living, lambda _, amount, *rest: (rest[-1], amount))
        totals = joined.sum().output()

    def seconds(change: Callable[[], Any]) -> float:
        begun = clock.process_time()
        change()
        orders.advance_to(orders.epoch + 1)
        customers.advance_to(orders.epoch)
        worker.step_while(lambda: totals.less_than(orders.time))
        return clock.process_time() - begun

    def begin() -> None:
        customers.insert(np.arange(CUSTOMERS), region)
        orders.insert(customer, amount, *others)

    first = seconds(begin)
    more = (rows, 0.5, 1) if is_wide else ()
    changes = [seconds(partial(orders.insert, number, 1, *more)) for number in range(CHANGES)]
    expected = np.bincount(region[customer], amount, REGIONS) + np.bincount(region[:CHANGES], minlength=REGIONS)
    found: dict[int, int] = dict(totals.contents().keys())
    check([found.get(each, 0) for each in range(REGIONS)] == expected.tolist(), "the totals are wrong")
    orders.close()
    customers.close()
    worker.step_while(lambda: not totals.done())
    return first, sorted(changes)[CHANGES // 2]
