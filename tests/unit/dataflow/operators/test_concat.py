"""Tests of `concat`."""

from __future__ import annotations

import pytest

from tests.unit.dataflow.running import collected
from timely import Scope, Stream
from timely.errors import BuildError


def test_a_concatenation_has_the_records_of_all_streams() -> None:
    def program(scope: Scope) -> Stream:
        first, second, third = (scope.to_stream(range(start, start + 2)) for start in (0, 10, 20))
        return first.concat(second, third)

    assert collected(program) == [0, 1, 10, 11, 20, 21]


def test_a_stream_concatenated_with_itself_has_each_record_twice() -> None:
    def program(scope: Scope) -> Stream:
        stream = scope.to_stream(range(2))
        return stream.concat(stream)

    assert collected(program) == [0, 0, 1, 1]


def test_streams_of_different_scopes_are_refused() -> None:
    def program(scope: Scope) -> Stream:
        with scope.iterative("loop") as inner:
            return scope.to_stream(range(2)).concat(inner.to_stream(range(2)))

    with pytest.raises(
        BuildError,
        match=r"concat \(at .*concat.py:\d+.*\): one stream is in scope 'dataflow', another in scope 'dataflow/loop'",
    ):
        collected(program)
