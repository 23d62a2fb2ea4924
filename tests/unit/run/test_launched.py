"""What the launcher's processes do when they receive signals."""

from __future__ import annotations

import signal
import subprocess
import sys
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import timely.run.launched as launched
from timely.run.launched import Interrupts

SECONDS = 20.0


@pytest.fixture(autouse=True)
def former_handlers() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)
    handlers, hook = {number: signal.getsignal(number) for number in numbers}, sys.unraisablehook
    yield
    sys.unraisablehook = hook
    for number, handler in handlers.items():
        signal.signal(number, handler)


class Frame:
    """An object in whose destructor a signal arrives."""

    def __init__(self, signum: signal.Signals) -> None:
        self._signum = signum

    def __del__(self) -> None:
        signal.raise_signal(self._signum)


def wait() -> None:
    end = clock.monotonic() + SECONDS
    while clock.monotonic() < end:
        clock.sleep(0.01)


def outlive(signum: signal.Signals, lived: list[signal.Signals]) -> None:
    """Let a signal arrive in a destructor, and wait."""
    Frame(signum)
    lived.append(signum)
    wait()


@pytest.mark.parametrize(("signum", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_in_a_destructor_takes_effect_after_it(signum: signal.Signals, raised: type[BaseException]) -> None:
    interrupts = Interrupts()
    signal.signal(signal.SIGINT, interrupts.interrupt)
    signal.signal(signal.SIGTERM, interrupts.terminate)
    sys.unraisablehook = interrupts.send_ignored_again
    lived: list[signal.Signals] = []
    with pytest.raises(raised):
        outlive(signum, lived)
    assert lived == [signum]


@pytest.mark.parametrize(("signum", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_that_comes_while_an_ignored_one_is_sent_again_is_not_lost(
    signum: signal.Signals,
    raised: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    interrupts = Interrupts()
    signal.signal(signal.SIGINT, interrupts.interrupt)
    signal.signal(signal.SIGTERM, interrupts.terminate)
    sys.unraisablehook = interrupts.send_ignored_again
    original = launched.send_again

    def send_again(again: signal.Signals, may_raise: Callable[[], bool]) -> None:
        signal.raise_signal(signum)
        original(again, may_raise)
        clock.sleep(0.05)  # longer than until it is sent
        signal.raise_signal(signum)

    monkeypatch.setattr(launched, "send_again", send_again)
    lived: list[signal.Signals] = []
    with pytest.raises(raised):
        outlive(signum, lived)
    assert lived == [signum]
    assert capsys.readouterr().err == ""


def test_interrupts_that_follow_at_once_are_one() -> None:
    interrupts = Interrupts()
    with pytest.raises(KeyboardInterrupt):
        interrupts.interrupt(signal.SIGINT, None)
    interrupts.interrupt(signal.SIGINT, None)


def test_a_signal_to_end_that_comes_with_another_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    signal.signal(signal.SIGTERM, Interrupts().terminate)
    signal.signal(signal.SIGQUIT, Interrupts().terminate)
    sys.unraisablehook = sys.__unraisablehook__
    signals = {signal.SIGTERM, signal.SIGQUIT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    for signum in signals:
        signal.raise_signal(signum)
    with pytest.raises(SystemExit):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    assert capsys.readouterr().err == ""


def test_other_exceptions_in_destructors_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    sys.unraisablehook = sys.__unraisablehook__
    sys.unraisablehook = Interrupts().send_ignored_again

    class Broken:
        def __del__(self) -> None:
            raise ValueError("broken")

    Broken()
    assert "ValueError: broken" in capsys.readouterr().err


def test_a_script_is_compiled_without_the_future_statements_of_this_package(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("class Point:\n    x: int\nprint(Point.__annotations__)\n")
    run = "import sys; from timely.run.launched import run_target; sys.exit(run_target([sys.argv[1]], False, False))"
    ended = subprocess.run([sys.executable, "-c", run, script], capture_output=True, text=True, timeout=SECONDS)
    assert (ended.returncode, ended.stdout) == (0, "{'x': <class 'int'>}\n")


IN_A_CLASS = """
import signal
import subprocess
class Named:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.{signum})
class Holder:
    named = Named()
"""


@pytest.mark.parametrize(("signum", "status"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_while_a_class_is_made_ends_the_program_without_a_traceback(
    signum: str, status: int, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(IN_A_CLASS.format(signum=signum))
    handlers = "import sys; from timely.run.launched import handle_signals, run_target; handle_signals(); "
    run = "sys.exit(run_target([sys.argv[1]], False, False))"
    ended = subprocess.run(
        [sys.executable, "-c", handlers + run, script], capture_output=True, text=True, timeout=SECONDS
    )
    assert (ended.returncode, ended.stderr) == (status, "")


PRINTS = {
    "the script prints": "for number in range(100_000):\n    print(number)\n",
    "an operator prints": """
import timely
timely.example(lambda scope: scope.to_stream(range(100_000)).inspect(print))
""",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in PRINTS.items()])
def test_a_run_ends_quietly_once_nobody_reads_what_it_prints(text: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(text)
    command = [sys.executable, "-m", "timely", "run", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(SECONDS) == 128 + signal.SIGPIPE


def test_another_pipe_that_breaks_is_reported(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('begun')\nraise BrokenPipeError('of the program')\n")
    command = [sys.executable, "-m", "timely", "run", script]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert (ended.returncode, ended.stdout) == (1, "begun\n")
    assert ended.stderr.endswith("BrokenPipeError: of the program\n")
