"""Workers drop a dataflow as soon as they have seen the end for which they wait; each of the others sees it too."""

from __future__ import annotations

from random import Random

import pytest

from tests.simulation.dataflow.model import EPOCHS, Cluster, Site


def passed(site: Site) -> bool:
    return site.dataflow is not None and not site.probe.less_than(EPOCHS)


def act(site: Site) -> None:
    """Do the user's next thing; at the end move the input on and leave it open."""
    if site.input is None or site._tasks:
        site.act()
    elif site.input.epoch < EPOCHS:
        site.input.advance_to(EPOCHS)


@pytest.mark.parametrize(("peers", "workers", "accumulation"), [(3, 1, "worker"), (4, 2, "process"), (4, 2, "cluster")])
def test_every_worker_sees_the_end_of_an_epoch_even_if_each_then_drops_the_dataflow(
    peers: int, workers: int, accumulation: str
) -> None:
    early = 0
    for program in range(15):
        cluster = Cluster(peers, "demand", program, program, None, workers, accumulation)
        rng = Random(program)
        events = 0
        while running := [site for site in cluster.sites if site.dataflow is None or site.worker.dataflows]:
            events += 1
            assert events < 20_000, f"program {program}: {len(running)} workers never see the end\n{cluster.explain()}"
            if not cluster.network.deliver_one() or rng.random() < 0.5:
                site = rng.choice(running)
                act(site)
                site.worker.step()
                if passed(site):
                    site.worker.drop_dataflow(0)
                    early += len(running) > 1
    assert early >= 15 * (peers - 1)
