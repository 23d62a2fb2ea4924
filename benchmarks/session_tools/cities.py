"""The customers of the orders: numbers from 0, and the name of a city for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.graphs import Ints

NAMES = np.array([f"city {number}" for number in range(100)], np.dtypes.StringDType())


def customers(orders: Ints) -> tuple[Ints, np.ndarray[Any, Any]]:
    """Return a column of all customers that may order, and that of their cities."""
    numbers = np.arange(int(orders.max()) + 1)
    return numbers, NAMES[numbers % len(NAMES)]
