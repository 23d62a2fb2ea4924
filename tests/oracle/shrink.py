"""Smaller scenarios that still fail.

Pieces of a failing scenario are removed one by one: programs, parts of programs, updates, workers, circumstances. The
rest fails, and would not without any one of its pieces. It is printed as a program that can be run by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.oracle.grid import contents, grid
from tests.oracle.programs import LOOPS, Program
from tests.oracle.scenario import Scenario, check, script

SEEDS = 3
"""The number of orders of events in which a smaller scenario is tried."""

MOST_SECONDS = 100.0
"""Time for making a scenario smaller. Hypothesis runs a failure again, and twice this is within a test's limit."""


def check_and_shrink(scenario: Scenario, run: Callable[[Scenario], object] = check) -> None:
    """Run a scenario; if it fails, raise AssertionError with the smallest that fails in the same way."""
    try:
        run(scenario)
    except Exception as error:
        kind = type(error)

        def fails(smaller: Scenario) -> bool:
            try:
                check(smaller)
            except Exception as other:
                return type(other) is kind
            return False

        smallest = shrunk(scenario, fails)
        raise AssertionError(f"{error}\n\nThis fails in the same way:\n\n{script(smallest)}") from error


def shrunk(scenario: Scenario, fails: Callable[[Scenario], bool], seconds: float = MOST_SECONDS) -> Scenario:
    """Return a scenario made of parts of this one that still `fails` and cannot lose any one of them."""
    end = time.monotonic() + seconds
    improved = True
    while improved:
        improved = False
        for smaller in _smaller(scenario):
            for seed in range(scenario.seed, scenario.seed + SEEDS):
                if time.monotonic() > end:
                    return scenario
                if fails(smaller._replace(seed=seed)):
                    scenario, improved = smaller._replace(seed=seed), True
                    break
            if improved:
                break
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    programs, inputs = scenario.programs, scenario.inputs
    if len(programs) > 1:
        for program in programs:
            yield scenario._replace(programs=[program])
        for number in range(len(programs)):
            yield scenario._replace(programs=programs[:number] + programs[number + 1 :])
    for workers in range(1, scenario.workers):
        yield scenario._replace(workers=workers)
    for readers in range(scenario.readers):
        yield scenario._replace(readers=readers)
    for field in ("guest", "tiny"):
        if getattr(scenario, field):
            yield scenario._replace(**{field: False})
    if scenario.outer > 1:
        flat = [[(record, time[:1], diff) for record, time, diff in one] for one in inputs]
        if all(map(_is_possible, flat)):
            yield scenario._replace(outer=1, inputs=flat)
    for position in range(len(scenario.upserts)):
        yield scenario._replace(upserts=[*scenario.upserts[:position], *scenario.upserts[position + 1 :]])
    for number, one in enumerate(inputs):
        for position in range(len(one)):
            fewer = one[:position] + one[position + 1 :]
            if _is_possible(fewer):
                yield scenario._replace(inputs=[*inputs[:number], fewer, *inputs[number + 1 :]])
    for number, program in enumerate(programs):
        for smaller in smaller_programs(program):
            yield scenario._replace(programs=[*programs[:number], smaller, *programs[number + 1 :]])


def _is_possible(updates: list[Any]) -> bool:
    return all(count > 0 for time in grid(updates) for count in contents(updates, time).values())


def smaller_programs(program: Program) -> Iterator[Program]:
    """Yield parts of a program, and the program with a part in place of a larger part; outermost parts first."""
    name, *arguments = program
    if name in ("input", "variable"):
        return
    outside = len(arguments) // 2 if name in LOOPS else len(arguments)
    yield from (argument for argument in arguments[:outside] if isinstance(argument, tuple))
    if name == "dressed":
        yield tuple(arguments[2:])
        for position in (0, 1):
            if arguments[position] != "int":
                yield (name, *arguments[:position], "int", *arguments[position + 1 :])
    for position, argument in enumerate(arguments):
        if isinstance(argument, tuple):
            for smaller in smaller_programs(argument):
                # What bounds a loop stays.
                if argument[0] != "bound" or smaller[0] == "bound":
                    yield (name, *arguments[:position], smaller, *arguments[position + 1 :])
