"""Programs over text give the same answers if every number that can be reclaimed is reclaimed at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import differential.data.codes as codes
import differential.data.interning as interning
from tests.oracle.scenario import Scenario
from tests.oracle.shrink import check_and_shrink
from tests.property.differential.test_programs_mean_what_they_say import FEW
from tests.strategies_programs import scenarios
from tests.thorough import examples


@pytest.mark.parametrize("most_packed", [2, codes.PACKED_HIGH])
@pytest.mark.parametrize("step", [3, 1 << 12])
@pytest.mark.timeout(300)
@given(scenario=scenarios(most=3, dressed=True))
@settings(FEW, max_examples=examples(5))
def test_reclaiming_numbers_at_once_changes_no_answer(scenario: Scenario, step: int, most_packed: int) -> None:
    scenario = scenario._replace(tiny=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "PACKED_HIGH", most_packed)
        patch.setattr(codes, "MOST_PACKED", min(codes.MOST_PACKED, most_packed))
        patch.setattr(interning, "LEAST_STEP", step)
        patch.setattr(interning, "_LEAST_WATCHED", 4)
        patch.setattr(interning.Interner, "_is_due", lambda _: True)
        check_and_shrink(scenario)
