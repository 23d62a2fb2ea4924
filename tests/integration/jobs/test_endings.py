"""A job about a stream ends with one clear line if it cannot go on, and leaves files from before as they were."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.examples_loading import EXAMPLES
from tests.integration.jobs.programs import (
    SECONDS,
    TWEETS,
    answered,
    apart,
    here,
    on_two_processes,
    refused,
    started,
)

SMALL: dict[str, list[str]] = {
    "wordcount": [str(EXAMPLES / "README.md")],
    "kexposure": ["--users", "20", "--tags", "3", "--follows", "2", "--count", "40", "--epoch", "20"],
    "topics": ["--users", "20", "--rate", "400", "--seconds", "0.3", "--epoch", "50", "--stale", "0.1"],
    "window": ["--users", "20", "--rate", "3", "--window", "2", "--slides", "3"],
    "logistic": ["--rows", "80", "--features", "2", "--rounds", "5"],
    "barrier": ["--rounds", "10"],
    "alltoall": ["--records", "5", "--epochs", "3"],
    "imports": [str(EXAMPLES)],
}
"""A quick run of each job."""
JOBS = pytest.mark.parametrize("name", SMALL)


@JOBS
def test_an_output_that_cannot_be_written_is_named_before_anything_is_done(name: str) -> None:
    for option in ("--json", "--csv", "--plot"):
        if option == "--plot":
            pytest.importorskip("matplotlib")
        place = "/proc/absent/file.svg"
        line = refused(name, *SMALL[name], option, place)
        assert line == f"{name}: cannot write {place}: No such file or directory"
        assert refused(name, *SMALL[name], "--json", "/proc") == f"{name}: cannot write /proc: it is a directory"


@pytest.mark.parametrize("name", ["wordcount", "barrier", "imports"])
def test_a_full_disk_is_named(name: str) -> None:
    assert f"{name}: cannot write /dev/full" in here(name, *SMALL[name], "--json", "/dev/full").error


@pytest.mark.lengthy
@JOBS
def test_quiet_is_quiet_and_one_output_may_be_standard_output(name: str) -> None:
    assert answered(name, *SMALL[name], "--quiet") == ""
    ended = here(name, *SMALL[name], "--csv", "-")
    assert ended.output.startswith('"')
    assert ended.error
    assert here(name, *SMALL[name], "--csv", "-", "--json", "-").status == 2


@JOBS
def test_parquet_has_the_records_of_csv(name: str, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    answered(name, *SMALL[name], "--csv", tmp_path / "answer.csv", "--parquet", tmp_path / "answer.parquet")
    with open(tmp_path / "answer.csv") as file:
        header, *rows = csv.reader(file)
    found = parquet.read_table(tmp_path / "answer.parquet")
    assert found.column_names == header
    assert [["" if value is None else str(value) for value in row.values()] for row in found.to_pylist()] == rows


@pytest.mark.parametrize("name", ["barrier", "alltoall"])
def test_a_job_whose_answer_does_not_change_gives_the_reason(name: str) -> None:
    for given in (["--changes", "out"], ["--changes"]):
        ended = here(name, *SMALL[name], *given)
        assert ended.status == 2
        assert "error: --changes is not in this job: its answer is" in ended.error
        assert "does not change; --csv FILE writes it" in ended.error
    assert "does not change; --csv FILE writes it" in " ".join(here(name, "--help").output.split())


@JOBS
def test_a_failure_leaves_the_file_from_before(name: str, tmp_path: Path) -> None:
    before = tmp_path / "answer.csv"
    before.write_text("good")
    refused(name, *SMALL[name], "--csv", before, "--json", "/proc/absent/file")
    assert before.read_text() == "good"
    assert list(tmp_path.iterdir()) == [before]


@pytest.mark.parametrize("name", ["kexposure", "topics", "window"])
def test_missing_tweets_are_named(name: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert refused(name, "--tweets", missing) == f"{name}: cannot read {missing}: No such file or directory"
    assert refused(name, "--tweets", tmp_path) == f"{name}: cannot read {tmp_path}: Is a directory"


def test_a_failure_on_two_processes_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "tweets"
    path.write_text(f"{TWEETS}rubbish\n")
    ended = on_two_processes("window", "--tweets", path, "--csv", tmp_path / "answer.csv")
    assert ended.status == 1
    assert ended.error.count(f"window: {path}, line 8: expected 3 fields") == 1
    assert "Traceback" not in ended.error
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("wordcount", ["-", "--lines", "1"]), ("kexposure", ["--tweets", "-", "--epoch", "1"])],
)
def test_a_closed_pipe_ends_the_job(name: str, arguments: list[str]) -> None:
    with started(name, *arguments, "--changes", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write("1\tada\t#a #b\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith("0\t+\t")
        process.stdout.close()
        try:
            for number in range(2, 2000):
                process.stdin.write(f"{number}\tuser{number}\t#tag{number}\n")
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.stderr.read() == f"{name}: standard output was closed before the job had ended\n"
        assert process.wait(SECONDS) == 1


@pytest.mark.lengthy
def test_the_jobs_can_be_run_by_name() -> None:
    ended = apart("../differential/jobs/__main__", "wordcount", EXAMPLES / "README.md", "--top", "0")
    assert ended.status == 0, ended.error
    assert "distinct" in ended.output
    ended = apart("../differential/jobs/__main__", "wordcount", "--help")
    assert ended.output.startswith("usage: python -m differential.jobs wordcount ")
    assert "timely run -n 2 -m differential.jobs wordcount README.md" in ended.output


@JOBS
def test_the_help_has_commands_that_exist(name: str) -> None:
    ended = here(name, "--help")
    assert ended.status == 0
    commands = [line.strip() for line in ended.output.splitlines() if line.strip().startswith(("python", "timely"))]
    assert len(commands) > 3
    assert all(f"examples/{name}.py" in command or command.startswith("tail") for command in commands)
    for option in ("--json", "--csv", "--plot", "--check", "--quiet"):
        assert option in ended.output
