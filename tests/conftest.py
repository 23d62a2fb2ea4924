"""Compile all kernels before the first test, so that no test's time limit has to allow for it; let no clock decide.

How long Hypothesis takes to make or to try an example says how busy the machine is, and nothing of the program.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from differential.kernels.__main__ import main as compile_kernels

settings.register_profile("timeless", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("timeless")


def pytest_sessionstart(session: pytest.Session) -> None:
    compile_kernels()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes `-n auto` is: one more than there are cores, for many tests mostly wait."""
    return (os.cpu_count() or 1) + 1
