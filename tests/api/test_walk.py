"""The walk of one changed record through the modules, as `docs/tour.md` describes it."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType

import numpy as np
import pytest

from differential import new_input
from tests.api.modules import PACKAGES, ROOT
from timely import Worker, execute_directly

MODULES = 35
"""How many modules the walk passes at most, kernels not counted."""
CALLS = 305
"""How many calls of functions it takes at most."""


def walk() -> Counter[str]:
    """Return how often functions of each module are called when one edge is removed and a count of edges changes."""
    calls: Counter[str] = Counter()
    homes = tuple(f"{ROOT}/{package}/" for package in PACKAGES)

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(homes):
            calls[frame.f_code.co_filename.removeprefix(f"{ROOT}/")] += 1

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            output = edges.map(lambda source, target: source).count().output()
        sources, targets = np.random.default_rng(0).integers(0, 1000, (2, 5000))
        session.insert(sources, targets)
        for epoch in range(1, 7):
            session.advance_to(epoch)
            worker.step_while(lambda epoch=epoch: output.less_than(epoch))  # type: ignore[misc]
            session.remove(int(sources[epoch]), int(targets[epoch]))
        sys.setprofile(note)
        session.advance_to(7)
        worker.step_while(lambda: output.less_than(7))
        sys.setprofile(None)

    execute_directly(program)
    return calls


@pytest.mark.interpreted
@pytest.mark.composed
def test_one_change_takes_few_calls_through_modules_that_the_tour_names() -> None:
    calls = walk()
    outside = [module for module in calls if "/kernels/" not in module]
    assert len(outside) <= MODULES, outside
    assert sum(calls.values()) <= CALLS, calls
    _, _, section = (ROOT / "docs" / "tour.md").read_text().partition("## One change, from `remove` to `output`")
    named = section.partition("\n## ")[0]
    assert [module for module in outside if f"`{module.split('/', 1)[1]}`" not in named] == []
