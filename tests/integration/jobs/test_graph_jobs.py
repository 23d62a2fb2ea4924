"""Each graph job answers as another library does, initially and after changes, for every number of workers."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyarrow import parquet

from differential.jobs import run
from differential.jobs.input import blocks
from tests.integration.jobs.running import DEBIAN, ENRON, UPGRADE, head, job, outcome, write_changes, write_lines
from tests.integration.launcher.launching import ROOT
from timely.errors import DataError

JOBS = [
    "components",
    "cycles",
    "distances",
    "distances --from {a} --to {b} --to {c}",
    "distances --from {a} --from {b}",
    "pagerank --rounds 5",
    "pagerank --rounds 5 --tolerance 0.001 --damping 0.9",
    "kcore",
    "kcore --core 3",
    "triangles",
    "triangles --motif 0-1,1-2,2-3,3-0",
    "communities --rounds 4",
    "asp --landmarks 3",
    "asp --landmarks 5 --from {a} --from {b} --to {c}",
    "closure",
    "closure --same-generation",
    "degrees",
    "degrees --distribution --incoming",
    "colouring",
]
"""Questions, with nodes of the graph in braces."""

LARGE = ("closure", "triangles --motif")
"""What has answers so large that it is asked about few edges."""

PART = 1000
"""Of so many edges of a real graph processes ask what has large answers."""

QUICK = ("components", "distances", "asp", "degrees")
"""What is asked after a whole upgrade; all else after its first `STEPS` changed edges, which takes as long, and what
changes nearly everywhere (`DEAR`) after a tenth of these."""
STEPS = 3000
DEAR = ("pagerank", "kcore")


@pytest.fixture(scope="module", params=["names", "integers"])
def real(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[bool, tuple[Path, Path, list[str]]]:
    """Return a graph, its changes and three of its nodes, the last after the first: a large one, and a small one."""
    graphs = {}
    for is_small, count in ((False, 1500), (True, 150)):
        directory = tmp_path_factory.mktemp("graph")
        edges = head(DEBIAN if request.param == "names" else ENRON, directory / "graph.tsv", count)
        changes = write_changes(directory / "changes.tsv", edges, 30)
        (hub, _), *_ = Counter(target for _, target in edges).most_common()
        near = next(source for source, target in edges if target == hub)
        graphs[is_small] = directory / "graph.tsv", changes, [near, edges[0][0], hub]
    return graphs


@pytest.mark.lengthy
@pytest.mark.parametrize("question", JOBS)
def test_a_job_answers_as_another_library_does(question: str, real: dict[bool, tuple[Path, Path, list[str]]]) -> None:
    graph, changes, (a, b, c) = real[question.startswith(LARGE)]
    name, *arguments = question.format(a=a, b=b, c=c).split()
    initial, _ = outcome(name, [graph, *arguments])
    answers = [
        outcome(name, [graph, changes, "--batch", batch, *arguments], workers)
        for workers, batch in ((1, "1"), (2, "4"), (3, "1"))
    ]
    final = answers[0][0].answer
    for each, deltas in answers:
        assert [column.tolist() for column in each.answer.columns] == [column.tolist() for column in final.columns]
        added = Counter[tuple[int, ...]]()
        for _, delta in deltas:
            for *record, diff in zip(*(column.tolist() for column in delta.columns), delta.diffs.tolist()):
                added[tuple(record)] += diff
        records = zip(*(column.tolist() for column in final.columns))
        assert {key: count for key, count in added.items() if count} == dict(zip(records, final.counts.tolist()))
    assert len(initial.answer) or len(final), "an answer that is always empty tests nothing"


@pytest.mark.parametrize("question", JOBS)
def test_a_job_answers_about_a_skewed_graph(question: str) -> None:
    name, *arguments = question.format(a=0, b=1, c=2).split()
    found, _ = outcome(name, ["rmat:6,3,5", *arguments], 2)
    assert found.report.edges == 192


def test_lengths_of_edges_are_added_up(tmp_path: Path) -> None:
    for kind, lengths in (("whole", (2, 3, 9)), ("fractional", (0.5, 0.25, 1.5))):
        graph = write_lines(tmp_path / f"{kind}.tsv", zip("aba", "bcc", lengths))
        found, _ = outcome("distances", [graph, "--weighted", "--from", "a"])
        assert found.answer.columns[1].tolist() == [0, lengths[0], lengths[0] + lengths[1]]


def test_distances_beyond_the_precision_of_floats_are_exact_and_checked(tmp_path: Path) -> None:
    graph = write_lines(tmp_path / "graph.tsv", [("a", "b", 2**53 + 1), ("a", "b", 2**53 + 2), ("b", "c", 1)])
    found, _ = outcome("distances", [graph, "--weighted", "--from", "a"])
    assert found.answer.columns[1].tolist() == [0, 2**53 + 1, 2**53 + 2]


def test_a_mean_of_distances_near_the_largest_float_is_not_infinite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lengths = [("a", "b", 1e308), ("a", "c", 1.2e308), ("a", "d", 1.6e308)]
    graph = write_lines(tmp_path / "graph.tsv", lengths)
    plot = str(tmp_path / "plot.svg")
    assert run(job("distances"), [str(graph), "--weighted", "--from", "a", "--plot", plot]) == 0
    assert "distances: mean 9.5e+307, median 1.1e+308, largest 1.6e+308" in capsys.readouterr().out


def test_a_negative_length_is_reported_with_its_place_and_the_names_of_nodes(tmp_path: Path) -> None:
    graph = write_lines(tmp_path / "graph.tsv", [("a", "b", 3), ("b", "c", -2)])
    good = write_lines(tmp_path / "good.tsv", [("a", "b", 3)])
    changes = write_lines(tmp_path / "changes.tsv", [("+", "b", "c", 4), ("+", "c", "d", -1)])
    for given, message in (
        ([graph], "graph.tsv: b -> c has a negative length, -2"),
        ([good, changes], "changes.tsv, line 2: c -> d has a negative length, -1"),
    ):
        with pytest.raises(DataError, match=message):
            outcome("distances", [*given, "--weighted", "--from", "a"])


@pytest.mark.parametrize("weights", [(), (0.5,)])
def test_workers_start_at_the_first_edge_of_the_graph_and_count_each_rejected_line_once(
    weights: tuple[float, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 256)  # the first block has no edge, and the next one is another worker's
    rows = [*[("not", "integers", *weights)] * 24, *[(node, node + 1, *weights) for node in range(50, 90)]]
    text = write_lines(tmp_path / "graph.tsv", rows)
    packed = tmp_path / "graph.tsv.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    options = ["--integers", "--no-header", "--on-error", "skip", *(["--weighted"] if weights else [])]
    for graph in (text, packed):
        for workers in (1, 2, 3):
            found, _ = outcome("distances", [graph, *options], workers)
            assert (found.nodes["from"].tolist(), found.report.rejected) == ([50], 24)


def test_landmarks_may_be_the_least_integer(tmp_path: Path) -> None:
    least = -(1 << 63)
    graph = write_lines(tmp_path / "graph.tsv", [(least, 1), (2, least), (1, 3)])
    found, _ = outcome("asp", [graph, "--landmarks", "1"])
    assert [column.tolist() for column in found.answer.columns] == [[least], [least], [0]]


def test_a_table_without_records_has_the_types_of_one_with_records(tmp_path: Path) -> None:
    schemas = []
    for rows in ([], [("a", "b")]):
        graph = write_lines(tmp_path / "graph.tsv", [("from", "to"), *rows])
        table = tmp_path / "answer.parquet"
        assert run(job("components"), [str(graph), "--header", "--names", "--quiet", "--parquet", str(table)]) == 0
        schemas.append(parquet.read_schema(table))
    assert schemas[0] == schemas[1]


@pytest.mark.lengthy
def test_two_processes_answer_as_one(tmp_path: Path) -> None:
    edges = head(DEBIAN, tmp_path / "graph.tsv", 5000)
    write_changes(tmp_path / "changes.tsv", edges, 20)
    answers = []
    for processes in (1, 2):
        arguments = [
            tmp_path / "graph.tsv",
            tmp_path / "changes.tsv",
            "--check",
            "--csv",
            tmp_path / f"{processes}.csv",
        ]
        command = ["-m", "timely", "run", "-n", str(processes), "examples/components.py", *map(str, arguments)]
        done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=50)
        assert done.returncode == 0, done.stderr
        assert "5,000 edges" in done.stdout
        assert "the answer from scratch is the same" in done.stdout
        answers.append((tmp_path / f"{processes}.csv").read_text())
    assert answers[0] == answers[1]
    assert answers[0].startswith('"node","component"\n"0ad","0ad"\n')


WHOLE = ["components", "cycles", "distances --from {a}", "pagerank --tolerance 0.01", "kcore", "triangles",
         "communities --rounds 4", "asp", "degrees", "colouring"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("question", WHOLE)
def test_a_job_answers_about_a_whole_distribution_and_a_whole_company(question: str, tmp_path: Path) -> None:
    name, *arguments = question.format(a="perl").split()
    head(UPGRADE, tmp_path / "upgrade.tsv", 300)
    outcome(name, [DEBIAN, tmp_path / "upgrade.tsv", "--batch", "10", *arguments], 2)
    name, *arguments = question.format(a="0").split()
    edges = head(ENRON, tmp_path / "enron.tsv", 200_000)
    changes = write_changes(tmp_path / "changes.tsv", edges, 60)
    found, _ = outcome(name, [ENRON, changes, "--batch", "10", *arguments], 3)
    assert found.report.edges == 183_831


def processes_answer(processes: int, name: str, *arguments: str | Path) -> None:
    """Run a job on processes, which check its last answer from scratch."""
    command = ["-m", "timely", "run", "-n", str(processes), f"examples/{name}.py", *map(str, arguments), "--check"]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stderr
    assert "the answer from scratch is the same" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("question", JOBS)
def test_processes_answer_about_a_skewed_graph_and_its_changes(question: str, processes: int) -> None:
    name, *arguments = question.format(a=0, b=1, c=2).split()
    processes_answer(processes, name, "rmat:6,3,5", "replace:30", *arguments)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("question", JOBS)
def test_processes_answer_about_a_distribution_and_its_upgrade(question: str, processes: int, tmp_path: Path) -> None:
    graph, upgrade = DEBIAN, UPGRADE
    if question.startswith(LARGE):
        edges = head(DEBIAN, tmp_path / "part.tsv", PART)
        graph, upgrade = tmp_path / "part.tsv", write_changes(tmp_path / "changes.tsv", edges, 200)
    elif not question.startswith(QUICK):
        upgrade = tmp_path / "upgrade.tsv"
        head(UPGRADE, upgrade, STEPS // 10 if question.startswith(DEAR) else STEPS)
    name, *arguments = question.format(a="perl", b="python3", c="libc6").split()
    processes_answer(processes, name, graph, *arguments)
    processes_answer(processes, name, graph, upgrade, "--batch", "100", *arguments)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("question", JOBS)
def test_processes_answer_about_a_company_and_its_changes(question: str, processes: int, tmp_path: Path) -> None:
    is_large = question.startswith(LARGE)
    edges = head(ENRON, tmp_path / "graph.tsv", PART if is_large else 200_000)
    changes = write_changes(tmp_path / "changes.tsv", edges, 300)
    name, *arguments = question.format(a=0, b=1, c=2).split()
    processes_answer(processes, name, tmp_path / "graph.tsv", *arguments)
    processes_answer(processes, name, tmp_path / "graph.tsv", changes, "--batch", "50", *arguments)


@pytest.mark.parametrize("workers", [1, 3])
def test_edges_with_times_arrive_in_the_order_of_their_times(workers: int, tmp_path: Path) -> None:
    graph = write_lines(tmp_path / "graph.tsv", [("c", "d", 30), ("a", "b", 10), ("b", "c", 20), ("e", "a", 20)])
    found, deltas = outcome("components", [graph, "--time", "3"], workers)
    assert found.report.edges == 4
    arrived = [(label, int((delta.diffs > 0).sum())) for label, delta in deltas]
    assert arrived == [(10, 2), (20, 2), (30, 1)]
    assert found.answer.columns[1].tolist() == [0] * 5


@pytest.mark.parametrize("begin", [-30, 10])
def test_changes_of_edges_with_times_come_after_these(begin: int, tmp_path: Path) -> None:
    graph = write_lines(tmp_path / "graph.tsv", [("c", "d", begin + 7), ("a", "b", begin)])
    changes = write_lines(tmp_path / "changes.tsv", [("+", "b", "c"), ("-", "b", "c")])
    _, deltas = outcome("distances", [graph, changes, "--time", "3", "--from", "a"])
    assert [label for label, _ in deltas] == [min(0, begin), begin, begin + 8, begin + 9]

    late = write_lines(tmp_path / "late.tsv", [(begin + 6, "+", "b", "c")])
    with pytest.raises(DataError, match=rf"line 1: the epoch {begin + 6} is before the last epoch .*, {begin + 7}:"):
        outcome("distances", [graph, late, "--time", "3"])
    at_once = write_lines(tmp_path / "at_once.tsv", [(begin + 7, "+", "b", "c")])
    _, deltas = outcome("distances", [graph, at_once, "--time", "3", "--from", "a"])
    assert [label for label, _ in deltas] == [min(0, begin), begin, begin + 7]
