"""Tests of the descriptions of batches."""

from __future__ import annotations

import pytest

from differential.trace.description import Description
from tests.invariants import check
from timely.progress.antichain import Antichain


def _at(*elements: int) -> Antichain:
    return Antichain([elements])


def test_a_description_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(AssertionError, match="ends before it begins"):
        check(Description(_at(2), _at(1), _at(0)))


def test_a_description_of_times_of_different_scopes_is_refused() -> None:
    with pytest.raises(AssertionError, match="different numbers of coordinates"):
        check(Description(_at(2), _at(3, 0), _at(0)))


def test_a_description_entered_is_at_inner_counter_zero() -> None:
    inner = Description(_at(1), _at(3), _at(0)).enter()
    check(inner)
    assert (inner.lower, inner.upper, inner.since) == (_at(1, 0), _at(3, 0), _at(0, 0))
