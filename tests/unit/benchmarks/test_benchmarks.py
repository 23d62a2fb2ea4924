"""The benchmarks' own machinery: the graphs are the stated ones, and a wrong answer is never timed."""

from __future__ import annotations

import importlib
import json
import pathlib
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

from benchmarks import (
    bfs,
    cliffs,
    closure,
    degrees,
    frames,
    graphlinq,
    harness,
    loading,
    pagerank,
    scc,
    scratch,
    sssp,
    text as text_workload,
    triangles,
    wcc,
    wordcount,
)
from benchmarks.__main__ import BRIEFLY, WORKLOADS, main
from benchmarks.comparisons import COMPARISONS, Comparison
from benchmarks.graphs import Ints, RandomGraph, splitmix
from benchmarks.harness import Case, CaseFailed, Measured, Reference, WrongAnswer, medians, run_case
from benchmarks.incremental import INITIAL, SCIPY, SINGLE_MEAN, Definition, FromScratch, Session, measure
from benchmarks.table import break_even, table
from differential.graphs import (
    bfs as all_distances,
    cyclic_edges,
    pagerank as ranks,
    transitive_closure,
    weakly_connected_components,
)
from timely import Worker, execute_directly

ALGORITHMS: list[tuple[Definition, FromScratch]] = [
    (degrees.distribution, degrees.from_scratch),
    (bfs.definition, bfs.from_scratch),
    (weakly_connected_components, wcc.from_scratch),
    (cyclic_edges, scc.from_scratch),
    (ranks, pagerank.from_scratch),
    (transitive_closure, closure.from_scratch),
    (sssp.definition, sssp.from_scratch),
]
ALL_CASES: list[Case] = [
    case for workload in WORKLOADS for case in importlib.import_module(f"benchmarks.{workload}").CASES
]


def test_the_random_graph_is_the_stated_one() -> None:
    outputs = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    assert splitmix(np.arange(4)).tolist() == outputs
    source, target = RandomGraph(1000, 2).initial
    assert [*zip(source.tolist(), target.tolist())] == [
        (outputs[0] % 1000, outputs[1] % 1000),
        (outputs[2] % 1000, outputs[3] % 1000),
    ]


def test_changes_lead_from_one_graph_to_the_next() -> None:
    graph = RandomGraph(50, 100)
    source, target, diff = graph.changes(0, 30)
    pairs = {}
    for side, sign in ((graph.initial, 1), (graph.after(30), -1)):
        for edge in zip(*(column.tolist() for column in side)):
            pairs[edge] = pairs.get(edge, 0) + sign
    for *edge, count in zip(source.tolist(), target.tolist(), diff.tolist()):
        pairs[tuple(edge)] = pairs.get(tuple(edge), 0) + count
    assert not any(pairs.values())


@pytest.mark.parametrize(("definition", "from_scratch"), ALGORITHMS)
def test_a_right_answer_gives_figures(definition: Definition, from_scratch: FromScratch) -> None:
    figures = measure(definition, from_scratch, RandomGraph(100, 150), 5, 1)
    assert len(figures) == 8
    assert all(figure > 0 for name, figure in figures.items() if not name.startswith("peak"))


@pytest.mark.parametrize(("definition", "from_scratch"), ALGORITHMS)
def test_a_wrong_answer_gives_none(definition: Definition, from_scratch: FromScratch) -> None:
    def without_an_edge(source: Ints, target: Ints, nodes: int) -> tuple[Ints, ...]:
        first, *others = from_scratch(source, target, nodes)
        return first + (np.arange(len(first)) == 0), *others

    with pytest.raises(WrongAnswer, match="wrong after 0 changes"):
        measure(definition, without_an_edge, RandomGraph(100, 150), 0, 0)


def test_a_lost_change_is_found_at_the_end() -> None:
    class Forgetful(RandomGraph):
        def changes(self, first: int, count: int) -> tuple[Ints, Ints, Ints]:
            return super().changes(first + 1, count)

    with pytest.raises(WrongAnswer, match="wrong after 3 changes"):
        measure(weakly_connected_components, wcc.from_scratch, Forgetful(100, 60), 3, 0)


def test_a_session_waits_until_its_answer_has_followed() -> None:
    def program(worker: Worker) -> None:
        session = Session(worker, lambda edges: all_distances(edges, edges.map(lambda *_: 0).distinct()), PATH)
        assert session.load() > 0
        assert session.fingerprint.records == 3
        session.change(1)
        assert session.fingerprint.records == 2
        session.close()

    execute_directly(program)


class Path:
    """0 -> 1 -> 2, of which the second edge is removed."""

    nodes = 3
    initial = np.array([0, 1]), np.array([1, 2])

    def changes(self, first: int, count: int) -> tuple[Ints, Ints, Ints]:
        return np.array([1]), np.array([2]), np.array([-1])

    def after(self, changes: int) -> tuple[Ints, Ints]:
        return np.array([0]), np.array([1])


PATH = Path()


