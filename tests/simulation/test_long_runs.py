"""The same seed gives the same events, in any process; long runs find nothing wrong."""

from __future__ import annotations

import pytest

from tests.simulation.__main__ import compare
from tests.simulation.dataflow.model import simulate
from tests.simulation.long_runs import SIMULATIONS, long_run


@pytest.mark.parametrize("simulation", SIMULATIONS)
def test_a_seed_reproduces_its_events_and_another_seed_gives_other_events(simulation: str) -> None:
    first, again, other = (long_run(simulation, 1500, seed).digest for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_two_schedules_of_a_program_differ() -> None:
    assert simulate(2, "demand", 0, 0).trace.digest != simulate(2, "demand", 0, 1).trace.digest


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("simulation", SIMULATIONS)
def test_long_runs_are_sound_and_the_same_in_another_process(simulation: str) -> None:
    assert compare(simulation, 100_000, seed=3) == 0
