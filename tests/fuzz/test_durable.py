"""A few random programs of durable collections. `python -m tests.fuzz.durable` runs more."""

from __future__ import annotations

from typing import Any

import pytest

from differential.durable.writer import Writer
from tests.fuzz.durable.__main__ import main
from tests.fuzz.durable.running import Case


@pytest.mark.parametrize("seed", range(2))
def test_what_is_durable_is_what_its_twin_has(seed: int) -> None:
    Case(seed).run()


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(100, 140, 10))
def test_many_programs_make_durable_what_their_twins_have(seed: int) -> None:
    for each in range(seed, seed + 10):
        Case(each).run()


def test_a_program_that_loses_a_change_is_printed_with_its_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forgetful(self: Writer, upper: int, batches: Any, *rest: Any, append: Any = Writer.append, **how: Any) -> None:
        append(self, upper, [] if self.manifest.role == "output" else batches, *rest, **how)

    monkeypatch.setattr(Writer, "append", forgetful)
    assert main(["--cases", "4", "--seed", "1"]) == 1
    printed = capsys.readouterr()
    assert "programs from seed 1: " in printed.out
    assert " as of " in printed.err
    assert "'answers': " in printed.err
