"""Tests of `filter`."""

from __future__ import annotations

import pytest

from tests.unit.dataflow.running import collected
from timely import TimelyError


def test_records_are_kept_by_a_mask() -> None:
    assert collected(lambda scope: scope.to_stream(range(6)).filter(lambda x: x % 2 == 0)) == [0, 2, 4]


def test_records_of_lists_are_kept_one_by_one() -> None:
    assert collected(lambda scope: scope.to_stream(["a", "bc"]).filter(lambda text: len(text) > 1)) == ["bc"]


def test_one_answer_for_all_keeps_all_or_none() -> None:
    assert collected(lambda scope: scope.to_stream(range(3)).filter(lambda x: True)) == [0, 1, 2]
    assert collected(lambda scope: scope.to_stream(range(3)).filter(lambda x: False)) == []


def test_a_value_that_is_not_a_mask_is_refused_and_the_operator_named() -> None:
    with pytest.raises(TimelyError, match=r"operator 'small' failed at time \(0,\).*boolean column of length 3"):
        collected(lambda scope: scope.to_stream(range(3)).filter(lambda x: x, name="small"))
