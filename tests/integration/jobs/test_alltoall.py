"""In the job `alltoall` each worker receives what each worker sends to it, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.examples_loading import example_module
from tests.integration.jobs.programs import answered, drawn, on_two_processes, table
from timely import Config, execute

alltoall = example_module("alltoall")
splitmix = example_module("splitmix")


def sent(size: int, epochs: int, peers: int) -> set[tuple[str, ...]]:
    """Return (sender, receiver, records, sum of numbers) of each pair of workers, number by number."""
    totals = dict.fromkeys(((sender, receiver) for sender in range(peers) for receiver in range(peers)), 0)
    for epoch in range(epochs):
        for sender in range(peers):
            for place in range(size * peers):
                (number,) = splitmix.splitmix(np.array([place + (sender + epoch * peers) * size * peers])).tolist()
                totals[sender, place // size] += number >> 1
    return {tuple(map(str, (*pair, size * epochs, total % 2**63))) for pair, total in totals.items()}


def test_splitmix_is_the_published_one() -> None:
    first = splitmix.splitmix(np.arange(3)).tolist()
    assert first == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_each_worker_receives_what_was_sent_to_it(tmp_path: Path, workers: int) -> None:
    given = "--records", "5", "--epochs", "4", "--csv", tmp_path / "traffic.csv", "--check"
    answered("alltoall", *given, workers=workers)
    assert set(table(tmp_path / "traffic.csv")) == sent(5, 4, workers)


def test_two_processes_send_to_each_other(tmp_path: Path) -> None:
    given = "--records", "3", "--epochs", "2", "--csv", tmp_path / "traffic.csv", "--json", tmp_path / "report.json"
    ended = on_two_processes("alltoall", *given, "--check", workers=2)
    assert ended.status == 0, ended.error
    assert set(table(tmp_path / "traffic.csv")) == sent(3, 2, 4)
    found = json.loads((tmp_path / "report.json").read_text())
    assert (found["workers"], found["records"], found["epochs"]) == (4, 3 * 2 * 16, 2)


def test_sums_do_not_overflow() -> None:
    column = np.array([2**63 - 1, 2**63 - 1, 5], np.int64)
    assert alltoall.total(column) == (2 * (2**63 - 1) + 5) % 2**63


def test_a_record_that_is_lost_is_reported() -> None:
    exchange, *_ = execute(lambda worker: alltoall.program(worker, 4, 3), Config(workers=2))
    alltoall.check(exchange.received, 4, 3, 2)
    exchange.received[0, 1, "records"] -= 1
    with pytest.raises(alltoall.CheckError, match=r"worker 1 received \(records, sum\) \(11, "):
        alltoall.check(exchange.received, 4, 3, 2)


def test_the_picture_has_axes(tmp_path: Path) -> None:
    given = "--records", "5", "--epochs", "9"
    assert drawn("alltoall", tmp_path / "picture.svg", *given).count('<g id="axes_') == 2
