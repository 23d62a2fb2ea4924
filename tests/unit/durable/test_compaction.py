"""Parts stay few, whatever the sizes of appends, and no row is written again often."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from differential.durable.compaction import RUN, choose
from differential.durable.manifest import Part

SIZES = {
    "one row": lambda _: 1,
    "few rows": lambda number: 1 + number % 30,
    "one large part first": lambda number: 3 if number else 3000,
    "large parts between small ones": lambda number: 1 if number % 50 else 2000,
    "random": lambda number: int(np.random.default_rng(number).integers(1, 400)),
    "beyond the first level": lambda number: 1000 + number,
}


@pytest.mark.parametrize("kind", SIZES)
def test_parts_stay_few(kind: str) -> None:
    """Each append writes the manifest, which names all parts."""
    rows: list[int] = []
    total = written = most = 0
    for number in range(2000):
        rows.append(SIZES[kind](number))
        total += rows[-1]
        while (chosen := choose([Part("", at, at + 1, each, 0, "", 0) for at, each in enumerate(rows)])) is not None:
            start, end = chosen
            written += sum(rows[start:end])
            rows[start:end] = [sum(rows[start:end])]
        most = max(most, len(rows))
    assert sum(rows) == total
    assert most <= 6 * RUN
    assert written <= log2(total) * total
