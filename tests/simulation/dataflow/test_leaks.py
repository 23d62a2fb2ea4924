"""A leaked capability is detected, and every worker can name it; without one everything drains."""

from __future__ import annotations

from random import Random

import pytest

from tests.simulation.dataflow.model import Cluster
from tests.simulation.dataflow.programs import Step, forgetting
from timely import Capability


class Leaky(Cluster):
    """A cluster in whose program some operators may forget a capability, on one worker."""

    def __init__(self, peers: int, mode: str, program: int, culprit: int) -> None:
        self.culprit = culprit
        self.kept: list[Capability] = []
        honest: list[Capability] = [None]  # type: ignore[list-item]
        more: list[list[Step]] = [[forgetting(self.kept if index == culprit else honest)] * 6 for index in range(peers)]
        super().__init__(peers, mode, program, 0, more)

    @property
    def leaked(self) -> str:
        """The line that must name the leaked capability."""
        capability = self.kept[0]
        return f"a capability for {capability.time} on {capability.output}, made at {capability.origin}"


@pytest.mark.parametrize(("peers", "mode"), [(2, "eager"), (3, "demand"), (5, "demand")])
def test_a_leaked_capability_is_detected_and_named_by_every_worker(peers: int, mode: str) -> None:
    leaks = sound = 0
    for program in range(20):
        cluster = Leaky(peers, mode, program, program % peers)
        if not runs_out(cluster):
            cluster.check_drained()
            sound += 1
            continue
        leaks += 1
        with pytest.raises(AssertionError, match="not all is over") as failure:
            cluster.check_drained()
        assert cluster.leaked in str(failure.value)
        for site in cluster.sites:
            explanation = cluster.explained(site)
            [line] = [line for line in explanation.splitlines() if cluster.leaked in line]
            assert line.endswith(f"worker {cluster.culprit}")
        assert "programs.py:" in cluster.leaked
        # Once the capability is released everything ends as usual.
        cluster.kept[0].drop()
        cluster.run(Random(program))
    assert leaks >= 2
    assert sound >= 2


def runs_out(cluster: Leaky) -> bool:
    """Run until nothing can happen any more; return whether a capability was leaked."""
    cluster.go_on(Random(0))
    return bool(cluster.kept)
