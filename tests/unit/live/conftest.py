"""What tests of the page share."""

from __future__ import annotations

import pytest

from timely.live import latency


@pytest.fixture
def measured_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program that has the processor for half a millisecond would otherwise end the measurement of epochs."""
    monkeypatch.setattr(latency, "NANOSECONDS_AT_MOST", 60_000_000_000)