@pytest.mark.parametrize(
    ("workload", "parameters", "figure"),
    [
        ("allreduce", (100, 3), "tree ms"),
        ("barrier", (50,), "median us"),
        ("bulk", (1000, 100), "results of the join/s"),
        *(("cliffs", (name, 100, 1000, 10, 1), "1 at once, p99, us") for name in cliffs.DEFINITIONS),
        ("construction", (3, 10, 2), "build CPU s"),
        ("exchange", (100, 5), "M records/s"),
        ("exposures", (50, 10, 4, 3, 100), "tweets/s"),
        *(("frames", (kind, 1000), "in, M rows/s") for kind in (*frames.KINDS, *frames.LIBRARIES)),
        *(("graphlinq", (name, 100, 300), "second run s") for name in graphlinq.DEFINITIONS),
        *(("loading", (name, 100, 1000), "M rows/s") for name in loading.FORMATS),
        pytest.param("listeners", ("operators", 1, 0.05), "page open, ratio", marks=pytest.mark.lengthy),
        ("logging", ("barrier", 2, 20), "everything, us"),
        *(("memory", (kind, 20), "us an epoch") for kind in ("rows", "texts")),
        ("queries", (50, 500, 100, 0.2), "stale, median ms"),
        ("rounds", ("bfs", 100, 300, 10), "10 rounds, ms"),
        *(("scratch", (name, 100, 2000, 3), "SciPy s") for name in scratch.QUESTIONS),
        *(("shared_traces", (1000, 3, private), "install, median ms") for private in (False, True)),
        *(("sliding", (name, 40, 3, 5, 4), "median differences of a slide") for name in ("weak", "strong")),
        *(
            pytest.param("text", (name, "words", 200, 600), "1 change ratio", marks=pytest.mark.lengthy)
            for name in text_workload.ALGORITHMS
        ),
        *(("text", ("wcc", naming, 200, 600), "initial ratio") for naming in ("long names", "far integers")),
        *(("triangles", (30, 300, name, 3, 1), "initial s") for name in triangles.ALGORITHMS),
        ("unionfind", (100, 90, 10), "M edges/s"),
        pytest.param("upgrade", (3,), "median ms a step", marks=pytest.mark.lengthy),
        ("wordcount", (2000, 100, 4, 1), "M words/s"),
        ("wordcount", (2000, 100, 4, 1, True), "M words/s"),
    ],
)
def test_a_workload_runs_and_checks_itself(workload: str, parameters: tuple[Any, ...], figure: str) -> None:
    assert importlib.import_module(f"benchmarks.{workload}").measure(*parameters)[figure] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "figure"),
    [
        (Case("wire", "wire", {"size": 4096, "batches": 20, "laps": 1}, processes=2), "share of bare sockets"),
        (
            Case("breakdown", "breakdown", {"algorithm": "bfs", "nodes": 100, "edges": 300, "changes": 20}),
            "  progress, us",
        ),
    ],
)
def test_a_case_runs_in_processes_of_its_own(case: Case, figure: str) -> None:
    assert run_case(case)[figure] > 0


@pytest.mark.slow
def test_a_case_that_cannot_run_reports_why() -> None:
    with pytest.raises(CaseFailed, match=r"(?s)wrong: ended with status .*no such algorithm"):
        run_case(Case("wrong", "breakdown", {"algorithm": "no such algorithm", "nodes": 10, "edges": 30}))


def test_totals_are_those_of_a_counter() -> None:
    totals, expected = wordcount.Totals(), Counter[bytes]()
    for words in (["b", "to", "exactly8"], ["a", "to", "longer than that"], ["longer than that", "zzz", "b"], ["c"]):
        counts = np.arange(1, len(words) + 1)
        totals.add(np.array(words, "S"), counts)
        expected.update(dict(zip(map(str.encode, words), counts.tolist())))
    assert dict(totals.items()) == expected


def test_no_two_cases_have_the_same_name_and_each_begins_with_its_workload() -> None:
    assert len({case.name for case in ALL_CASES}) == len(ALL_CASES)
    assert all(case.name.startswith(case.workload) for case in ALL_CASES)


def test_a_few_cases_run_without_arguments() -> None:
    assert {case.name for case in ALL_CASES if case.quick and not case.needs} >= set(BRIEFLY)


def test_the_help_describes_each_workload_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--help"])
    with pytest.raises(SystemExit):
        main()
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    described = {line[0]: line[1] for line in lines if len(line) == 2 and line[0] in WORKLOADS}
    assert described.keys() == set(WORKLOADS)
    assert all(text[0].isupper() or text[0] == "k" for text in described.values())
    assert all(text.endswith((".", "`.")) for text in described.values())


def test_help_needs_nothing_and_measuring_names_what_it_needs() -> None:
    without = "import sys, runpy; sys.modules.update(pyarrow=None, scipy=None); "
    for arguments, status, shown in (
        ("'--help'", 0, "usage: "),
        ("'--only', 'degrees'", 2, "needs scipy: pip install"),
    ):
        program = (
            f"{without}sys.argv = ['benchmarks', {arguments}]; runpy.run_module('benchmarks', run_name='__main__')"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert (ended.returncode, shown in ended.stdout + ended.stderr) == (status, True), ended


def test_cases_of_several_names_are_measured_in_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def run_all(cases: list[Case], *_: object) -> Measured:
        measured.extend(case.name for case in cases)
        return Measured({}, [], interrupted=False)

    monkeypatch.setattr("benchmarks.__main__.run_all", run_all)
    monkeypatch.setattr("benchmarks.__main__.stale", lambda: None)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "barrier", "--only", "degrees"])
    assert main() == 0
    assert {"barrier" in name for name in measured} == {True, False}
    assert all("barrier" in name or "degrees" in name for name in measured)


