"""At every time the output of a random program is that of the program evaluated from scratch on its inputs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.oracle.scenario import Scenario, check, script
from tests.oracle.shrink import check_and_shrink, shrunk
from tests.strategies_programs import scenarios
from tests.thorough import examples

FEW = settings(
    max_examples=examples(8),  # `python -m tests.soak` runs as many as wanted
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_a_scenario_that_fails_is_printed_as_a_program_that_fails() -> None:
    removed_from_nothing = Scenario([("distinct", ("input", 0))], [[((1, 2), (0,), -1)], []])
    with pytest.raises(Exception, match=r"the record \(1, 2\) occurs a negative number of times"):
        exec(script(removed_from_nothing), {})


def test_a_scenario_shrinks_to_what_fails() -> None:
    program = ("concat", ("join", ("input", 0), ("input", 1)), ("swap", ("distinct", ("input", 0))))
    first = [((0, 0), (1, 0), 1), ((1, 2), (0, 0), 1), ((0, 0), (2, 0), -1)]
    large = Scenario([("count", ("input", 1)), program], [first, [((3, 3), (0, 1), 1)]], 2, 3, True, True, 2)

    def fails(scenario: Scenario) -> bool:
        return "distinct" in str(scenario.programs) and any(record == (1, 2) for record, *_ in scenario.inputs[0])

    assert shrunk(large, fails) == Scenario([("distinct", ("input", 0))], [[((1, 2), (0,), 1)], []])


def test_a_window_of_a_window_is_a_program_without_warnings() -> None:
    window = ("bound", ("window", ("input", 1))), ("bound", ("window", ("variable", 0)))
    check(Scenario([("settle", *window)], [[], [((2, 0), (1,), 1)]], 1, 1, seed=10536))


@pytest.mark.timeout(300)
@given(scenario=scenarios(depth=3, most=12))
@FEW
def test_random_programs_are_right_at_every_time(scenario: Scenario) -> None:
    check_and_shrink(scenario)


@pytest.mark.slow
@pytest.mark.timeout(0)
@given(scenario=scenarios(depth=6, size=14))
@settings(FEW, max_examples=200)
def test_larger_programs_are_right_at_every_time(scenario: Scenario) -> None:
    check_and_shrink(scenario)
