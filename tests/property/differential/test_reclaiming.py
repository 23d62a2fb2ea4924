"""Programs over text give the same answers when every number that can be taken back is, as soon as it can."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, note, settings

import differential.codes as codes_module
import differential.interning as interning_module
from differential import new_input
from differential.interning import Interner
from tests.oracle.programs import Pair, Pairs, Program, build
from tests.property.differential.test_programs_mean_what_they_say import drive, expected
from tests.strategies_programs import INPUTS, Case, cases
from timely import Config, Worker
from timely.communication.simulated import SimulatedNetwork

# Arithmetic has no meaning for text: something else that works on whole records takes its place.
_FOR_TEXT = {
    "fold": "swap",
    "even": "distinct",
    "both": "consolidate",
    "count": "max",
    "sum": "max",
    "squares": "top",
    "explode": "self",
    "totals": "max",
    "argmin": "min",
    "prefix": "each",
    "numbered": "distinct",
    "cogroup": "union",
}


def over_text(program: Program) -> Program:
    """Return a program without arithmetic."""
    name, *arguments = program
    if name == "bound":
        return over_text(arguments[0])
    return (
        _FOR_TEXT.get(name, name),
        *(over_text(argument) if isinstance(argument, tuple) else argument for argument in arguments),
    )


def run(case: Case) -> list[Pairs]:
    """Return the output after each epoch, of digits as text."""
    network = SimulatedNetwork(case.workers, case.seed)
    workers = [Worker(allocator, Config(workers=case.workers)) for allocator in network.allocators]
    sessions, outputs = [], []
    for worker in workers:
        with worker.dataflow() as scope:
            mine, collections = zip(*(new_input(scope) for _ in range(INPUTS)))
            sessions.append(mine)
            outputs.append(build(case.program, collections).output())
    random, states, present = Random(case.seed), [], Counter[tuple[int, Pair]]()
    for epoch, edits in enumerate(case.epochs):
        for edit in edits:
            diff = 1 if edit.insert or not present[edit.input, edit.pair] else -1
            present[edit.input, edit.pair] += diff
            sessions[edit.worker][edit.input].update(*map(str, edit.pair), diff=diff)
        for mine in sessions:
            for session in mine:
                session.advance_to(epoch + 1)
        drive(workers, network, random, lambda reached=epoch + 1: outputs[0].less_than(reached))
        states.append(Counter({(int(key), int(value)): n for (key, value), n in outputs[0].contents().items()}))
    return states


@pytest.mark.parametrize("most_packed", [2, codes_module.PACKED_HIGH])
@pytest.mark.parametrize("step", [3, 1 << 12])
@given(case=cases())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_taking_numbers_back_at_once_changes_no_answer(case: Case, step: int, most_packed: int) -> None:
    case = case._replace(program=over_text(case.program))
    note(str(case.program))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes_module, "PACKED_HIGH", most_packed)
        patch.setattr(codes_module, "MOST_PACKED", 2 if most_packed == 2 else codes_module.MOST_PACKED)
        patch.setattr(interning_module, "LEAST_STEP", step)
        patch.setattr(interning_module, "_LEAST_WATCHED", 4)
        patch.setattr(Interner, "is_due", True)
        assert run(case) == expected(case)
