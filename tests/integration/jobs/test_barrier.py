"""The job `barrier` notifies each worker of each time once, in order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.examples_loading import example_module
from tests.integration.jobs.programs import answered, drawn, on_two_processes, table
from timely import Config, execute

barrier = example_module("barrier")


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_each_worker_is_notified_of_each_time_when_the_one_before_is_complete(workers: int) -> None:
    found = execute(lambda worker: barrier.program(worker, 50), Config(workers=workers))
    rounds = 50 + barrier.WARM_UP
    for each in found:
        assert each.times == list(range(rounds))
        assert len(each.microseconds()) == 50
    # One clock serves all threads: nobody enters a round before everybody has entered the one before.
    for number in range(1, rounds):
        assert max(each.marks[number - 1] for each in found) <= min(each.marks[number] for each in found)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_rounds_are_counted(tmp_path: Path, workers: int) -> None:
    output = answered("barrier", "--rounds", "40", "--check", "--csv", tmp_path / "rounds.csv", workers=workers)
    assert output.startswith(f"40 rounds of {workers} worker")
    rows = table(tmp_path / "rounds.csv")
    assert [int(number) for number, _ in rows] == list(range(1, 41))
    assert all(float(microseconds) > 0 for _, microseconds in rows)


def test_two_processes_agree(tmp_path: Path) -> None:
    ended = on_two_processes("barrier", "--rounds", "30", "--check", "--json", tmp_path / "report.json", workers=2)
    assert ended.status == 0, ended.error
    found = json.loads((tmp_path / "report.json").read_text())
    assert (found["workers"], found["rounds"]) == (4, 30)
    assert found["latency_us"].keys() == {"median", "p95", "p99", "max"}


def test_a_worker_that_was_not_notified_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    right = barrier.program

    def wrong(*given: object) -> object:
        found = right(*given)
        found.times[7:9] = found.times[8], found.times[7]
        return found

    monkeypatch.setattr(barrier, "program", wrong)
    options = barrier.options_of(["--rounds", "5", "--check", "--quiet"])
    with pytest.raises(barrier.CheckError, match=r"notifications in order, by worker, are \[\(0, -1\)\]"):
        execute(lambda worker: barrier.run(worker, options), Config())


def test_the_picture_has_axes(tmp_path: Path) -> None:
    assert drawn("barrier", tmp_path / "picture.svg", "--rounds", "9").count('<g id="axes_') == 2
