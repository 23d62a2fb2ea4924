"""A job that cannot go on prints one clear line, ends with a status that is not 0, and leaves files as they were."""

from __future__ import annotations

import gzip
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from differential.jobs.command_line import parse
from differential.jobs.entry import run as run_job
from tests.integration.jobs.running import job, outcome, write_lines
from tests.integration.launcher.launching import ROOT
from timely.errors import DataError

SECONDS = 50


def run(*arguments: str | Path, script: str = "examples/components.py") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, script, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)


def refused(*arguments: str | Path) -> str:
    """Return the only line that a job prints when it fails."""
    done = run(*arguments)
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip()


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "graph.tsv", [(1, 2), (2, 3), (5, 6)])


@pytest.mark.lengthy
def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "absent.tsv") in refused(tmp_path / "absent.tsv")


@pytest.mark.lengthy
def test_lengths_that_do_not_add_up_are_an_error_of_one_line(tmp_path: Path) -> None:
    graph = write_lines(tmp_path / "graph.tsv", [("a", "b", 1 << 62), ("b", "c", 1 << 62)])
    done = run(graph, "--weighted", script="examples/distances.py")
    expected = "distances: shortest_distances: a distance is too large for 64 bits\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


@pytest.mark.lengthy
def test_an_empty_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").touch()
    assert "empty.tsv" in refused(tmp_path / "empty.tsv")


