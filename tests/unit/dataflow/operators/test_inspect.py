"""Tests of `inspect` and `inspect_batch`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.dataflow.running import collected
from timely import TimelyError


def test_records_are_shown_as_python_values_and_passed_on() -> None:
    seen: list[Any] = []
    assert collected(lambda scope: scope.to_stream(range(3)).inspect(seen.append)) == [0, 1, 2]
    assert seen == [0, 1, 2]
    assert all(type(record) is int for record in seen)


def test_batches_are_shown_with_their_time() -> None:
    seen = []
    collected(
        lambda scope: scope.to_stream(range(3)).inspect_batch(lambda time, batch: seen.append((time, len(batch))))
    )
    assert seen == [((0,), 3)]


def test_an_error_names_the_operator_the_time_the_worker_and_the_line() -> None:
    def refuse(record: int) -> None:
        raise ValueError("no")  # the line named

    with pytest.raises(TimelyError) as caught:
        collected(lambda scope: scope.to_stream(range(3)).inspect(refuse))
    text = str(caught.value)
    assert "operator 'inspect' failed at time (0,) on worker 0 of 1" in text
    assert f"{__file__}:{refuse.__code__.co_firstlineno + 1}" in text
    assert text.endswith("ValueError: no")
    assert isinstance(caught.value.__cause__, ValueError)
