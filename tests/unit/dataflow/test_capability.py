"""Capabilities: what they permit, and how they refuse everything else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.counted import comparisons, counted
from tests.unit.dataflow.running import collected
from timely import (
    Antichain,
    Capability,
    CapabilitySet,
    InputPort,
    OperatorBuilder,
    OutputPort,
    PathSummary,
    Pipeline,
    Time,
    Worker,
    execute_directly,
    new_input,
    new_unordered_input,
)
from timely.dataflow.input_capability import InputCapability
from timely.errors import CapabilityError, OperatorError, TimelyError
from timely.order import less_equal

Held = tuple[Capability, OutputPort, Worker]


def with_capability(use: Callable[[Capability, OutputPort, Worker], None], outer: int = 2) -> None:
    """Call `use` with the initial capability of an operator, whose times have two coordinates, and its output."""

    def program(worker: Worker) -> None:
        held: list[Capability] = []
        with worker.dataflow(outer=outer) as scope:
            builder = OperatorBuilder(scope, "holder")
            output, stream = builder.add_output(initial=True)

            def constructor(capabilities: list[Capability]) -> Callable[[], None]:
                held.extend(capabilities)
                return lambda: None

            builder.build(constructor)
            stream.probe()
        with held[0] as capability:
            use(capability, output, worker)

    execute_directly(program)


def test_a_downgrade_to_an_incomparable_time_is_refused_and_names_both_times() -> None:
    def use(capability: Capability, *_: object) -> None:
        capability.downgrade((1, 0))
        with pytest.raises(CapabilityError, match=r"a capability for \(1, 0\) cannot go back to \(0, 1\)"):
            capability.downgrade((0, 1))
        assert capability.time == (1, 0)

    with_capability(use)


def test_delaying_backwards_is_refused_and_names_both_times() -> None:
    def use(capability: Capability, *_: object) -> None:
        capability.downgrade((2, 2))
        with pytest.raises(CapabilityError, match=r"a capability for \(2, 2\) cannot go back to \(2, 1\)"):
            capability.delayed((2, 1))

    with_capability(use)


def test_a_time_of_another_scope_is_refused() -> None:
    def use(capability: Capability, *_: object) -> None:
        with pytest.raises(
            CapabilityError, match=r"\(3,\) is not a time of this scope, whose times look like \(0, 0\)"
        ):
            capability.delayed((3,))

    with_capability(use)


def test_delaying_a_capability_does_not_change_it() -> None:
    def use(capability: Capability, *_: object) -> None:
        with capability.delayed((0, 5)) as later, later.clone() as again:
            assert (capability.time, later.time, again.time) == ((0, 0), (0, 5), (0, 5))

    with_capability(use)


@pytest.mark.parametrize("method", ["clone", "delayed", "downgrade"])
def test_use_after_a_drop_is_refused(method: str) -> None:
    def use(capability: Capability, *_: object) -> None:
        capability.drop()
        capability.drop()
        arguments = [] if method == "clone" else [(1, 1)]
        with pytest.raises(CapabilityError, match=r"the capability for \(0, 0\) was dropped"):
            getattr(capability, method)(*arguments)

    with_capability(use)


def test_sending_after_a_drop_is_refused() -> None:
    def use(capability: Capability, output: OutputPort, _: Worker) -> None:
        capability.drop()
        with pytest.raises(CapabilityError, match=r"\(0, 0\), dropped, .* does not permit sending on output 0"):
            output.give(capability, [1])

    with_capability(use)


def test_a_capability_knows_the_line_that_made_it() -> None:
    def use(capability: Capability, *_: object) -> None:
        later = capability.delayed((1, 1))
        with later:
            assert later.origin.file == __file__
            assert later.origin.line == use.__code__.co_firstlineno + 1
            assert f"made at {later.origin}" in repr(later)

    with_capability(use)


def test_a_capability_of_one_output_does_not_permit_sending_on_another() -> None:
    def program(worker: Worker) -> None:
        held: list[Capability] = []
        with worker.dataflow() as scope:
            builder = OperatorBuilder(scope, "two outputs")
            first, _ = builder.add_output(initial=True)
            second, _ = builder.add_output()
            builder.build(lambda capabilities: held.extend(capabilities) or (lambda: None))  # type: ignore[func-returns-value]
        with held[0] as capability:
            first.give(capability, [1])
            with pytest.raises(CapabilityError, match=r"does not permit sending on output 1 of operator 'two outputs'"):
                second.give(capability, [1])

    execute_directly(program)


def test_a_message_gives_no_right_to_send_before_its_time() -> None:
    def logic(input: InputPort, output: OutputPort) -> None:
        for right, batch in input:
            output.give(right.delayed((7,)).delayed((9,)), batch)
            right.delayed((7,)).delayed((6,))

    with pytest.raises(TimelyError, match=r"a message at \(7,\) gives no right to send at \(6,\)"):
        collected(lambda scope: scope.to_stream(range(3)).unary(Pipeline(), logic))


@pytest.mark.parametrize("time", [(), (7, 7)])
def test_a_message_gives_no_right_to_send_at_a_value_that_is_not_a_time_of_its_scope(time: Time) -> None:
    def logic(input: InputPort, output: OutputPort) -> None:
        for right, batch in input:
            output.give(right.delayed(time), batch)

    with pytest.raises(TimelyError, match=r"is not a time of this scope, whose times look like \(0,\)"):
        collected(lambda scope: scope.to_stream(range(3)).unary(Pipeline(), logic))


def test_a_message_gives_no_right_to_send_at_a_time_beyond_the_largest() -> None:
    def logic(input: InputPort, output: OutputPort) -> None:
        for right, batch in input:
            output.give(right.delayed((2**62,)), batch)
            right.delayed((2**62 + 1,))

    with pytest.raises(TimelyError, match=r"\(4611686018427387905,\) is too late: no coordinate"):
        collected(lambda scope: scope.to_stream(range(3)).unary(Pipeline(), logic))


def use_of_an_old_right(use: Callable[[InputCapability, OutputPort], object]) -> None:
    """Call `use` with the right that came with a message, when the operator handles the next one."""
    kept: list[InputCapability] = []

    def logic(input: InputPort, output: OutputPort) -> None:
        for right, _ in input:
            kept.append(right.delayed(right.time))
            if kept[0].time != right.time:
                use(kept[0], output)

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.unary(Pipeline(), logic).probe()
        for epoch in range(2):
            numbers.send(epoch)
            numbers.advance_to(epoch + 1)
            worker.step()

    execute_directly(program)


@pytest.mark.parametrize(
    "use",
    [
        lambda right, output: output.give(right, [1]),
        lambda right, output: output.give(right.delayed((5,)), [1]),
        lambda right, output: right.retain(),
    ],
)
def test_a_messages_right_ends_with_the_activation_it_came_in(
    use: Callable[[InputCapability, OutputPort], object],
) -> None:
    with pytest.raises(TimelyError, match=r"right of a message at \((0|5),\) ended .* retain\(\)"):
        use_of_an_old_right(use)


@pytest.mark.parametrize(
    ("use", "word"), [(lambda right: right.downgrade(7), "downgraded"), (lambda right: right.drop(), "dropped")]
)
def test_a_messages_right_is_neither_downgraded_nor_dropped(use: Callable[[InputCapability], None], word: str) -> None:
    def logic(input: InputPort, output: OutputPort) -> None:
        for right, _ in input:
            use(right)

    with pytest.raises(OperatorError, match=rf"message at \(0,\) ends .* cannot be {word}: retain\(\) returns a"):
        collected(lambda scope: scope.to_stream(range(3)).unary(Pipeline(), logic))


def test_a_messages_right_does_not_exist_between_activations() -> None:
    kept: list[InputCapability] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.to_stream(range(3))
            stream.unary(Pipeline(), lambda input, output: kept.extend(right for right, _ in input))
        worker.step()
        with pytest.raises(CapabilityError, match="ended with the activation"):
            kept[0].retain()

    execute_directly(program)


def test_a_set_holds_only_the_least_times() -> None:
    def use(capability: Capability, output: OutputPort, _: Worker) -> None:
        held = CapabilitySet(output)
        insert_at(held, capability, (2, 2))
        insert_at(held, capability, (3, 3))
        assert held.times == [(2, 2)]
        insert_at(held, capability, (1, 4))
        insert_at(held, capability, (0, 2))
        assert held.times == [(0, 2)]
        held.downgrade([(4, 2), (0, 3)])
        assert held.times == [(0, 3), (4, 2)]
        assert held.covering((5, 3)).time in ((0, 3), (4, 2))
        with pytest.raises(CapabilityError, match=r"\[\(0, 3\), \(4, 2\)\]\) permits sending at \(3, 2\)"):
            held.covering((3, 2))
        held.drop()
        assert len(held) == 0
        assert [held.time for held in output.live] == [capability.time]

    with_capability(use)


def test_a_set_cannot_be_downgraded_to_a_time_it_does_not_permit_and_stays_unchanged() -> None:
    def use(capability: Capability, output: OutputPort, worker: Worker) -> None:
        held = CapabilitySet(output)
        insert_at(held, capability, (2, 2))
        for wanted, message in [
            ([(0, 0)], r"permits sending at \(0, 0\)"),
            ([(3, 2), (2, 2**62 + 1)], "is too late: no coordinate of a time may be larger"),
            ([(3, 2), (0, 3)], r"permits sending at \(0, 3\)"),
            ([(3, 2), (3,)], r"\(3,\) is not a time of this scope"),
        ]:
            with pytest.raises(CapabilityError, match=message):
                held.downgrade(wanted)
            assert held.times == [(2, 2)]
            assert len(output.live) == 2
        held.drop()

    with_capability(use)


def insert_at(held: CapabilitySet, capability: Capability, time: Time) -> None:
    with capability.delayed(time) as right:
        held.insert(right)


def test_an_initial_capability_names_the_users_line_even_after_it_was_dropped() -> None:
    def use(capability: Capability, *_: object) -> None:
        held = capability.origin
        capability.drop()
        assert capability.origin == held
        assert f"dropped, made at {__file__}:" in repr(capability)

    with_capability(use)


@pytest.mark.parametrize(
    ("call", "use"),
    [
        ("capability.clone()", lambda capability: capability.clone()),
        ("capability.delayed(...)", lambda capability: capability.delayed((1, 1))),
        ("capability.downgrade(...)", lambda capability: capability.downgrade((1, 1))),
        ("capability.drop()", lambda capability: capability.drop()),
        ("capabilities.insert(...)", lambda capability: CapabilitySet(capability.output).insert(capability)),
    ],
)
def test_a_capability_is_refused_in_another_thread_than_the_workers(
    call: str, use: Callable[[Capability], object]
) -> None:
    def check(capability: Capability, output: OutputPort, _: Worker) -> None:
        message = f"a capability on {output} belongs to the thread of worker 0: in another thread, use worker.call("
        with ThreadPoolExecutor(1) as other, pytest.raises(CapabilityError) as refused:
            other.submit(use, capability).result(10)
        assert str(refused.value) == f"{message}lambda: {call})"
        assert capability.time == (0, 0)
        assert len(output.live) == 1

    with_capability(check)


def test_another_thread_may_drop_a_capability_twice_and_one_of_a_dropped_dataflow() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, _ = new_unordered_input(scope)
        first, second = numbers.capability, numbers.capability.clone()
        first.drop()
        with ThreadPoolExecutor(1) as other:
            other.submit(first.drop).result(10)
            worker.drop_dataflow(scope.dataflow)
            other.submit(second.drop).result(10)

    execute_directly(program)


def test_a_call_in_the_workers_thread_drops_a_capability_and_wakes_it() -> None:
    def program(worker: Worker) -> bool:
        with worker.dataflow() as scope:
            numbers, stream = new_unordered_input(scope)
            probe = stream.probe()
        with ThreadPoolExecutor(1) as other:
            other.submit(worker.call, numbers.capability.drop)
            while worker.step_or_park(10):
                pass
        return probe.done()

    assert execute_directly(program)


def test_a_set_accepts_no_right_that_is_not_held() -> None:
    def use(capability: Capability, output: OutputPort, worker: Worker) -> None:
        held = CapabilitySet(output)
        held.insert(capability)
        held.downgrade([(5, 5)])
        dropped = capability.delayed((3, 3))
        dropped.drop()
        with pytest.raises(CapabilityError, match="does not permit sending on"):
            held.insert(dropped)
        with pytest.raises(CapabilityError, match="with a capability"):
            held.insert((2, 2))
        assert held.times == [(5, 5)]
        assert len(output.live) == 2
        held.drop()

    with_capability(use)


def test_a_set_is_downgraded_to_the_least_of_the_times_it_is_given() -> None:
    def use(capability: Capability, output: OutputPort, worker: Worker) -> None:
        held = CapabilitySet(output)
        held.insert(capability)
        held.downgrade([(5, 7), (5, 6), (6, 0), (5, 6)])
        assert held.times == [(5, 6), (6, 0)]
        held.drop()

    with_capability(use)


STAIRS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=9, max_size=40)


@settings(max_examples=30)
@given(STAIRS, STAIRS, st.booleans())
def test_a_wide_set_is_downgraded_where_it_permits_every_time(
    before: list[Time], after: list[Time], is_later: bool
) -> None:
    if is_later:
        after = list(Antichain(before).join(Antichain(after)))
    is_permitted = all(any(less_equal(held, time) for held in before) for time in after)

    def use(capability: Capability, output: OutputPort, worker: Worker) -> None:
        held = CapabilitySet(output)
        held.insert(capability)
        held.downgrade(before)
        if is_permitted:
            held.downgrade(after)
        else:
            with pytest.raises(CapabilityError, match="permits sending at"):
                held.downgrade(after)
        assert held.times == list(Antichain(after if is_permitted else before))
        assert len(output.live) == 1 + len(held)
        held.drop()

    with_capability(use)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [((0,), r"\(0,\) is not a time of this scope"), ((9, 2**62 + 1), "is too late"), ((0, 0), "permits sending at")],
)
def test_a_wide_set_refuses_what_is_not_a_time_and_stays_unchanged(wanted: Time, message: str) -> None:
    def use(capability: Capability, output: OutputPort, worker: Worker) -> None:
        held = CapabilitySet(output)
        held.insert(capability)
        held.downgrade([(place, 20 - place) for place in range(20)])
        with pytest.raises(CapabilityError, match=message):
            held.downgrade([*[(place, 21 - place) for place in range(20)], wanted])
        assert held.times == [(place, 20 - place) for place in range(20)]
        assert len(output.live) == 21
        held.drop()

    with_capability(use)


def test_downgrading_a_wide_set_costs_little_more_than_a_pass_over_it() -> None:
    def use(capability: Capability, output: OutputPort, worker: Worker) -> None:
        size = 500
        held = CapabilitySet(output)
        held.insert(capability)
        held.downgrade(Antichain.of_minimal(tuple([counted(place, size - place) for place in range(size)])))
        later = Antichain.of_minimal(tuple([counted(place, size - place + 1) for place in range(size)]))
        assert comparisons(lambda: held.downgrade(later)) <= 100 * size
        held.drop()

    with_capability(use)


def test_a_set_holds_the_right_that_comes_with_a_message_on_the_output_it_reaches() -> None:
    def program(worker: Worker) -> list[list[Time]]:
        times: list[list[Time]] = []
        with worker.dataflow() as scope:
            builder = OperatorBuilder(scope, "holder")
            input = builder.add_input(scope.to_stream([1]), Pipeline())
            (near, _), (far, _), (closed, _) = (builder.add_output() for _ in range(3))
            builder.connect(input, far, PathSummary(1, (5,), ()))
            builder.connect(input, closed, None)

            def logic() -> None:
                for right, _ in input:
                    for output in (near, far):
                        held = CapabilitySet(output)
                        held.insert(right)
                        times.append(held.times)
                        held.drop()
                    with pytest.raises(CapabilityError, match="was built without a path to output 2"):
                        CapabilitySet(closed).insert(right)

            builder.build(lambda _: logic)
        worker.step()
        return times

    assert execute_directly(program) == [[(0,)], [(5,)]]


@pytest.mark.parametrize("time", [(True,), (np.int64(1),), [1], 1, True, np.int64(1)])
def test_times_are_accepted_in_the_same_forms_as_by_inputs(time: Any) -> None:
    def exactly(taken: Time) -> bool:
        return taken == (1,) and type(taken) is tuple and type(taken[0]) is int

    def use(capability: Capability, output: OutputPort, worker: Worker) -> None:
        with capability.delayed(time) as later:
            assert exactly(later.time)
        held = CapabilitySet(output)
        held.insert(capability)
        assert held.covering(time).time == (0,)
        held.downgrade([time])
        assert exactly(held.times[0])
        assert held[time] is held.covering(time)
        held.drop()
        capability.downgrade(time)
        assert exactly(capability.time)

    with_capability(use, outer=1)

    def logic(input: InputPort, output: OutputPort) -> None:
        for right, batch in input:
            assert exactly(right.delayed(time).time)
            output.give(right.delayed(time), batch)

    assert collected(lambda scope: scope.to_stream(range(3)).unary(Pipeline(), logic)) == [0, 1, 2]


@pytest.mark.parametrize("use", [Capability.drop, lambda capability: capability.downgrade((3,))])
def test_an_interrupted_release_of_a_capability_does_not_release_another(use: Callable[[Capability], None]) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_unordered_input(scope)
            probe = stream.probe()
        first = numbers.capability
        twin = first.clone()
        output: Any = first.output
        update = output.update

        def interrupted(location: int, time: Time, change: int) -> None:
            update(location, time, change)
            if change < 0:
                raise KeyboardInterrupt

        output.update = interrupted
        with pytest.raises(KeyboardInterrupt):
            use(first)
        output.update = update
        first.drop()
        worker.step()
        assert probe.less_equal(0)
        twin.drop()
        worker.step()
        assert not probe.less_equal(0)

    execute_directly(program)