@pytest.mark.lengthy
def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    text = "".join(f"{node}\t{node * 7919 % 100_000}\n" for node in range(20_000))
    whole = gzip.compress(text.encode())
    (tmp_path / "cut.tsv.gz").write_bytes(whole[: len(whole) // 2])
    assert "cut.tsv.gz" in refused(tmp_path / "cut.tsv.gz")


@pytest.mark.lengthy
@pytest.mark.parametrize(("row", "what"), [((4,), "4"), ((4, "x"), "x")])
def test_a_wrong_line_is_named_with_its_number(tmp_path: Path, row: tuple[object, ...], what: str) -> None:
    graph = write_lines(tmp_path / "graph.tsv", [*[(node, node + 1) for node in range(1000)], row, (1, 2)])
    message = refused(graph)
    assert "graph.tsv, line 1001" in message
    assert what in message


@pytest.mark.lengthy
def test_wrong_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    graph = write_lines(tmp_path / "graph.tsv", [(1, 2), (2, "x"), (2, 3), (7,)])
    for workers in (1, 3):
        found, _ = outcome("components", [graph, "--integers", "--on-error", "skip"], workers)
        assert (found.report.edges, found.report.rejected) == (2, 2)


@pytest.mark.lengthy
def test_wrong_lines_are_counted_once_if_there_are_no_others(tmp_path: Path) -> None:
    graph = write_lines(tmp_path / "graph.tsv", [("a", "b"), ("c", "d")])
    found, _ = outcome("components", [graph, "--integers", "--no-header", "--on-error", "skip"], 1)
    assert (found.report.edges, found.report.rejected) == (0, 2)


@pytest.mark.lengthy
def test_wrong_lines_are_reported(tmp_path: Path) -> None:
    graph = write_lines(tmp_path / "graph.tsv", [(1, 2), (2, "x"), (2, 3)])
    changes = write_lines(tmp_path / "changes.tsv", [("+", 4, 5), ("-", 8, 9), ("*", 1, 2)])
    done = run(graph, changes, "--on-error", "report", "--rejects", tmp_path / "rejects.tsv")
    assert done.returncode == 0, done.stderr
    assert "3 lines rejected" in done.stdout
    header, *rows = (tmp_path / "rejects.tsv").read_text().splitlines()
    assert header == "file\tline\treason\ttext"
    found = [tuple(row.split("\t"))[:2] for row in rows]
    assert sorted(found) == [(str(changes), "2"), (str(changes), "3"), (str(graph), "2")]


@pytest.mark.lengthy
def test_the_summary_leaves_standard_output_to_rejected_lines(tmp_path: Path) -> None:
    graph = write_lines(tmp_path / "graph.tsv", [(1, 2), (2, "x")])
    done = run(graph, "--integers", "--on-error", "report", "--rejects", "-")
    assert done.stdout.startswith(f"file\tline\treason\ttext\n{graph}\t2\t")
    assert done.stdout.count("\n") == 2
    assert "1 line rejected" in done.stderr


@pytest.mark.lengthy
def test_rejected_lines_name_a_file_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    graph = write_lines(tmp_path / "caf\udce9.tsv", [(1, 2), (2, "x")])
    found, _ = outcome("components", [graph, "--integers", "--on-error", "report", "--rejects", "-"])
    assert [fault.file for fault in found.faults] == [f"{tmp_path}/caf\\udce9.tsv"]


def test_rejected_lines_do_not_share_standard_output(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(graph), "--csv", "-", "--on-error", "report", "--rejects", "-"]
    with pytest.raises(SystemExit, match="2"):
        parse(job("components"), given, "components")
    assert "only one output can be standard output" in capsys.readouterr().err


@pytest.mark.parametrize("size", [1 << 64, 10**400])
def test_a_batch_may_be_larger_than_all_changes(size: int, graph: Path, tmp_path: Path) -> None:
    changes = write_lines(tmp_path / "changes.tsv", [("+", 3, 4), ("-", 1, 2)])
    found, _ = outcome("components", [graph, changes, "--batch", str(size)])
    assert [count for count, _ in found.report.batches] == [2]


@pytest.mark.lengthy
@pytest.mark.parametrize("given", [["--on-error", "report"], ["--rejects", "file"], ["--on-error", "report:file"]])
def test_a_file_of_rejects_belongs_to_its_policy(given: list[str], graph: Path) -> None:
    done = run(*given, graph)
    assert done.returncode == 2
    wrong = "invalid choice: 'report:file'" if "report:file" in given else "--on-error report and --rejects FILE belong"
    assert wrong in done.stderr


@pytest.mark.lengthy
def test_the_removal_of_an_absent_edge_is_named(graph: Path, tmp_path: Path) -> None:
    changes = write_lines(tmp_path / "changes.tsv", [("-", 1, 2), ("+", 1, 2), ("-", 1, 2), ("-", 1, 2)])
    message = refused(graph, changes)
    assert "changes.tsv, line 4" in message
    assert "1 -> 2" in message
    found, _ = outcome("components", [graph, changes, "--on-error", "skip"], 2)
    assert found.report.rejected == 1


@pytest.mark.lengthy
def test_a_change_may_remove_what_it_adds_in_any_order(graph: Path, tmp_path: Path) -> None:
    rows = [(1, "-", 8, 9), (1, "+", 8, 9), (2, "-", 8, 9), (2, "-", 8, 9), (2, "+", 8, 9)]
    changes = write_lines(tmp_path / "changes.tsv", rows)
    found, _ = outcome("components", [graph, changes, "--on-error", "skip"])
    assert found.report.rejected == 1
    without, _ = outcome("components", [graph])
    assert [column.tolist() for column in found.answer.columns] == [each.tolist() for each in without.answer.columns]


def test_an_epoch_before_that_of_the_graph_is_refused(graph: Path, tmp_path: Path) -> None:
    changes = write_lines(tmp_path / "changes.tsv", [(-2, "+", 3, 4), (-1, "+", 3, 5), (0, "+", 4, 5)])
    with pytest.raises(
        DataError, match=r"changes.tsv, line 1: the epoch -2 is before the last epoch of the graph, 0: '-2\\t\+"
    ):
        outcome("components", [graph, changes])
    found, deltas = outcome("components", [graph, changes, "--on-error", "skip"])
    assert found.report.rejected == 2
    assert [label for label, _ in deltas] == [0, 0]


@pytest.mark.lengthy
def test_an_unknown_node_is_named_with_those_it_resembles(tmp_path: Path) -> None:
    graph = write_lines(tmp_path / "graph.tsv", [("Oslo", "Bergen"), ("Bergen", "Voss")])
    with pytest.raises(DataError, match="Oslo"):
        outcome("distances", [graph, "--from", "Osla"])


@pytest.mark.parametrize("node", ["9223372036854775808", "-9223372036854775809", "9" * 5000, "1_0", " 1", "x", "1.0"])
def test_a_node_that_is_no_integer_is_refused(node: str, graph: Path) -> None:
    with pytest.raises(DataError, match=rf"--from {node:.80}: the nodes of .*graph.tsv are integers of 64 bits"):
        outcome("distances", [graph, f"--from={node}"])


@pytest.mark.parametrize(
    ("name", "given", "wrong"),
    [
        ("components", "--weight=3", "--weight names lengths, which this question does not use: leave it out"),
        ("distances", "--weight=3", "--weight names lengths, which this question does not use: add --weighted"),
        ("triangles", "--motif=0-0,0-1", "'0-0,0-1' has an edge from a place to itself"),
        ("triangles", "--motif=0-1,2-3", "'0-1,2-3' is not connected, or leaves out a number"),
        ("triangles", "--motif=0-2", "'0-2' is not connected, or leaves out a number"),
        ("pagerank", "--damping=-0.1", "'-0.1' is not a number of at least 0.0"),
        ("pagerank", "--damping=nan", "'nan' is not a number of at least 0.0"),
        ("pagerank", "--damping=1", "'1' is more than 0.999: some rank must jump to any node"),
    ],
)
def test_an_option_that_the_question_does_not_take_is_refused_before_anything_is_read(
    name: str, given: str, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse(job(name), ["absent", given], name)
    assert end.value.code == 2
    assert wrong in capsys.readouterr().err


@pytest.mark.lengthy
@pytest.mark.parametrize("option", ["--csv", "--json", "--parquet", "--changes", "--plot"])
def test_an_output_that_cannot_be_written_is_named_before_anything_is_read(graph: Path, option: str) -> None:
    name = "/proc/absent/file.svg"
    assert refused(graph, option, name).startswith(f"components: cannot write {name}")


def test_a_library_that_a_picture_needs_is_missed_before_anything_is_computed(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    asked = replace(job("components"), question=lambda inputs, options: pytest.fail("computes an answer"))
    outputs = ["--csv", str(tmp_path / "answer.csv"), "--plot", str(tmp_path / "answer.svg")]
    assert run_job(asked, [str(graph), "--quiet", *outputs], "components") == 1
    line = "components: --plot needs matplotlib: pip install 'timely-dataflow[jobs]'\n"
    assert capsys.readouterr().err == line
    assert list(tmp_path.iterdir()) == [graph]


@pytest.mark.lengthy
def test_a_full_disk_is_named(graph: Path, tmp_path: Path) -> None:
    for option in ("--csv", "--json"):
        assert "cannot write /dev/full" in run(graph, option, "/dev/full").stderr


@pytest.mark.lengthy
@pytest.mark.parametrize("given", [[], ["--csv", "-"], ["--parquet", "-"], ["--changes", "-"]])
def test_a_full_standard_output_is_named_in_one_line(graph: Path, given: list[str]) -> None:
    command = [sys.executable, "examples/components.py", str(graph), *given]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("components: cannot write")
    assert done.stderr.endswith("No space left on device\n")
    assert "Traceback" not in done.stderr


@pytest.mark.lengthy
def test_a_closed_standard_error_does_not_cost_the_answer(graph: Path, tmp_path: Path) -> None:
    table = tmp_path / "answer.csv"
    job = [sys.executable, "examples/components.py", str(graph), "--changes", "-", "--csv", str(table)]
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *job]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=SECONDS)
    assert done.returncode == 0
    assert all(line.startswith("0\t+\t") for line in done.stdout.splitlines())
    assert len(table.read_text().splitlines()) == 6


@pytest.mark.lengthy
def test_an_answer_of_several_processes_goes_to_standard_output_as_it_is(graph: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "timely", "run", "-n", "2"]
    job = ["examples/components.py", str(graph), "--quiet", "--parquet"]
    table = tmp_path / "answer.parquet"
    files = [
        subprocess.run(each, cwd=ROOT, capture_output=True, timeout=SECONDS)
        for each in ([*command, *job, str(table)], [*command, "--raw", *job, "-"], [*command, *job, "-"])
    ]
    assert [done.returncode for done in files] == [0, 0, 1]
    assert files[1].stdout == table.read_bytes()
    assert b"each line gets the number of its process in front; pass --raw to `timely run`" in files[2].stderr


@pytest.mark.lengthy
def test_a_failure_leaves_the_files_from_before(graph: Path, tmp_path: Path) -> None:
    changes = write_lines(tmp_path / "changes.tsv", [("+", 3, 5), ("-", 8, 9)])
    before = tmp_path / "answer.csv"
    before.write_text("good")
    refused(graph, changes, "--csv", before, "--changes", tmp_path / "new")
    assert before.read_text() == "good"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer.csv", "changes.tsv", "graph.tsv"]


@pytest.mark.lengthy
def test_a_closed_pipe_ends_the_job(tmp_path: Path) -> None:
    command = [sys.executable, "examples/components.py", "random:300000,300000", "--changes", "-", "--quiet"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait(SECONDS) == 1
    assert error == "components: standard output was closed before the job had ended\n"
