"""What a job reports of its changes."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType

from differential.jobs import report
from tests.integration.jobs.running import outcome


def test_a_change_is_recorded_without_going_through_those_before() -> None:
    calls = Counter[int]()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == report.__file__:
            calls[changes] += 1

    for changes in (20, 80):
        sys.setprofile(count)
        try:
            found, _ = outcome("components", ["random:50,100", f"replace:{changes}"])
        finally:
            sys.setprofile(None)
        assert found.report.changes == changes
    assert calls[80] < 6 * calls[20]
