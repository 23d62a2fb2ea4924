"""At any moment of any run, the pointstamps that workers report holding are those that hold a time, by brute force."""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.oracle.progress import Frontiers, Graph, at_or_before
from tests.simulation.dataflow.model import Cluster
from timely.dataflow.explain import EVERYWHERE, held_here

EVERY = 7
"""Events between comparisons."""


class Explained(Cluster):
    """A cluster whose explanations are compared with the truth now and then."""

    compared = 0
    held = 0

    def check(self) -> None:
        super().check()
        built = [site.dataflow for site in self.sites if site.dataflow is not None]
        if self.events % EVERY or not built:
            return
        tracker = built[0].tracker
        truth = Frontiers(Graph(list(tracker._lengths), list(tracker._edges)))
        for dataflow in built:
            tokens = []
            for operator in dataflow.operators:
                tokens += [(output.location, each.time) for output in operator.outputs for each in output.live]
                tokens += [(port.location, time) for port in operator.inputs for time, _ in port.queue]
            assert counted(held_here(dataflow, EVERYWHERE, ())) == len(tokens)
            self.held += len(tokens)
            for location, time in set(self.live()):
                holding = [
                    token
                    for token in tokens
                    if any(at_or_before(least, time) for least in truth.results(*token)[location])
                ]
                lines = held_here(dataflow, location, time)
                assert counted(lines) == len(holding), f"{lines}, but {holding}"
                assert all(line.endswith(f"worker {dataflow.worker_index}") for line in lines)
                self.compared += 1


def counted(lines: list[str]) -> int:
    """Return how many capabilities and messages the lines are of."""
    return sum(1 if line.startswith("a capability") else int(re.split(r"[ ,]", line)[0]) for line in lines)


@pytest.mark.parametrize("peers", [1, 3])
def test_the_holder_that_an_explanation_names_is_the_one_that_holds_the_time(peers: int) -> None:
    compared = held = 0
    for program in range(12):
        cluster = Explained(peers, "demand", program, 0)
        cluster.run(Random(program))
        compared += cluster.compared
        held += cluster.held
    assert compared > 100
    assert held > 100
