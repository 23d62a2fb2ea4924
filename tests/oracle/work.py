"""How much work a program does that its output does not show.

If several workers share the edges, a delta query for a pattern makes a row for every choice of one difference for each
edge of an occurrence; a single worker adds some of them up before. A clique of four has six edges. One edge of a node
to itself can be all of them; with nine differences it makes half a million rows, which add up to nine or none. Edges
that change in rounds of loops and at times of two coordinates make millions.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.oracle.graphs import DELTA_QUERIES, Records, edges_of
from tests.oracle.grid import Multiset
from tests.oracle.programs import Pairs, Program, meaning
from tests.oracle.scenario import Scenario
from timely.order import Time, less_equal


class Differences:
    """The differences of a collection of edges, from its contents in each round at each time, earlier times first."""

    def __init__(self) -> None:
        self.number: Multiset = Counter()
        """How many each edge has."""
        self._rounds: list[dict[Time, Multiset]] = []

    def add(self, time: Time, rounds: list[Records]) -> None:
        """Add the contents of the collection at a time."""
        self._rounds += ({} for _ in range(len(rounds) - len(self._rounds)))
        before: Records = {}
        for number, earlier in enumerate(self._rounds):
            now = rounds[number] if number < len(rounds) else before
            difference = Counter(now)
            difference.subtract(before)
            for other, rows in earlier.items():
                if less_equal(other, time):
                    difference.subtract(rows)
            earlier[time] = Counter({edge: count for edge, count in difference.items() if count})
            self.number.update(earlier[time].keys())
            before = now


def occurrences(program: Program, scenario: Scenario) -> int:
    """Return how many rows a program's delta queries make before they are added up."""
    if not any(name in str(program) for name in DELTA_QUERIES):
        return 0
    found: defaultdict[Program, Differences] = defaultdict(Differences)
    for time in scenario.times():
        for part, rounds in _searched(program, scenario, time).items():
            found[part].add(time, rounds)
    return sum(sum(DELTA_QUERIES[name].meaning(each.number).values()) for (name, *_), each in found.items())


def _searched(program: Program, scenario: Scenario, time: Time) -> dict[Program, list[Records]]:
    """Return the edges over which each delta query of a program runs at a time, round by round."""
    last: dict[Program, Pairs] = {}
    searched: defaultdict[Program, list[Records]] = defaultdict(list)

    def see(part: Program, value: Pairs) -> None:
        last[part] = value
        if part[0] in DELTA_QUERIES:
            searched[part].append(edges_of(last[part[1]]))

    meaning(program, scenario.inputs_at(time, see))
    return searched
