"""How often random programs draw each operator, how often it has something to do, and what happens to programs.

An operator has something to do if it emits records at some time of the grid, and different ones at an epoch after the
first; inside a loop, in some round.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.oracle.programs import BINARY, LARGE, LOOPS, UNARY, Pairs, Program, meaning
from tests.oracle.scenario import Scenario, check

OPERATORS = ("input", "delay", "dressed", *LOOPS, *UNARY, *BINARY, *LARGE)
"""All that can be drawn."""

HAPPENINGS = (
    "change ahead of time",
    "change by more",
    "compaction of both",
    "contents read",
    "drop in the middle of a loop",
    "drop of a guest",
    "drop of an exporter",
    "drop of an exporter before changes",
    "drop of the hosts",
    "guest of its own inputs",
    "import",
    "import of an import",
    "import of an import, then changes",
    "import of what has ended",
    "import, then changes",
    "insert",
    "logical compaction",
    "message out of turn",
    "message repeated",
    "physical compaction",
    "read by as many or more",
    "read by fewer",
    "remove",
    "set",
    "two coordinates",
    "unset",
    *(f"{workers} workers" for workers in range(1, 5)),
)
"""All that can happen."""


class Counts:
    """The counts of the scenarios that have been run."""

    def __init__(self) -> None:
        self.programs = 0
        self.drawn: Counter[str] = Counter()
        self.changing: Counter[str] = Counter()
        self.happened: Counter[str] = Counter()

    def run(self, scenario: Scenario) -> None:
        """Run a scenario, and count its operators and events."""
        self.happened += check(scenario)
        self.happened[f"{scenario.workers} workers"] += 1
        self.happened["two coordinates"] += scenario.outer == 2
        self.programs += len(scenario.programs)
        for program in scenario.programs:
            self._draw(program, scenario)

    def _draw(self, program: Program, scenario: Scenario) -> None:
        all_parts = parts(program)
        self.drawn.update(name for name, *_ in all_parts)
        self.changing.update(part[0] for part in changing(program, scenario))

    def rare(self, least: int) -> dict[str, int]:
        """Return the names whose count is below the limit."""
        found = {name: self.changing[name] for name in OPERATORS if self.changing[name] < least}
        return found | {name: self.happened[name] for name in HAPPENINGS if self.happened[name] < least}

    def __str__(self) -> str:
        operators = [f"{name:24}{self.drawn[name]:8}{self.changing[name]:10}" for name in OPERATORS]
        happenings = [f"{name:36}{self.happened[name]:6}" for name in HAPPENINGS]
        heading = f"{'number of programs':24}{self.programs:8}\n\n{'operator':24}{'drawn':>8}{'changing':>10}"
        return "\n".join([heading, *operators, "", *happenings])


def parts(program: Program) -> list[Program]:
    """Return a program's operators, outermost first."""
    operands = [argument for argument in program if isinstance(argument, tuple)]
    inside = [tuple(program[3:])] if program[0] == "dressed" else []
    return [program, *inside, *(part for operand in operands for part in parts(operand))]


def changing(program: Program, scenario: Scenario) -> list[Program]:
    """Return the different operators of a program that have something to do, outermost first."""
    last: defaultdict[Program, dict[int, Pairs]] = defaultdict(dict)
    for time in scenario.times():

        def keep(part: Program, value: Pairs, epoch: int = time[0]) -> None:
            last[part][epoch] = value

        meaning(program, scenario.inputs_at(time, keep))
    found = []
    for part in dict.fromkeys(parts(program)):
        first, *later = last[part].values() or [None]
        if any(any(value.values()) and value != first for value in later):
            found.append(part)
    return found
