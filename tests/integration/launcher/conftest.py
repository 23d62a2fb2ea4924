"""Runs of `timely` that leave nothing behind when a test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.launcher.launching import Run

Start = Callable[..., Run]


@pytest.fixture
def start() -> Iterator[Start]:
    runs: list[Run] = []

    def begin(*arguments: str | Path, **options: object) -> Run:
        runs.append(Run(*arguments, **options))  # type: ignore[arg-type]
        return runs[-1]

    yield begin
    for run in runs:
        run.close()