def test_comparisons_are_of_existing_cases() -> None:
    names = {case.name for case in ALL_CASES}
    assert all({each.base, each.case} <= names for each in COMPARISONS)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--only", "no such"], "has a name that contains 'no such'"),
        (["--only", "no such", "--only", "nor this"], "has a name that contains 'no such' or 'nor this'"),
        (["--only", "bfs 1M"], "--full includes larger cases"),
        (["--only", "barrier", "--json", "/no such/file"], "there is no directory /no such"),
    ],
)
def test_an_impossible_measurement_or_output_file_is_reported_at_once(
    arguments: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    assert main() == 2
    assert complaint in capsys.readouterr().err


def test_a_comparison_is_a_speed_up_or_an_exponent() -> None:
    results = {"one": {"s": 2.0}, "two": {"s": 1.0}, "large": {"s": 200.0}}
    assert Comparison("", "s", "one", "two", target=1.6).of(results) == 2.0
    assert Comparison("", "s", "one", "two", is_rate=True).of(results) == 0.5
    assert Comparison("", "s", "one", "large", growth=10.0).of(results) == pytest.approx(2.0)
    assert Comparison("", "s", "one", "gone").of(results) is None
    assert not Comparison("", "s", "one", "two", target=1.6).is_met(1.5)


@pytest.mark.parametrize("nothing", [0.0, -3.0])
def test_a_figure_of_zero_or_less_is_not_compared(nothing: float) -> None:
    results = {"one": {"peak": 5.0}, "two": {"peak": nothing}}
    assert Comparison("", "peak", "one", "two", growth=10.0).of(results) is None
    assert Comparison("", "peak", "two", "one").of(results) is None


def test_the_table_marks_missed_targets() -> None:
    references = {"a s": Reference(2.0, 0.5), "b/s": Reference(20.0, 2.0), "c s": Reference(1.0)}
    case = Case("case", "bfs", {}, references=references, limits={"d s": 3.0})
    lines = table([case], {"case": {"a s": 1.5, "b/s": 50.0, "c s": 7.0, "d s": 3.0, "e s": 1.0}}, peers=False)
    assert [line.split() for line in lines.splitlines()[1:]] == [
        ["case", "a", "s", "1.5", "2", "0.75", "<=", "1", "missed"],
        ["b/s", "50", "20", "2.50", ">=", "40"],
        ["c", "s", "7", "1", "7.00"],
        ["d", "s", "3", "<=", "3"],
        ["e", "s", "1"],
    ]


@pytest.mark.parametrize(
    ("mean_us", "shown"), [(500_000.0, "4 changes"), (1_000_000.0, "never"), (999_999.5, "4,000,000 changes")]
)
def test_running_scipy_anew_is_slower_after_so_many_changes(mean_us: float, shown: str) -> None:
    assert break_even({INITIAL: 3.0, SCIPY: 1.0, SINGLE_MEAN: mean_us}) == shown


def test_medians_are_taken_figure_by_figure() -> None:
    assert medians([{"a": 1.0, "b": 9.0}, {"a": 3.0, "b": 8.0}, {"a": 2.0, "b": 7.0}]) == {"a": 2.0, "b": 8.0}


def test_a_case_that_fails_does_not_cost_the_others_their_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(case: Case) -> dict[str, float]:
        if case.name == "bad":
            raise CaseFailed("bad: went wrong")
        return {"s": 1.0}

    monkeypatch.setattr(harness, "run_case", run)
    cases = [Case(name, "bfs", {}) for name in ("first", "bad", "last")]
    measured = harness.run_all(cases, 2, lambda text: None)
    assert measured.results == {"first": [{"s": 1.0}] * 2, "last": [{"s": 1.0}] * 2}
    assert [str(failure) for failure in measured.failures] == ["bad: went wrong"]
    assert not measured.interrupted


def test_figures_measured_before_an_interrupt_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    ran: list[str] = []

    def run(case: Case) -> dict[str, float]:
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(case.name)
        return {"s": 1.5}

    document = tmp_path / "figures.json"
    monkeypatch.setattr(harness, "run_case", run)
    monkeypatch.setattr("benchmarks.__main__.stale", lambda: None)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "barrier", "--json", str(document)])
    assert main() == 130
    printed = capsys.readouterr()
    assert all(name in printed.out for name in ran)
    assert "median of up to 3 runs" in printed.out
    assert f"run 1 of 3: {ran[0]}\nrun 1 of 3: {ran[1]}\nrun 1 of 3: " in printed.err
    assert "interrupted: 2 cases had been measured" in printed.err
    assert [case["name"] for case in json.loads(document.read_text())["cases"]] == ran
