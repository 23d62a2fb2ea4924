"""The output of several processes on one terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest

from timely.run.terminal import Lines, Raw, Terminal


class Output(io.BytesIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def shown(steps: list[tuple[int, bytes]], is_terminal: bool = False, pause: float = 0.0) -> bytes:
    """Return what is shown when processes 0 and 1 write in this order, with a pause after each."""
    output = Output(is_terminal)
    terminal = Terminal(output)
    processes = [Lines(b"[0] ", terminal), Lines(b"[1] ", terminal)]
    now = 0.0
    for process, text in steps:
        processes[process].feed(text, now)
        now += pause
        for lines in processes:
            lines.release(now)
    for lines in processes:
        lines.release(now, 0.0)
    return output.getvalue()


@pytest.mark.parametrize("is_terminal", [False, True])
def test_every_line_has_its_prefix(is_terminal: bool) -> None:
    assert shown([(0, b"a\nb\n"), (1, b"\nc\r\n")], is_terminal) == b"[0] a\n[0] b\n[1] \n[1] c\n"


def test_lines_are_kept_whole() -> None:
    assert shown([(0, b"a"), (1, b"b\n"), (0, b"c\n")]) == b"[1] b\n[0] ac\n"


def test_a_prompt_shows_after_a_moment_and_its_line_goes_on() -> None:
    assert shown([(0, b"name? "), (0, b"bob\n")], pause=1) == b"[0] name? bob\n"


def test_other_output_goes_on_a_line_of_its_own() -> None:
    assert shown([(0, b"name? "), (1, b"x\n"), (0, b"bob\n")], pause=1) == b"[0] name? \n[1] x\n[0] bob\n"


def test_the_end_of_a_line_that_others_ended_is_not_shown_again() -> None:
    assert shown([(0, b"50 %"), (1, b"x\n"), (0, b"\n")], pause=1) == b"[0] 50 %\n[1] x\n"


@pytest.mark.parametrize("pause", [0, 1])
def test_progress_is_overwritten_on_a_terminal(pause: float) -> None:
    steps = [(0, b"\r1 of 2"), (0, b"\r2 of 2"), (0, b"\n")]
    assert shown(steps, True, pause) == b"[0] 1 of 2\r\x1b[K[0] 2 of 2\n"


@pytest.mark.parametrize("pause", [0, 1])
def test_progress_goes_on_lines_of_its_own_in_a_file(pause: float) -> None:
    steps = [(0, b"1 of 2\r"), (0, b"2 of 2\r"), (0, b"\n")]
    assert shown(steps, False, pause) == b"[0] 1 of 2\n[0] 2 of 2\n"


def test_raw_output_is_passed_on_byte_for_byte() -> None:
    output = Output(True)
    raw = Raw(Terminal(output))
    for data in (b"PAR1\r\n\r", b"\x00no end"):
        raw.feed(data, 0.0)
        raw.release(1.0)
    assert output.getvalue() == b"PAR1\r\n\r\x00no end"


def test_a_very_long_line_is_not_held_back_for_ever() -> None:
    assert shown([(0, b"x" * 70_000)]) == b"[0] " + b"x" * 70_000


def test_an_output_that_takes_a_few_bytes_at_a_time_gets_all() -> None:
    class Narrow(Output):
        def write(self, data: Any) -> int:
            return super().write(data[:3])

    output = Narrow(False)
    Lines(b"[0] ", Terminal(output)).feed(b"one line\nanother\n", 0.0)
    assert output.getvalue() == b"[0] one line\n[0] another\n"


def test_a_closed_output_is_noticed() -> None:
    class Closed(Output):
        def write(self, data: object) -> int:
            raise BrokenPipeError

    terminal = Terminal(Closed(False))
    Lines(b"[0] ", terminal).feed(b"a\n", 0.0)
    assert isinstance(terminal.trouble, BrokenPipeError)
