"""`timely run --on SYSTEM`: what it refuses, and that a state directory that another run has reserved stays alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from timely.cluster import ray, slurm
from timely.config import Config
from timely.errors import ConfigError
from timely.run import cli, elsewhere
from timely.run.state import reserved

SCRIPT = __file__


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Record the index given to the process of each script, and run none."""
    indices: list[str | None] = []

    def run_target(*_: object) -> int:
        indices.append(os.environ.get("TIMELY_PROCESS"))
        return 0

    @contextmanager
    def placed(config: Config) -> Iterator[Config]:
        addresses = ("tcp://127.0.0.1:2101", "tcp://127.0.0.1:2102")
        yield replace(config, processes=2, process=int(os.environ["SLURM_PROCID"]), addresses=addresses)

    monkeypatch.setattr(elsewhere, "run_target", run_target)
    monkeypatch.setattr(elsewhere, "report_unknown_variables", lambda config: None)
    monkeypatch.setattr(slurm, "placed", placed)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr("sys.path", ["", *os.sys.path])  # type: ignore[attr-defined]
    return indices


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--on", "slurm", "-n", "3"], "srun decides how many processes there are: srun -n 3 timely run"),
        (["--on", "mpi", "-n", "3"], "mpirun decides how many processes there are"),
        (["--on", "slurm", "--restart", "3"], "srun has started the processes, so it has to start them again"),
        (["--on", "slurm", "--hostfile", "hosts"], "--on slurm decides where processes are"),
        (["--on", "ray", "--raw"], "--raw is for processes that this command starts, and here ray starts them"),
        (["--on", "mpi", "--hostfile", "hosts", "--process", "0"], "--on mpi decides where processes are"),
        (["--on", "ray", "-n", "0"], "there must be at least one process, not 0"),
    ],
)
def test_options_that_contradict_the_system_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], ran: list[str | None]
) -> None:
    assert cli.main(["run", *arguments, SCRIPT]) == 2
    assert words in capsys.readouterr().err
    assert ran == []


@pytest.mark.parametrize("process", ["0", "1"])
def test_a_script_runs_as_the_process_that_the_system_names(process: str, ran: list[str | None]) -> None:
    os.environ["SLURM_PROCID"] = process
    assert cli.main(["run", "--on", "slurm", SCRIPT]) == 0
    assert ran == [process]


def test_process_0_does_not_begin_in_a_directory_of_state_that_another_run_has_reserved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ran: list[str | None]
) -> None:
    state = str(tmp_path)
    with reserved(state, 1):
        os.environ["SLURM_PROCID"] = "0"
        assert cli.main(["run", "--on", "slurm", "--state", state, SCRIPT]) == 2
        assert f"{state} belongs to a run with --restart (process {os.getpid()}" in capsys.readouterr().err
        assert ran == []
    assert cli.main(["run", "--on", "slurm", "--state", state, SCRIPT]) == 0
    assert ran == ["0"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"processes": 0}, "at least one process"),
        ({"processes": 2, "workers": 0}, "at least one process and one worker"),
        ({"processes": 2, "restarts": -1}, "restarts is how often"),
        ({"processes": 2, "strategy": "NEAR"}, "strategy must be one of PACK, "),
    ],
)
def test_a_run_on_ray_that_cannot_be_is_refused_before_ray_is_asked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ray.run(len, **options)
