"""How much work a program makes that cannot be seen in what comes out of it.

A delta query for a pattern makes a row for every choice of one difference for each edge of an occurrence, where
several workers share the edges; one by itself adds some of them up before. A clique of four has six edges; one edge of
a node to itself serves as all of them, and if it has nine differences it makes half a million rows, which add up to
nine or none. Edges that change in rounds of loops and at times of two coordinates make millions.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.oracle.graphs import DELTA_QUERIES, Records, edges_of
from tests.oracle.grid import Multiset
from tests.oracle.programs import Pairs, Program, meaning
from tests.oracle.scenario import Scenario
from timely.order import Time, less_equal


class Differences:
    """The differences of a collection of edges, found from what it holds in each round at each time, earlier first."""

    def __init__(self) -> None:
        self.number: Multiset = Counter()
        """How many each edge has."""
        self._rounds: list[dict[Time, Multiset]] = []

    def add(self, time: Time, rounds: list[Records]) -> None:
        """Take in what the collection holds at a time."""
        self._rounds += ({} for _ in range(len(rounds) - len(self._rounds)))
        before: Records = {}
        for number, earlier in enumerate(self._rounds):
            now = rounds[number] if number < len(rounds) else before
            difference = Counter(now)
            difference.subtract(before)
            for other, said in earlier.items():
                if less_equal(other, time):
                    difference.subtract(said)
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
    """Return the edges that each delta query of a program is asked of at a time, round by round."""
    last: dict[Program, Pairs] = {}
    searched: defaultdict[Program, list[Records]] = defaultdict(list)

    def see(part: Program, value: Pairs) -> None:
        last[part] = value
        if part[0] in DELTA_QUERIES:
            searched[part].append(edges_of(last[part[1]]))

    meaning(program, scenario.inputs_at(time, see))
    return searched
