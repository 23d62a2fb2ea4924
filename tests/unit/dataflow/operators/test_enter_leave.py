"""Tests of `enter` and `leave`."""

from __future__ import annotations

import pytest

from tests.unit.dataflow.running import collect
from timely import Pipeline, Scope, Stream
from timely.errors import BuildError


def test_entering_a_loop_adds_a_counter_and_leaving_removes_it() -> None:
    inside = []

    def program(scope: Scope) -> Stream:
        with scope.iterative() as inner:
            entered = scope.to_stream(range(1)).enter(inner)
            return entered.inspect_batch(lambda time, _: inside.append(time)).leave()

    assert collect(program) == [[((0,), 0)]]
    assert inside == [(0, 0)]


def test_several_loops_are_entered_and_left_at_once() -> None:
    inside = []

    def program(scope: Scope) -> Stream:
        with scope.iterative() as outer, outer.iterative() as inner:
            entered = scope.to_stream(range(1)).enter(inner)
            return entered.inspect_batch(lambda time, _: inside.append(time)).leave(scope)

    assert collect(program) == [[((0,), 0)]]
    assert inside == [(0, 0, 0)]


def test_a_region_does_not_change_times() -> None:
    def program(scope: Scope) -> Stream:
        with scope.region() as region:
            entered = scope.to_stream(range(1)).enter(region)
            assert region.width == scope.width
            return entered.leave()

    assert collect(program) == [[((0,), 0)]]


def test_a_scope_that_is_not_inside_cannot_be_entered() -> None:
    def program(scope: Scope) -> Stream:
        with scope.iterative("here") as here, scope.iterative("there") as there:
            return here.to_stream(range(1)).enter(there)

    with pytest.raises(BuildError, match=r"cannot enter scope 'dataflow/there' from scope 'dataflow/here'"):
        collect(program)


def test_the_outermost_scope_cannot_be_left() -> None:
    with pytest.raises(BuildError, match="cannot leave scope 'dataflow': it is the outermost"):
        collect(lambda scope: scope.to_stream(range(1)).leave())


def test_an_operator_refuses_a_stream_of_another_scope() -> None:
    def program(scope: Scope) -> Stream:
        with scope.iterative("loop") as inner:
            outside = scope.to_stream(range(1))
            return outside.binary(inner.to_stream(range(1)), Pipeline(), Pipeline(), lambda *_: None)

    with pytest.raises(BuildError, match=r"its input is a stream of scope 'dataflow/loop': use enter\(\) or leave\(\)"):
        collect(program)
