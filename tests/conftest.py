"""Compile all kernels before the first test, so that no test's time limit has to allow for it."""

from __future__ import annotations

import pytest

from differential.kernels.__main__ import main as compile_kernels


def pytest_sessionstart(session: pytest.Session) -> None:
    compile_kernels()
