"""Checks the invariants of all traces that the operators of a test write, and fails the test where one does not hold.

A pass over the rows of a batch takes longer than many a test has for it. So of each trace the first batch that is
inserted or merged is checked, the second, the fourth, the eighth, and so on, unless it is large; and as a whole what is
left when the test has ended. What is found is reported then, since an error in an operator may be one that the test
expects.

Where the modules are compiled, operators cannot be made to report their traces, and nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

import pytest

from benchmarks.compiled import COMPILED
from differential.arrangement import arrange
from differential.trace.batch import Batch
from differential.trace.spine import Spine
from tests.invariants import check

LARGE = 64
"""A batch of more rows is not checked."""


class Traces:
    """The traces of a test, as long as somebody else holds them, and what was wrong with their batches."""

    def __init__(self) -> None:
        self.live: WeakSet[Spine] = WeakSet()
        self.faults: list[str] = []

    def follow(self, spine: Spine) -> None:
        """Check batches of a trace from now on."""
        self.live.add(spine)
        spine.watch = watching(spine.watch, self.faults)

    def finish(self) -> None:
        """Fail if anything was wrong, or is with a trace that is left."""
        for spine in self.live:
            if all(len(batch) <= LARGE for batch in spine.batches()):
                check(spine)
        assert not self.faults, f"invariants of traces do not hold: {self.faults}"


def watching(watch: Callable[[Batch], None] | None, faults: list[str]) -> Callable[[Batch], None]:
    """Return what checks some batches, and passes all on to what watched the trace before."""

    seen = 0

    def checked(batch: Batch) -> None:
        nonlocal seen
        seen += 1
        if seen & (seen - 1) == 0 and len(batch) <= LARGE:
            try:
                check(batch)
            except AssertionError as fault:
                faults.append(f"{batch}: {fault}")
        if watch is not None:
            watch(batch)

    return checked


@pytest.fixture(autouse=True)
def checked_traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traces]:
    """Check the traces of a test; a `conftest.py` that imports this does so for the tests beside it."""
    traces = Traces()
    if not COMPILED:
        log_trace = arrange.log_trace

        def follow(spine: Spine, output: Any) -> None:
            traces.follow(spine)
            log_trace(spine, output)

        monkeypatch.setattr(arrange, "log_trace", follow)
    yield traces
    traces.finish()
