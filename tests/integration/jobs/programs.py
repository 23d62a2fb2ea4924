"""Run jobs about streams as a person does, in this process or in processes of their own, and read what they wrote."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from tests.examples_loading import EXAMPLES, example_module
from tests.integration.launcher.launching import ROOT, Run, signals_enabled

SECONDS = 50
INTERRUPTED = 130

TWEETS = """\
# time, user and text
1\tada\thello @charles #engine
2\tcharles\t@ada #engine #gears
2\tmary\t#Engine @Ada @charles

5\tmary\tnothing
9\tAda\t@mary #gears, not#this
"""


class Ended(NamedTuple):
    """How a job has ended."""

    status: int
    output: str
    error: str


def here(name: str, *arguments: str | Path, workers: int = 1) -> Ended:
    """Run a job in this process, on so many workers."""
    output, error = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", [f"examples/{name}.py", *map(str, arguments)]),
        mock.patch.dict(os.environ, {"TIMELY_WORKERS": str(workers)}),
        redirect_stdout(output),
        redirect_stderr(error),
    ):
        try:
            status = example_module(name).main()
        except SystemExit as end:
            status = end.code
    return Ended(status, output.getvalue(), error.getvalue())


def answered(name: str, *arguments: str | Path, workers: int = 1) -> str:
    """Return the output of a job that ends well."""
    ended = here(name, *arguments, workers=workers)
    assert ended.status == 0, ended
    return ended.output


def apart(name: str, *arguments: str | Path, input: str = "") -> Ended:
    """Run a job as a script in a process of its own."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, input=input, capture_output=True, text=True, timeout=SECONDS, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def on_two_processes(name: str, *arguments: str | Path, input: str = "", workers: int = 1) -> Ended:
    """Run a job on two processes."""
    run = Run("run", "-n", "2", "-w", str(workers), "--raw", EXAMPLES / f"{name}.py", *arguments)
    try:
        assert run.process.stdin is not None
        run.process.stdin.write(input)
        run.process.stdin.close()
        status = run.end(SECONDS)
    finally:
        run.close()
    return Ended(status, "".join(run.lines), run.error)


@contextmanager
def started(name: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Start a job as a script, with pipes; kill it if it has not ended when the block does."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with signals_enabled():
        process = subprocess.Popen(command, cwd=ROOT, text=True, bufsize=1, **pipes)
    with process:
        try:
            yield process
        finally:
            process.kill()


def refused(name: str, *arguments: str | Path, status: int = 1) -> str:
    """Return the one line that a job prints when it cannot go on."""
    ended = here(name, *arguments)
    assert ended.status == status, ended
    assert ended.output == ""
    assert ended.error.count("\n") == 1, ended.error
    return ended.error.strip()


def table(path: Path) -> list[tuple[str, ...]]:
    """Return the rows of a CSV file, without the header."""
    with open(path, newline="") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def epochs(path: Path) -> dict[int, set[tuple[str, ...]]]:
    """Return the records after each epoch of a stream of changes, which must never remove one that is not there."""
    records: Counter[tuple[str, ...]] = Counter()
    found: dict[int, set[tuple[str, ...]]] = {}
    for line in path.read_text().splitlines():
        epoch, sign, *record = line.split("\t")
        records[tuple(record)] += {"+": 1, "-": -1}[sign]
        found[int(epoch)] = {each for each, count in records.items() if count}
    assert set(records.values()) <= {0, 1}
    assert list(found) == sorted(found)
    return found


def drawn(name: str, path: Path, *arguments: str | Path) -> str:
    """Return the SVG text of a job's picture."""
    pytest.importorskip("matplotlib")
    answered(name, *arguments, "--plot", path, "--quiet")
    return path.read_text()


def as_text(rows: Any) -> set[tuple[str, ...]]:
    """Return rows with all fields as text."""
    return {tuple(map(str, row)) for row in rows}
