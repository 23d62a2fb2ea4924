"""Flat memory: while a collection of constant size changes for many epochs, and while texts come and go.

Epochs: a thousand numbered rows are counted, and in each epoch one is removed and another inserted. Texts: in each
epoch, thousands of new texts are counted, and those of the epoch before are removed. Resident memory is measured after
a tenth of the epochs, and its peak after that must be about the same.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Case, Figures, check
from benchmarks.residence import forget_peak, peak
from differential import InputSession, new_input
from timely import Worker, execute_directly

GROWTH, EPOCH, RESIDENT = "peak / after a tenth of the epochs", "us an epoch", "after a tenth of the epochs, MB"
ROWS = 1000
TEXTS = 10_000
FLAT = {GROWTH: 1.1}

CASES = [
    Case("memory 20k epochs", "memory", {"kind": "rows", "epochs": 20_000}, limits=FLAT),
    Case("memory 1M epochs", "memory", {"kind": "rows", "epochs": 1_000_000}, quick=False, limits=FLAT),
    Case("memory 1M texts", "memory", {"kind": "texts", "epochs": 100}, limits=FLAT),
    Case("memory 10M texts", "memory", {"kind": "texts", "epochs": 1000}, quick=False, limits=FLAT),
]


def measure(kind: str, epochs: int) -> Figures:
    """Return the resident memory and its growth over that many epochs."""
    return execute_directly(lambda worker: _program(worker, kind, epochs))


def _program(worker: Worker, kind: str, epochs: int) -> Figures:
    counted: dict[tuple[int], int] = {}

    def add(count: tuple[int], _: object, diff: int) -> None:
        counted[count] = counted.get(count, 0) + diff

    with worker.dataflow() as scope:
        rows, collection = new_input(scope)
        counts = collection.count()
        counts.map(lambda _, count: count).consolidate().inspect(add)
        probe = counts.probe()
    change = _rows(rows) if kind == "rows" else _texts(rows)
    begun, settled = clock.perf_counter(), 0
    for epoch in range(epochs):
        if epoch == epochs // 10:
            settled = forget_peak()
            begun = clock.perf_counter()
        next(change)
        rows.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(rows.time))
    seconds = clock.perf_counter() - begun
    most = peak()
    rows.close()
    worker.step_while(lambda: not probe.done())
    expected = ROWS if kind == "rows" else TEXTS
    check({count: number for count, number in counted.items() if number} == {(1,): expected}, f"{counted}")
    return {RESIDENT: settled / 1e6, GROWTH: most / settled, EPOCH: 1e6 * seconds / (epochs - epochs // 10)}


def _rows(session: InputSession) -> Iterator[None]:
    """Insert all rows, then remove the oldest row and insert a new one at each step."""
    session.insert(np.arange(ROWS))
    yield
    newest = ROWS
    while True:
        session.update(np.array([newest - ROWS, newest]), diff=np.array([-1, 1]))
        newest += 1
        yield


def _texts(session: InputSession) -> Iterator[None]:
    """Replace all texts by new ones at each step."""
    diff = np.repeat(np.array([1, -1]), TEXTS)
    epoch, old = 0, _as_texts([])
    while True:
        new = _as_texts([f"text {epoch} number {number}" for number in range(TEXTS)])
        session.update(np.concatenate((new, old)), diff=diff[: len(new) + len(old)])
        epoch, old = epoch + 1, new
        yield


def _as_texts(texts: list[str]) -> NDArray[Any]:
    return np.array(texts, np.dtypes.StringDType())
