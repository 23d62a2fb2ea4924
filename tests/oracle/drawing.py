"""Random programs over pairs of small integers, and random circumstances, all from one seed.

The body of a loop is monotone and has a bounded domain, so that the loop settles.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.oracle.counts import changing, parts
from tests.oracle.graphs import GRAPHS, OF_EDGES
from tests.oracle.grid import Update, contents, grid
from tests.oracle.kinds import KINDS
from tests.oracle.part import INPUTS
from tests.oracle.programs import BINARY, DRESSED, LARGE, SIZE, UNARY, Program
from tests.oracle.scenario import Scenario
from tests.oracle.work import occurrences
from timely.order import Time

MONOTONE_UNARY = ("swap", "fold", "even", "both", "distinct", "consolidate", "numbered", "self", "window", "nothing",
                  "index distinct", "there and back")  # fmt: skip
MONOTONE_BINARY = ("concat", "join", "semijoin", "union", "intersect", "delta", "index join")
MONOTONE_LARGE = ("extended", *(name for name, graph in GRAPHS.items() if graph.is_monotone))

VARIABLES = 4
"""No further loop begins inside this many variables."""

MOST_OCCURRENCES = 5_000
"""Programs that made more took up to millions of steps if each message held two rows."""

_INPUTS = (*[("input", 0), ("input", 1)] * 3, *[("input", INPUTS)] * 2, ("input", INPUTS + 1))


class Drawing:
    """Draws from a source of random numbers; only operators of columns of any kind, and these of text, if `dressed`.

    Operators are dealt like cards: none comes again before all others of its kind, except those of programs that are
    not used and those that have nothing to do.
    """

    def __init__(self, random: Random, dressed: bool = False) -> None:
        self.random = random
        self.dressed = dressed
        self._decks: dict[tuple[str, ...], list[str]] = {}

    def program(self, depth: int) -> Program:
        """Return a program of any operators, with loops nested up to three deep."""
        random = self.random
        if depth == 0 or random.random() < 1 / 6:
            return random.choice(_INPUTS)
        shape = random.randrange(26)
        if shape < 2:
            return self.loop(0, depth - 1, 3)
        if shape < 3:
            start, edges = self.program(depth - 1), self.program(depth - 1)
            return ("iterate", ("min", start), ("min", ("concat", ("swap", ("join", ("variable", 0), edges)), start)))
        if shape < 5:
            return ("delay", self.program(depth - 1))
        if shape < 11 and not self.dressed:
            return self._large(LARGE, lambda: self.program(depth - 1))
        if shape < 20:
            return (*self._operator(UNARY), self.program(depth - 1))
        return (*self._operator(BINARY), self.program(depth - 1), self.program(depth - 1))

    def loop(self, variables: int, start_depth: int, depth: int) -> Program:
        """Return a loop that settles, inside this many variables."""
        name = self.random.choice(("settle", "later", "mutual"))
        number = 2 if name == "mutual" else 1
        starts = (self._inside(variables, start_depth) for _ in range(number))
        bodies = (self._body(variables + number, depth) for _ in range(number))
        return (name, *(("bound", start) for start in starts), *(("bound", body) for body in bodies))

    def scenario(self, depth: int, most: int, size: int, latest: int) -> Scenario:
        """Return some programs and everything that happens to them, at times with coordinates up to `latest`."""
        random = self.random
        outer = random.choice((1, 1, 2))
        programs = [self.program(depth) for _ in range(random.randint(min(most, 4), most))]
        inputs = [self._updates(outer, size, latest) for _ in range(INPUTS)]
        scenario = Scenario(
            programs,
            inputs,
            outer,
            workers=random.randint(1, 4),
            tiny=random.random() < 0.5,
            guest=random.random() < 0.8,
            readers=random.choice((0, 0, 0, 0, 1, 2, 3)),
            seed=random.randrange(1 << 16),
            upserts=self._statements(size // 2, latest) if outer == 1 else (),
        )
        scenario = scenario._replace(programs=[self._feasible(program, scenario, depth) for program in programs])
        self._deal_again(scenario)
        return scenario

    def _feasible(self, program: Program, scenario: Scenario, depth: int) -> Program:
        """Return the program, or another one if it does too much work; then its graph algorithms are dealt next."""
        while occurrences(program, scenario) > MOST_OCCURRENCES:
            self._decks.setdefault(LARGE, []).extend(sorted({name for name, *_ in parts(program) if name in LARGE}))
            program = self.program(depth)
        return program

    def _deal_again(self, scenario: Scenario) -> None:
        """Put operators that have nothing to do in a scenario under the remaining cards."""
        for program in scenario.programs:
            idle = {name for name, *_ in parts(program)} - {name for name, *_ in changing(program, scenario)}
            for names in (UNARY, BINARY, LARGE):
                self._decks.setdefault(names, [])[:0] = sorted(idle.intersection(names))

    def _inside(self, variables: int, depth: int) -> Program:
        return self._body(variables, depth) if variables else self.program(depth)

    def _body(self, variables: int, depth: int) -> Program:
        """Return a monotone program of inputs and of the variables around it."""
        random = self.random
        if depth == 0 or random.random() < 1 / 4:
            return ("variable", random.randrange(variables)) if random.random() < 0.5 else random.choice(_INPUTS)
        shape = random.randrange(14)
        if shape < 2 and variables < VARIABLES:
            return self.loop(variables, depth - 1, depth - 1)
        if shape < 3 and not self.dressed:
            return self._large(MONOTONE_LARGE, lambda: self._body(variables, depth - 1))
        if shape < 8:
            return (*self._operator(MONOTONE_UNARY), self._body(variables, depth - 1))
        return (*self._operator(MONOTONE_BINARY), self._body(variables, depth - 1), self._body(variables, depth - 1))

    def _operator(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return an operator, sometimes of columns dressed as of other kinds."""
        name = self._deal(tuple(name for name in names if name in DRESSED) if self.dressed else names)
        if name in DRESSED and (self.dressed or self.random.random() < 0.25):
            kinds = [name for name in KINDS if not self.dressed or "te" in name]
            return ("dressed", self.random.choice(kinds), self.random.choice(kinds), name)
        return (name,)

    def _large(self, names: tuple[str, ...], operand: Callable[[], Program]) -> Program:
        """Return an operator made of many operators, mostly over many edges."""
        name = self._deal(names)
        edges = operand() if self.random.random() < 0.3 else ("concat", ("input", 0), ("input", 1))
        return (name, edges) if name in OF_EDGES else (name, edges, operand())

    def _deal(self, names: tuple[str, ...]) -> str:
        deck = self._decks.setdefault(names, [])
        if not deck:
            deck += self.random.sample(names, k=len(names))
        return deck.pop()

    def _updates(self, outer: int, size: int, latest: int) -> list[Update]:
        """Return the updates of an input: every removal retracts a record that is present at all later times."""
        random = self.random
        updates: list[Update] = []
        for _ in range(random.choice((0, size // 2, *[size] * 6))):
            time = self._time(outer, latest)
            if updates and random.random() < 0.3:
                removal = [*updates, (random.choice(updates)[0], time, -1)]
                if all(count > 0 for each in grid(removal) for count in contents(removal, each).values()):
                    updates = removal
                    continue
            updates.append(((random.randrange(SIZE), random.randrange(SIZE)), time, random.choice((1, 1, 1, 1, 2))))
        return updates

    def _statements(self, size: int, latest: int) -> list[tuple[tuple[int, int | None], Time]]:
        """Return upserts, each of a key's value or of no value, in the order of time."""
        random = self.random
        values = (*range(SIZE), None)
        statements = [
            ((random.randrange(SIZE), random.choice(values)), self._time(1, latest))
            for _ in range(random.randint(0, size))
        ]
        return sorted(statements, key=lambda one: one[1])

    def _time(self, outer: int, latest: int) -> Time:
        return tuple(self.random.randint(0, latest) for _ in range(outer))
