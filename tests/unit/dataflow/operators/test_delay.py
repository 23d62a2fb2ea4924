"""Tests of what `delay` refuses."""

from __future__ import annotations

import pytest

from timely import TimelyError, example


def test_times_of_a_list_have_the_same_number_of_coordinates() -> None:
    with pytest.raises(TimelyError, match=r"delay: a time has as many integers as coordinates, got 1 and 2"):
        example(
            lambda scope: scope.to_stream(["a", "b"]).delay(
                lambda time, record: (time[0] + 1,) if record == "a" else (time[0] + 1, 99)
            )
        )
