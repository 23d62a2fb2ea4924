"""What the upgrade prints: the figures of a run, and a line of progress below other output."""

from __future__ import annotations

import sys

import pytest

from tests.examples_loading import example_module

upgrade = example_module("upgrade")
report = example_module("upgrade_report")

ANSWERS = {"edges": 7, "components": {"count": 3, "largest": 5}, "watch": {"perl": 1234}, "top": [["libc6", 4]]}


def test_the_latency_of_a_step_is_its_share_of_the_batch() -> None:
    run = report.Report()
    run.passed(0, 0, 9.0)
    run.passed(1, 3, 0.006)
    run.passed(4, 4, 0.008)
    assert run.steps == 4
    assert run.initial_seconds == 9.0
    assert run.step_seconds == pytest.approx(0.014)
    assert run.latency() == pytest.approx({"median": 2.0, "p95": 7.1, "p99": 7.82, "max": 8.0})


def test_a_run_without_steps_has_no_latency() -> None:
    run = report.Report(initial=ANSWERS, final=ANSWERS)
    assert set(run.latency().values()) == {0.0}
    assert "0 steps with 0 updates in 0.0 s: 0 steps/s, 0 updates/s" in run.lines()


def test_answers_are_described_in_lines() -> None:
    assert list(report.described(ANSWERS)) == [
        "  edges       7",
        "  components  3, the largest of 5 packages",
        "  watch       1,234 packages depend on perl",
        "  top         libc6 4",
    ]


def test_progress_is_a_line_of_its_own_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    run = report.Report()
    run.passed(1, 10, 0.05)
    with report.Terminal(40) as terminal:
        assert not terminal.is_due()
        terminal.progress(run, ANSWERS)
        terminal.print("done")
    expected = "step 10 of 40 | 200 steps/s | 5.00 ms | components 3 | perl 1,234 | libc6 4\ndone\n"
    assert capsys.readouterr().out == expected


def test_progress_has_an_estimate_of_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    run = report.Report()
    run.passed(1, 10, 100.0)
    with report.Terminal(40) as terminal:
        terminal.progress(run, ANSWERS)
    assert capsys.readouterr().out.startswith("step 10 of 40 | about 5 min left | 0 steps/s | 10000.00 ms | ")


def test_progress_is_overwritten_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    run = report.Report()
    with report.Terminal(40) as terminal:
        terminal.progress(run, ANSWERS)
        terminal.print("a line")
        terminal.progress(run, ANSWERS)
    shown = "\rstep 0 of 40 | 0 st\x1b[K"
    assert capsys.readouterr().out == f"{shown}\r\x1b[Ka line\n{shown}\r\x1b[K"


@pytest.mark.parametrize(
    ("steps", "size", "check", "expected"),
    [
        (0, 5, 0, [(0, 0)]),
        (3, 1, 0, [(0, 0), (1, 1), (2, 2), (3, 3)]),
        (7, 3, 0, [(0, 0), (1, 3), (4, 6), (7, 7)]),
        (7, 100, 0, [(0, 0), (1, 7)]),
        (7, 3, 4, [(0, 0), (1, 3), (4, 4), (5, 7)]),
        (9, 4, 4, [(0, 0), (1, 4), (5, 8), (9, 9)]),
    ],
)
def test_batches_end_at_the_steps_to_check(steps: int, size: int, check: int, expected: list[tuple[int, int]]) -> None:
    assert list(upgrade.batches(steps, size, check)) == expected
