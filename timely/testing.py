"""A plugin for pytest: a test that hangs reports who holds its dataflows up.

With `pytest -p timely.testing` and the time limits of pytest-timeout, the plugin prints, shortly before a test exceeds
its limit, what the workers of the process do and wait for (see `timely.worker.status`). The report appears in the
output of the failed test.
"""

from __future__ import annotations

from collections.abc import Generator
from threading import Timer
from typing import Any

import pytest

from timely.observe.notices import notify
from timely.worker.status import report, running_workers

BEFORE_SECONDS = 1.0
"""How long before the end of a test's time the report is printed, or at four fifths of that time if that is later."""

_timers: pytest.StashKey[Timer] = pytest.StashKey()


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> Generator[None, Any, Any]:
    """Schedule a report shortly before the test exceeds its limit."""
    limit = float(settings.timeout)
    timer = Timer(max(limit - BEFORE_SECONDS, 0.8 * limit), _report)
    timer.daemon = True
    item.stash[_timers] = timer
    timer.start()
    return (yield)


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> Generator[None, Any, Any]:
    """Cancel the report: the test has ended in time."""
    timer = item.stash.get(_timers, None)
    if timer is not None:
        timer.cancel()
    return (yield)


def _report() -> None:
    if running_workers():
        notify(f"this test is about to exceed its time limit\n{report()}")
