"""`python -m benchmarks.growth`: the sizes it measures, and what it prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from benchmarks import growth
from benchmarks.harness import Case, CaseFailed, Figures, Measured
from benchmarks.incremental import BATCH, INITIAL, SCIPY, SINGLE_MEDIAN

PICTURE = Path("picture.svg")


def run(
    monkeypatch: pytest.MonkeyPatch, failures: Sequence[CaseFailed] = ()
) -> tuple[int, list[tuple[Sequence[Case], Mapping[str, Figures], Path]]]:
    drawn = []

    def run_all(cases: Sequence[Case], runs: int, report: Callable[[str], None]) -> Measured:
        figures = {INITIAL: 2.0, SCIPY: 1.0, SINGLE_MEDIAN: 400.0, BATCH: 20.0}
        return Measured({case.name: [figures] * runs for case in cases}, failures, interrupted=False)

    monkeypatch.setattr(growth, "run_all", run_all)
    monkeypatch.setattr(growth, "draw", lambda *drawing: drawn.append(drawing))
    monkeypatch.setattr("sys.argv", ["growth", str(PICTURE)])
    return growth.main(), drawn


def test_the_figures_of_three_sizes_are_printed_in_seconds_and_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, ((cases, figures, file),) = run(monkeypatch)
    assert status == 0
    assert [case.parameters["edges"] for case in cases] == [100_000, 1_000_000, 10_000_000]
    assert set(figures) == {case.name for case in cases}
    assert file == PICTURE
    assert capsys.readouterr().out.splitlines() == [
        "first answer: 2, 2, 2 s",
        "from scratch, SciPy: 1, 1, 1 s",
        "one changed edge: 0.0004, 0.0004, 0.0004 s",
        "each of 1,000 changed edges: 2e-05, 2e-05, 2e-05 s",
    ]


def test_a_failed_run_draws_no_picture(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, [CaseFailed("wcc 1M/10M: no memory")]) == (1, [])
    assert "no memory" in capsys.readouterr().err
