"""How often a run is started again, and when it is not."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import pytest

from timely.run import restart
from timely.run.cli import main
from timely.run.restart import RunOutcome, with_restarts

ENDING = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def signals() -> Iterator[tuple[socket.socket, socket.socket]]:
    receiver, sender = socket.socketpair()
    with receiver, sender:
        yield receiver, sender


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the list of pauses that would be made."""
    found: list[float] = []

    def pause(seconds: float, signals: object, ending: object) -> None:
        found.append(seconds)

    monkeypatch.setattr(restart, "_signal_within", pause)
    return found


def outcomes(*given: tuple[int, bool]) -> Iterator[RunOutcome]:
    return iter([RunOutcome(*each) for each in given])


@pytest.mark.parametrize(
    ("given", "restarts", "status", "paused"),
    [
        ([(0, False)], 3, 0, 0),
        ([(137, True), (0, False)], 3, 0, 1),
        ([(137, True), (1, True)], 1, 1, 1),
        ([(137, True)], 0, 137, 0),
        ([(143, False)], 3, 143, 0),
        ([(2, True)], 3, 2, 0),
    ],
)
def test_a_run_of_which_a_process_died_is_started_again(
    given: list[tuple[int, bool]],
    restarts: int,
    status: int,
    paused: int,
    signals: tuple[socket.socket, socket.socket],
    pauses: list[float],
    capsys: pytest.CaptureFixture[str],
) -> None:
    left = outcomes(*given)
    assert with_restarts(lambda: next(left), restarts, signals[0], ENDING) == status
    assert next(left, None) is None
    assert len(pauses) == paused == capsys.readouterr().err.count("timely: restart")


def test_pauses_double_up_to_half_a_minute_and_begin_again_after_a_healthy_run(
    signals: tuple[socket.socket, socket.socket], pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(restart.clock, "monotonic", lambda: now[0])
    runs = iter([1.0] * 8 + [61.0] + [1.0] * 2)

    def run() -> RunOutcome:
        now[0] += next(runs)
        return RunOutcome(1, True)

    assert with_restarts(run, 10, signals[0], ENDING) == 1
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 0.5, 1]


def test_a_signal_ends_a_pause_and_the_run(signals: tuple[socket.socket, socket.socket]) -> None:
    receiver, sender = signals
    sender.send(bytes([signal.SIGCHLD, signal.SIGTERM]))
    assert with_restarts(lambda: RunOutcome(137, True), 5, receiver, ENDING) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--restart", "-1"], "at least 0, not -1"),
        (["--restart", "1", "--process", "0", "--hostfile", "{hosts}"], "leave out --process"),
        (["--state", "{hosts}"], "is a file"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: list[str], complaint: str, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = f"{tmp_path}/hosts"
    with open(hosts, "w") as file:
        file.write("127.0.0.1:2101\n")
    script = f"{tmp_path}/script.py"
    with open(script, "w") as file:
        file.write("raise SystemExit(9)\n")
    assert main(["run", *(option.format(hosts=hosts) for option in options), script]) == 2
    assert complaint in capsys.readouterr().err
