"""Long work shows its progress while the program waits for it, and nothing else does."""

from __future__ import annotations

import io
import sys
import time as clock
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.unit.run.terminals import on_a_terminal
from timely import Config, Worker, execute, new_input
from timely.errors import ConfigError
from timely.live import display
from timely.live.display import Line
from timely.run import waiting
from timely.run.waiting import STILL_SECONDS, ProgressLine, Sight, Wait, progress_line


class Recorded(Line):
    """A line that keeps what it shows."""

    period = 0.0

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.ended = 0

    def show(self, figures: str, share: float | None, seconds: float) -> None:
        assert seconds >= 0
        self.shown.append(f"{self.phase}: {figures}")

    def end(self) -> None:
        self.ended += 1


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """The line of the test, and frequent looks."""
    line = Recorded()
    monkeypatch.setattr(display, "_line", lambda: line)
    monkeypatch.setattr(waiting, "PERIOD", 0.01)
    monkeypatch.setattr(waiting, "LOOK_SECONDS", 0.02)
    return line


sights = st.builds(Sight, st.integers(0, 1), st.booleans(), st.booleans(), st.tuples(st.integers(0, 1)))


@given(st.lists(st.tuples(sights, st.integers(1, 40)), max_size=30))
def test_work_is_long_if_one_wait_lasts_and_something_moves(history: list[tuple[Sight, int]]) -> None:
    wait, now = Wait(1.0), 0.0
    seen: list[tuple[Sight, float]] = []
    for sight, tenths in history:
        now += tenths / 10
        seen.append((sight, now))
        pairs = list(zip(seen, [(None, 0.0), *seen]))
        begun = max(at for (each, at), (former, _) in pairs if is_first_of_a_wait(each, former))
        moved = max(at for (each, at), (former, _) in pairs if has_moved(each, former))
        assert wait.is_long(sight, now) == (sight.is_waiting and now - begun >= 1.0 and now - moved < STILL_SECONDS)


def is_first_of_a_wait(sight: Sight, former: Sight | None) -> bool:
    return former is None or former.waits != sight.waits or not sight.is_waiting


def has_moved(sight: Sight, former: Sight | None) -> bool:
    return former is None or sight.is_inside or sight.counts != former.counts


def test_a_program_that_waits_for_rows_shows_epoch_rows_and_records(line: Recorded) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.exchange().map(lambda x: x).probe()
        end = clock.monotonic() + 30

        def goes_on() -> bool:
            numbers.send(1)
            numbers.advance_to(numbers.time[0] + 1)
            assert clock.monotonic() < end, line.shown
            return not any("rows taken in" in text for text in line.shown)

        worker.step_while(goes_on)

    execute(program, Config(quiet_seconds=0.05))
    shown = next(text for text in line.shown if "rows taken in" in text)
    assert shown.startswith("timely: computing: epoch "), shown
    assert shown.endswith(" records/s"), shown
    assert line.ended


def test_a_long_activation_is_shown_and_the_program_itself_is_not(line: Recorded) -> None:
    def until(condition: Any) -> None:
        end = clock.monotonic() + 30
        while not condition():
            assert clock.monotonic() < end, line.shown
            clock.sleep(0.01)

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).inspect(lambda _: until(lambda: line.shown))
        worker.step_while(lambda: bool(worker.dataflows))
        until(lambda: line.ended)  # while the program computes itself, the line goes away

    execute(program, Config(quiet_seconds=0.05))
    assert line.shown[0].startswith("timely: computing: ")


def test_a_program_that_waits_for_something_else_shows_nothing(line: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "STILL_SECONDS", 0.02)
    looks: list[float] = []
    sight_of = waiting.sight_of
    monkeypatch.setattr(waiting, "sight_of", lambda worker, now: looks.append(now) or sight_of(worker, now))

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, _ = new_input(scope)
        end = clock.monotonic() + 30
        while len(looks) < 20:
            assert clock.monotonic() < end, looks
            worker.step_or_park(0.05)
        numbers.close()

    execute(program, Config(quiet_seconds=0.05))
    assert line.shown == []


def program_of(module: str) -> Any:
    def program(worker: Worker) -> None:
        pass

    program.__module__ = module
    return program


@pytest.mark.parametrize(
    ("is_terminal", "settings", "module", "is_shown"),
    [
        (True, {}, "__main__", True),
        (False, {}, "__main__", False),
        (True, {"quiet_seconds": 0}, "__main__", False),
        (False, {"quiet_seconds": 5}, "__main__", True),
        (True, {"processes": 2, "process": 1, "addresses": ("ipc:///tmp/a", "ipc:///tmp/b")}, "__main__", False),
        (True, {}, "differential.session.engine", False),
        (True, {}, "differential.jobs.entry", False),
    ],
)
def test_it_is_shown_on_terminals_or_where_it_is_asked_for(
    is_terminal: bool, settings: dict[str, Any], module: str, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = io.StringIO()
    monkeypatch.setattr(error, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", error)
    block = progress_line(Config(**settings), program_of(module))
    assert isinstance(block, ProgressLine if is_shown else nullcontext)


@pytest.mark.parametrize("error", [None, object()])
def test_without_a_standard_error_nothing_is_shown(error: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", error)
    assert isinstance(progress_line(Config(), program_of("__main__")), nullcontext)


def test_the_time_is_a_setting() -> None:
    assert Config.from_environ({"TIMELY_QUIET_SECONDS": "2.5"}).quiet_seconds == 2.5
    with pytest.raises(ConfigError, match="quiet_seconds must be positive, or 0 for no progress"):
        Config(quiet_seconds=-1)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("command", [["-n", "2"], []])
def test_a_loop_is_shown_on_the_terminal_of_the_command(command: list[str], tmp_path: Path) -> None:
    script = tmp_path / "chain.py"
    script.write_text(
        "import numpy as np\nfrom differential import Collection, new_input\nfrom differential.graphs import bfs\n"
        "from timely import execute\n"
        "def program(worker):\n"
        "    with worker.dataflow() as scope:\n"
        "        edges, graph = new_input(scope)\n"
        "        probe = bfs(graph, Collection.of(scope, 0)).probe()\n"
        "    if worker.index == 0:\n"
        "        edges.insert(np.arange(10**7), np.arange(10**7) + 1)\n"
        "    edges.close()\n    worker.step_while(lambda: not probe.done())\n"
        "execute(program)\n"
    )
    wanted = rb"\[0\] timely: computing: epoch 0, round [\d,]+" if command else rb"epoch 0, round [\d,]+"
    on_a_terminal([sys.executable, "-m", "timely", "run", *command, str(script)], wanted, 60)
