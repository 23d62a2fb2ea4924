"""Ctrl-C ends what a job follows: the summary is printed and files are complete. Anything else it ends at once."""

from __future__ import annotations

import json
import os
import signal
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from differential.jobs.interrupt import SAME, Interrupt
from tests.examples_loading import EXAMPLES
from tests.integration.jobs.programs import INTERRUPTED, SECONDS, epochs, started, table
from tests.integration.launcher.launching import Run
from timely.communication.notes import REPORT_VARIABLE, Notes

PROCESSES = pytest.mark.parametrize("processes", [1, 2])


@contextmanager
def running(processes: int, name: str, *arguments: str | Path) -> Iterator[Run]:
    """Start a job on so many processes, in a session of its own."""
    run = Run("run", "-n", str(processes), EXAMPLES / f"{name}.py", *arguments)
    try:
        yield run
    finally:
        run.close()


def until(run: Run, condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds."""
    deadline = clock.monotonic() + SECONDS
    while not condition():
        assert clock.monotonic() < deadline, f"{what} did not come: {run.output}{run.error}"
        assert run.process.poll() is None, f"{what} did not come before the end: {run.output}{run.error}"
        clock.sleep(0.05)


def ctrl_c(run: Run) -> int:
    """Send SIGINT to the launcher and to all processes, as a terminal does; return the exit status."""
    os.killpg(run.process.pid, signal.SIGINT)
    return run.end(SECONDS)


def has_lines(path: Path, count: int) -> bool:
    return path.exists() and path.read_text().count("\n") >= count


@pytest.mark.lengthy
@PROCESSES
def test_a_graph_that_is_followed_has_a_last_answer(processes: int, tmp_path: Path) -> None:
    graph, changes = tmp_path / "graph.tsv", tmp_path / "changes.tsv"
    graph.write_text("1\t2\n2\t3\n5\t6\n")
    changes.touch()
    (tmp_path / "answer.csv").write_text("from before")
    outputs = [f"--{kind}={tmp_path / name}" for kind, name in (("csv", "answer.csv"), ("json", "report.json"))]
    given = graph, changes, "--follow", "--check", *outputs, "--changes", tmp_path / "out"
    with running(processes, "components", *given) as run:
        until(run, lambda: has_lines(tmp_path / "out", 5), "the first answer")
        with changes.open("a") as file:
            file.write("1\t+\t3\t5\n1\t+\t7\t8\n")
        until(run, lambda: has_lines(tmp_path / "out", 11), "the change")
        with changes.open("a") as file:  # an epoch of which more may come, which Ctrl-C completes
            file.write("2\t+\t8\t1\n")
        clock.sleep(0.2)
        assert ctrl_c(run) == INTERRUPTED, run.error
        assert run.error == ""
        assert "2 changes of 3 edges" in run.output
        assert "the answer from scratch is the same" in run.output
    expected = {(str(node), "1") for node in (1, 2, 3, 5, 6, 7, 8)}
    assert set(table(tmp_path / "answer.csv")) == expected
    assert epochs(tmp_path / "out")[2] == expected
    assert json.loads((tmp_path / "report.json").read_text())["changes"] == 2
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.lengthy
@PROCESSES
def test_a_text_that_is_followed_has_a_last_answer(processes: int, tmp_path: Path) -> None:
    text, answer = tmp_path / "text", tmp_path / "answer.csv"
    text.write_text("one two\n")
    with running(processes, "wordcount", text, "--follow", "--csv", answer, "--changes", tmp_path / "out") as run:
        until(run, lambda: has_lines(tmp_path / "out", 2), "the first answer")
        with text.open("a") as file:
            file.write("two three\n")
        until(run, lambda: has_lines(tmp_path / "out", 5), "the change")
        assert ctrl_c(run) == INTERRUPTED, run.error
        assert run.error == ""
        assert "4 words, 3 of them distinct, in 2 lines" in run.output
    assert set(table(answer)) == {("one", "1"), ("two", "2"), ("three", "1")}


@pytest.mark.lengthy
@PROCESSES
def test_ctrl_c_before_a_graph_is_followed_leaves_nothing(processes: int, tmp_path: Path) -> None:
    (tmp_path / "changes.tsv").touch()
    os.mkfifo(tmp_path / "graph")
    given = tmp_path / "graph", tmp_path / "changes.tsv", "--follow", "--csv", tmp_path / "answer.csv"
    with running(processes, "components", *given) as run:
        with open(tmp_path / "graph", "w") as pipe:  # opening it waits until the job has opened it
            pipe.write("1\t2\n")
            pipe.flush()
            assert ctrl_c(run) == INTERRUPTED, run.error
        assert run.output == ""
        assert "Traceback" not in run.error
    assert sorted(os.listdir(tmp_path)) == ["changes.tsv", "graph"]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("wordcount", ["-", "--lines", "1"]), ("window", ["--tweets", "-", "--window", "2"])],
)
def test_ctrl_c_ends_a_job_that_does_not_follow_at_once(name: str, arguments: list[str], tmp_path: Path) -> None:
    with started(name, *arguments, "--changes", "-", "--csv", tmp_path / "answer.csv") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("1\tada\t@bob #a\n2\tada\t@bob #b\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=SECONDS)
    assert (process.returncode, error) == (INTERRUPTED, "")
    assert os.listdir(tmp_path) == []


def interrupted(*, is_followed: bool) -> Interrupt:
    """Return what a job sees of Ctrl-C, which comes while the block runs."""
    with Interrupt(is_followed) as interrupt:
        interrupt.expect()
        begun = clock.monotonic()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)  # the same Ctrl-C, from the terminal and from the launcher
        assert interrupt.has_come()
        interrupt.wait(60)
        assert clock.monotonic() < begun + SAME
        assert not interrupt.is_overdue()
        clock.sleep(SAME)
        signal.raise_signal(signal.SIGINT)
    pytest.fail("a second Ctrl-C raises")


def test_the_second_ctrl_c_ends_a_job_that_follows() -> None:
    former = signal.getsignal(signal.SIGINT)
    for is_followed in (True, False):
        with pytest.raises(KeyboardInterrupt):
            interrupted(is_followed=is_followed)
        assert signal.getsignal(signal.SIGINT) is former


def ended(signum: signal.Signals, *, is_followed: bool, times: int = 1) -> None:
    """Send a signal to a job that follows something, or ends at once."""
    with Interrupt(is_followed) as interrupt:
        interrupt.expect()
        for _ in range(times):
            signal.raise_signal(signum)
        assert is_followed, "nothing is followed, so the job ends at once"
        assert interrupt.has_come()


@pytest.mark.parametrize("is_followed", [True, False])
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_service_manager_ends_a_job_like_ctrl_c(signum: signal.Signals, is_followed: bool) -> None:
    former = signal.signal(signum, signal.SIG_DFL)
    try:
        with pytest.raises(SystemExit) as exit:
            ended(signum, is_followed=is_followed)
        assert exit.value.code == 128 + signum
        assert signal.getsignal(signum) is signal.SIG_DFL
    finally:
        signal.signal(signum, former)


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_job_takes_sigterm_from_the_command_that_runs_it(is_followed: bool) -> None:
    def terminate(signum: int, frame: FrameType | None) -> None:
        raise SystemExit("from the command")

    former = signal.signal(signal.SIGTERM, terminate)
    try:
        with pytest.raises(SystemExit) as exit:
            ended(signal.SIGTERM, is_followed=is_followed)
        assert exit.value.code == (128 + signal.SIGTERM if is_followed else "from the command")
        with pytest.raises(SystemExit, match="from the command"):
            ended(signal.SIGTERM, is_followed=is_followed, times=2)
        assert signal.getsignal(signal.SIGTERM) is terminate
    finally:
        signal.signal(signal.SIGTERM, former)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_launcher_learns_that_a_job_completes_its_files(
    signum: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REPORT_VARIABLE, str(tmp_path / "report.0"))
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        ended(signum, is_followed=True)
    assert Notes(tmp_path).has_begun_to_end(0), "the launcher ends the job after two seconds"


def test_sigterm_among_several_processes_ends_a_job_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def terminate(signum: int, frame: FrameType | None) -> None:
        raise SystemExit("at once")

    monkeypatch.setenv("TIMELY_PROCESSES", "2")
    monkeypatch.setenv("TIMELY_ADDRESSES", "ipc:///tmp/a,ipc:///tmp/b")
    former = signal.signal(signal.SIGTERM, terminate)
    try:
        with pytest.raises(SystemExit, match="at once"):
            ended(signal.SIGTERM, is_followed=True)
    finally:
        signal.signal(signal.SIGTERM, former)


def test_a_signal_that_the_program_ignores_stays_ignored() -> None:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt(is_followed=True) as interrupt:
            interrupt.expect()
            signal.raise_signal(signal.SIGHUP)
            assert not interrupt.has_come()
    finally:
        signal.signal(signal.SIGHUP, former)


@pytest.mark.lengthy
@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_leaves_complete_files_of_a_job_that_follows(workers: int, tmp_path: Path) -> None:
    (tmp_path / "graph").write_text("1 2\n")
    (tmp_path / "changes").write_text("+ 2 3\n")
    outputs = "--changes", tmp_path / "out", "--csv", tmp_path / "answer.csv"
    given = tmp_path / "graph", tmp_path / "changes", "--follow", *outputs
    run = Run("run", "-w", str(workers), EXAMPLES / "components.py", *given)
    try:
        until(run, lambda: has_lines(tmp_path / "out", 3), "the change")
        run.process.send_signal(signal.SIGTERM)
        assert run.end(SECONDS) == 128 + signal.SIGTERM, run.error
    finally:
        run.close()
    assert sorted(os.listdir(tmp_path)) == ["answer.csv", "changes", "graph", "out"]
    assert "3,1" in (tmp_path / "answer.csv").read_text()


@pytest.mark.lengthy
def test_sigterm_leaves_complete_files_of_a_script_that_follows(tmp_path: Path) -> None:
    (tmp_path / "graph").write_text("1 2\n")
    (tmp_path / "changes").write_text("+ 2 3\n")
    arguments = [
        tmp_path / "graph",
        tmp_path / "changes",
        "--follow",
        "--changes",
        "-",
        "--csv",
        tmp_path / "answer.csv",
    ]
    with started("components", *arguments) as process:
        assert process.stdout is not None
        while "\t3\t" not in (line := process.stdout.readline()):
            assert line, process.communicate(timeout=SECONDS)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + signal.SIGTERM
    assert sorted(os.listdir(tmp_path)) == ["answer.csv", "changes", "graph"]
    assert "3,1" in (tmp_path / "answer.csv").read_text()
