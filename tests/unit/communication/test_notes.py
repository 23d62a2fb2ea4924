"""Fates that are declared within a process: for one generation of runs, or for all."""

from __future__ import annotations

from timely.communication.notes import declare_fate, fate_of


def test_a_fate_concerns_the_calls_of_one_generation_or_of_all() -> None:
    declare_fate(1, "has ended", "first")
    declare_fate(2, "is lost")
    try:
        assert fate_of(1, "first.0") == fate_of(1, "first.7") == "has ended"
        assert fate_of(1, "second.0") == fate_of(1) == ""
        assert fate_of(2, "first.0") == fate_of(2) == "is lost"
    finally:
        declare_fate(1, "", "first")
        declare_fate(2, "")
    assert fate_of(1, "first.0") == fate_of(2) == ""
