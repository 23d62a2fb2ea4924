"""`python -m benchmarks --seeds`: pictures of recorded figures, the table, and what a failure looks like."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from benchmarks import (
    allreduce,
    barrier,
    exchange,
    exposures,
    machine,
    peers,
    progress_traffic,
    queries,
    recovery,
    scratch,
    shared_traces,
    sliding,
    upgrade,
    wordcount,
)
from benchmarks.__main__ import main
from benchmarks.harness import Case, CaseFailed
from benchmarks.incremental import INITIAL, SINGLE_MEDIAN
from benchmarks.seeds import command
from benchmarks.seeds.command import EXPERIMENTS
from benchmarks.seeds.experiment import Experiment, Recorded, compact, duration
from benchmarks.seeds.style import METADATA, SETTINGS, apart, distribution, save

NEEDS_MATPLOTLIB = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="draws")
MACHINE = "a machine"
EACH = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)


def values(*, count: int, least: float, most: float) -> list[float]:
    return np.random.default_rng(count).uniform(least, most, count).tolist()


def returned(case: Case) -> dict[str, Any]:
    """Return small figures of the form that the function of a case returns."""
    given = case.parameters
    match case.workload:
        case "barrier":
            return {barrier.EACH: values(count=50, least=4.0, most=900.0)}
        case "exchange":
            names = (exchange.RATE, exchange.ROUND)
            return {exchange.BATCH: [*map(float, given["batches"])]} | {
                name: values(count=len(given["batches"]), least=1.0, most=90.0) for name in names
            }
        case "allreduce":
            names = [f"{method} {unit}" for method in allreduce.METHODS for unit in ("ms", "bytes")]
            return {allreduce.SIZE: [*map(float, given["sizes"])]} | {
                name: values(count=len(given["sizes"]), least=1.0, most=90.0) for name in names
            }
        case "progress_traffic":
            ways = (progress_traffic.UNBATCHED, *progress_traffic.WAYS)
            return {f"{way}, {unit}": 10.0 for way in ways for unit in ("messages", "kB")} | {
                progress_traffic.DATA: 7.0
            }
        case "wcc" | "bfs":
            return {INITIAL: 2.0 / (1 + case.processes)}
        case "wordcount":
            return {wordcount.RATE: 3.0 * case.workers}
        case "scratch":
            tools = [name.format(tool) for name in (scratch.BUILT, scratch.AT_HAND) for tool in ("igraph", "networkx")]
            return dict.fromkeys((scratch.OURS, scratch.CHANGE, scratch.SCIPY, *tools), 0.01)
        case "pagerank":
            return {INITIAL: 0.2, SINGLE_MEDIAN: 300.0}
        case "peers":
            return {f"pathway: {peers.INITIAL}": 4.0, f"pathway: {peers.MEDIAN}": 3000.0}
        case "exposures":
            return {exposures.EACH: values(count=given["epochs"], least=1.0, most=2.0)}
        case "recovery":
            return {recovery.EACH: values(count=given["epochs"], least=1.0, most=9.0), recovery.RESTART: [0.5]}
        case "queries":
            kinds = {kind: values(count=20, least=1.0, most=90.0) for kind in queries.KINDS}
            return {queries.DUE: [*map(float, range(20))]} | kinds
        case "sliding":
            names = (sliding.EACH, sliding.EACH_DIFFERENCES)
            return {name: values(count=given["slides"], least=1.0, most=90.0) for name in names}
        case "shared_traces":
            return {shared_traces.EACH: values(count=5, least=1.0, most=9.0), shared_traces.BYTES: [1e6]}
        case "upgrade":
            answers = {name: values(count=10, least=1.0, most=90.0) for name in upgrade.ANSWERS}
            steps = {upgrade.STEPS: [10.0 * step for step in range(1, 11)], upgrade.INITIAL: [1.0]}
            return {upgrade.EACH: values(count=100, least=1.0, most=90.0)} | steps | answers
    raise AssertionError(f"nothing is recorded of {case.workload}")


def recorded(experiment: Experiment, full: bool = False, without: str = "") -> Recorded:
    cases = experiment.cases(full)
    runs = {case.name: [returned(case)] * 2 for case in cases if case.name != without}
    return Recorded(runs, {case.name: case.parameters for case in cases})


@pytest.mark.lengthy
@NEEDS_MATPLOTLIB
@EACH
@pytest.mark.parametrize("full", [False, True])
def test_a_picture_has_axes_with_titles_and_units(experiment: Experiment, full: bool) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(layout="constrained")
        experiment.draw(figure, recorded(experiment, full))
        figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.lines
        below, beside = axes.get_shared_x_axes().get_siblings(axes), axes.get_shared_y_axes().get_siblings(axes)
        assert any(each.get_xlabel() for each in below)
        assert any(each.get_ylabel() for each in beside)


@pytest.mark.lengthy
@NEEDS_MATPLOTLIB
@EACH
def test_the_same_figures_give_the_same_file(experiment: Experiment, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        save(experiment, recorded(experiment), MACHINE, tmp_path / name)
    text = (tmp_path / "one.svg").read_bytes()
    assert text == (tmp_path / "two.svg").read_bytes()
    assert b"<dc:date>" not in text


@pytest.mark.lengthy
@NEEDS_MATPLOTLIB
@pytest.mark.parametrize("suffix", METADATA)
def test_a_picture_is_saved_in_each_format(suffix: str, tmp_path: Path) -> None:
    save(EXPERIMENTS[0], recorded(EXPERIMENTS[0]), MACHINE, tmp_path / f"picture{suffix}")
    assert (tmp_path / f"picture{suffix}").stat().st_size > 1000


def lacking() -> Iterator[Any]:
    for experiment in EXPERIMENTS:
        names = [case.name for case in experiment.cases(False)]
        for name in names if len(names) > 1 else ():
            yield pytest.param(experiment, name, id=f"{experiment.name} without {name}")


@pytest.mark.lengthy
@NEEDS_MATPLOTLIB
@pytest.mark.parametrize(("experiment", "name"), [*lacking()])
def test_a_case_that_failed_leaves_the_others_their_picture(experiment: Experiment, name: str) -> None:
    from matplotlib.figure import Figure

    experiment.draw(Figure(), recorded(experiment, without=name))
    assert experiment.rows(recorded(experiment, without=name))


@EACH
def test_each_case_calls_a_function_of_its_workload_with_its_parameters(experiment: Experiment) -> None:
    for full in (False, True):
        for case in experiment.cases(full):
            function = getattr(importlib.import_module(f"benchmarks.{case.workload}"), case.function)
            names = function.__code__.co_varnames[: function.__code__.co_argcount]
            is_open = bool(function.__code__.co_flags & 0x08)
            assert is_open or set(case.parameters) <= set(names), case


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("workload", "arguments", "lengths"),
    [
        (barrier, (50,), {barrier.EACH: 50}),
        (exchange, ([1, 10], 100, 30), {exchange.BATCH: 2, exchange.RATE: 2, exchange.ROUND: 2}),
        (allreduce, ([1, 10], 100, 30), {allreduce.SIZE: 2, "tree ms": 2, "data-parallel bytes": 2}),
        (exposures, (50, 10, 4, 3, 100), {exposures.EACH: 3}),
        (recovery, ("nothing", 50, 10, 4, 3, 100), {recovery.EACH: 3, recovery.RESTART: 1}),
        (queries, (50, 500, 100, 0.5), {queries.DUE: 3, "fresh": 3, "stale": 3}),
        (sliding, ("weak", 40, 3, 5, 4), {sliding.EACH: 4, sliding.EACH_DIFFERENCES: 4}),
        (shared_traces, (1000, 3, False), {shared_traces.EACH: 30, shared_traces.BYTES: 1}),
        (upgrade, (3,), {upgrade.EACH: 3, upgrade.STEPS: 3, "components": 3, upgrade.INITIAL: 1}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_workload_returns_every_figure(workload: Any, arguments: tuple[Any, ...], lengths: dict[str, int]) -> None:
    series = workload.series(*arguments)
    assert {name: len(series[name]) for name in lengths} == lengths


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    def run_case(case: Case) -> Any:
        if case.name == "2 processes":
            raise CaseFailed("2 processes: ended with status 1\nTraceback\n  ...\nOSError: no sockets\n")
        return returned(case)

    monkeypatch.setattr("benchmarks.harness.run_case", run_case)
    monkeypatch.setattr("benchmarks.__main__.stale", lambda: None)
    monkeypatch.setattr("benchmarks.__main__.compile_kernels", lambda report: None)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--seeds", *arguments])
    return main()


@pytest.mark.lengthy
@NEEDS_MATPLOTLIB
def test_a_failure_is_a_line_and_what_was_recorded_can_be_drawn_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    document, pictures, again = tmp_path / "figures.json", tmp_path / "pictures", tmp_path / "again"
    arguments = "--only", "barrier", "--only", "queries"
    assert run(monkeypatch, *arguments, "--plot", str(pictures), "--json", str(document)) == 1
    printed = capsys.readouterr()
    assert "barrier: 2 processes: ended with status 1: OSError: no sockets\n" in printed.err
    assert "cores; Python" in printed.out
    assert "4 processes" in printed.out
    assert "cores meanwhile" in printed.out
    assert "fresh: median / p95 / p99" in printed.out
    assert set(json.loads(document.read_text())["experiments"]) == {"barrier", "queries"}
    assert run(monkeypatch, *arguments, "--plot", str(again), "--from", str(document)) == 0
    assert sorted(path.name for path in again.iterdir()) == ["barrier.svg", "queries.svg"]
    for path in again.iterdir():
        assert path.read_bytes() == (pictures / path.name).read_bytes()


def test_libraries_that_are_missing_are_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda module: None)
    assert run(monkeypatch, "--only", "table-one") == 0
    printed = capsys.readouterr()
    assert "table-one: not installed, so not measured: igraph, networkx, pathway; pip install '.[peers]'" in printed.err
    assert "Pathway" not in printed.out
    assert "this library, after one change" in printed.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--only", "no such"], "no experiment has a name that contains 'no such'; there are barrier, exchange,"),
        (["--from", "/no such/file"], "there is no such file"),
        (["--json", "/no such/file"], "there is no directory /no such"),
    ],
)
def test_what_cannot_be_measured_is_reported_at_once(
    arguments: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *arguments) == 2
    assert complaint in capsys.readouterr().err


def test_a_directory_of_pictures_is_no_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    assert run(monkeypatch, "--plot", str(tmp_path / "file")) == 2
    assert "is a file: --seeds draws into a directory" in capsys.readouterr().err


@given(st.lists(st.tuples(st.floats(-100, 400), st.floats(5, 40)), max_size=8), st.floats(-50, 50))
def test_labels_do_not_overlap_and_keep_their_order(labels: list[tuple[float, float]], floor: float) -> None:
    heights, sizes = [height for height, _ in labels], [size for _, size in labels]
    moved = apart(heights, sizes, floor)
    order = sorted(range(len(labels)), key=heights.__getitem__)
    assert all(moved[index] - sizes[index] / 2 >= floor - 1e-6 for index in order)
    for lower, upper in pairwise(order):
        assert moved[upper] - moved[lower] >= (sizes[upper] + sizes[lower]) / 2 - 1e-6


def test_labels_that_have_room_stay_where_they_are() -> None:
    assert apart([50.0, 10.0, 30.0], [10.0, 10.0, 10.0], 0.0) == [50.0, 10.0, 30.0]


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=50))
def test_a_distribution_ends_with_the_largest_value(values: list[float]) -> None:
    points, shares = distribution(np.array(values))
    assert shares[0] == 0
    assert shares[-1] == 1
    assert points[0] == min(values)
    assert points[-1] == max(values)
    assert (np.diff(points) >= 0).all()


@pytest.mark.parametrize(("figure", "text"), [(1, "1"), (1500, "1.5 k"), (1e6, "1 M")])
def test_ticks_are_compact(figure: float, text: str) -> None:
    assert compact(figure) == text


@pytest.mark.parametrize(("seconds", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4.2e-5, "42 µs")])
def test_durations_have_the_unit_in_which_they_are_easily_read(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the system does not report how busy it is")
def test_what_other_programs_use_is_measured() -> None:
    others, begun = machine.Others(), time.monotonic()
    # Until it has ended, a process that this one started counts as another program.
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        while not others.cores() and time.monotonic() < begun + 20:
            time.sleep(0.05)
        assert others.cores()
    finally:
        busy.kill()
        busy.wait()


def test_nothing_is_reported_of_a_system_that_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_busy", lambda: None)
    assert machine.Others().cores() is None
