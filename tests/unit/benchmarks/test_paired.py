"""Comparing two checkouts in turn: here each is this one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import turns
from benchmarks.harness import ROOT, Case
from benchmarks.incremental import BATCH, INITIAL, SINGLE_MEDIAN
from benchmarks.paired import Checkout, Compared, Player, compare, main

HERE = Checkout(ROOT, Path(sys.executable))
SMALL = Case("bfs 500/2500", "bfs", {"nodes": 500, "edges": 2500})


def test_the_ratio_is_the_median_of_the_pairs() -> None:
    compared = Compared.of("us", [(2.0, 1.0), (4.0, 3.0), (50.0, 50.0)])
    assert (compared.before, compared.after) == (4.0, 3.0)
    assert (compared.low, compared.ratio, compared.high) == (0.5, 0.75, 1.0)
    # Twice the rate takes half of the time.
    assert Compared.of("M records/s", [(10.0, 20.0)]).ratio == 0.5


@pytest.mark.lengthy
def test_a_graph_is_loaded_and_changed_in_turn() -> None:
    found = list(compare(SMALL, HERE, HERE, rounds=2, seconds=60))
    assert [(each.figure, each.pairs) for each in found] == [(INITIAL, 2), (SINGLE_MEDIAN, 2), (BATCH, 2)]
    assert all(each.before > 0 and each.after > 0 for each in found)


@pytest.mark.lengthy
def test_other_cases_run_as_a_whole() -> None:
    case = Case("bulk 1k rows", "bulk", {"rows": 1_000, "keys": 100})
    found = {each.figure: each for each in compare(case, HERE, HERE, rounds=5, seconds=0)}
    assert found["arrange s"].pairs == 1  # no other begins after the time


@pytest.mark.lengthy
def test_a_checkout_that_fails_is_named() -> None:
    unknown = Case("bfs 500/2500", "bfs", {"no": "parameters"})
    with pytest.raises(SystemExit, match=r"bfs 500/2500: ended with status 1"), Player.of(HERE, unknown):
        pass
    with Player.of(HERE, SMALL) as player:
        assert player.pieces == [turns.LOAD, turns.CHANGE, turns.BATCH]
        with pytest.raises(SystemExit, match=r"bfs 500/2500: ended with status 1"):
            player.take_turn("nothing known", 1)


def test_what_cannot_be_compared_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for given, complaint in (
        ([str(tmp_path), "--only", "bfs 100k/1M"], "is not a checkout: it has no benchmarks/incremental.py"),
        ([str(ROOT), "--only", "no such case"], "there is no case 'no such case'; there are degrees 100k/1M, "),
    ):
        monkeypatch.setattr(sys, "argv", ["paired", *given])
        with pytest.raises(SystemExit):
            main()
        assert complaint in capsys.readouterr().err
