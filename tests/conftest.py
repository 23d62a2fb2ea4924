"""Compile all kernels before the first test, so that no test's time limit has to allow for it; let no clock decide.

How long Hypothesis takes to make or to try an example says how busy the machine is, and nothing of the program.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from differential.kernels.__main__ import main as compile_kernels

settings.register_profile("timeless", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("timeless")


def pytest_sessionstart(session: pytest.Session) -> None:
    compile_kernels()
