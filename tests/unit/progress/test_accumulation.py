"""Which workers add up the progress of which others."""

from __future__ import annotations

import pytest

from timely.progress.accumulation import Route


def places(processes: int, workers: int, accumulation: str) -> list[Route]:
    return [Route.of(worker, processes, workers, accumulation) for worker in range(processes * workers)]


@pytest.mark.parametrize(
    ("processes", "workers", "accumulation"), [(2, 2, "worker"), (1, 4, "worker"), (1, 4, "process")]
)
def test_every_worker_sends_to_every_other_one(processes: int, workers: int, accumulation: str) -> None:
    assert places(processes, workers, accumulation) == [Route.direct(worker, 4) for worker in range(4)]
    assert Route.direct(1, 4).targets == (0, 2, 3)


@pytest.mark.parametrize(
    ("processes", "workers", "accumulation", "direct"),
    [
        (2, 2, "worker", True),
        (1, 4, "process", True),
        (4, 1, "process", True),
        (1, 1, "cluster", True),
        (2, 2, "process", False),
        (4, 1, "cluster", False),
        (1, 4, "cluster", False),
    ],
)
def test_all_workers_agree_on_whether_every_worker_sends_to_every_other_one(
    processes: int, workers: int, accumulation: str, direct: bool
) -> None:
    assert {place.is_direct for place in places(processes, workers, accumulation)} == {direct}


def test_the_first_workers_of_processes_are_the_roots() -> None:
    assert places(2, 3, "process") == [
        Route(None, (1, 2), (3,)),
        Route(0, (), ()),
        Route(0, (), ()),
        Route(None, (4, 5), (0,)),
        Route(3, (), ()),
        Route(3, (), ()),
    ]
    assert places(2, 3, "process")[3].targets == (0, 4, 5)


def test_the_first_worker_of_all_is_the_only_root() -> None:
    assert places(2, 2, "cluster") == [
        Route(None, (2, 1), ()),
        Route(0, (), ()),
        Route(0, (3,), ()),
        Route(2, (), ()),
    ]
    assert [place.targets for place in places(2, 2, "cluster")] == [(2, 1), (0,), (0,), (2,)]


def test_a_single_worker_sends_to_no_other() -> None:
    assert [places(1, 1, way)[0].targets for way in ("worker", "process", "cluster")] == [(), (), ()]


@pytest.mark.parametrize("accumulation", ["worker", "process", "cluster"])
@pytest.mark.parametrize(("processes", "workers"), [(1, 1), (1, 3), (3, 1), (2, 2), (3, 3)])
def test_the_sources_of_a_worker_are_those_that_send_to_it(processes: int, workers: int, accumulation: str) -> None:
    routes = places(processes, workers, accumulation)
    sends = [{*route.targets, *route.children} for route in routes]
    for worker, route in enumerate(routes):
        assert route.sources == {peer for peer, receivers in enumerate(sends) if worker in receivers}
        assert worker not in sends[worker]
