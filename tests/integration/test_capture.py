"""A collection captured by some processes is read by others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.examples_loading import EXAMPLES, example_module
from tests.integration.launcher.launching import Run


def run(*arguments: str | Path) -> str:
    started = Run("run", *arguments)
    try:
        assert started.end(40) == 0, started.error
        return started.output
    finally:
        started.close()


@pytest.mark.lengthy
def test_degrees_written_by_two_processes_are_read_by_three_workers(tmp_path: Path) -> None:
    example = example_module("capture")
    run("-n", "2", EXAMPLES / "capture.py", "write", tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    lines = run("-w", "3", EXAMPLES / "capture.py", "read", tmp_path).splitlines()
    source = np.random.default_rng(7).integers(0, example.NODES, (2, example.EDGES + example.EPOCHS))[0]
    degrees = Counter(Counter(source[example.EPOCHS :].tolist()).values())
    expected = [f"degree {degree}: {nodes} nodes" for degree, nodes in sorted(degrees.items())]
    assert [line[line.index("degree") :] for line in lines] == expected


def refused(*arguments: str | Path, processes: int = 1) -> str:
    """Return the error of a command that is refused."""
    started = Run("run", "-n", str(processes), EXAMPLES / "capture.py", *arguments)
    try:
        assert started.end(40) == 1
        assert "Traceback" not in started.error
        return started.error
    finally:
        started.close()


def test_reading_a_directory_without_a_capture_is_refused_and_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing"):
        directory = tmp_path / name
        assert f"capture: {directory} has no files of a capture (*.events)" in refused("read", directory)
    assert not (tmp_path / "missing").exists()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert f"capture: cannot make the directory {file}: File exists" in refused("write", file)
    assert f"capture: cannot make the directory {file / 'in'}: Not a directory" in refused("write", file / "in")


def test_a_capture_is_written_neither_over_another_nor_beside_it(tmp_path: Path) -> None:
    files = {tmp_path / "0.events": "those", tmp_path / "1.events": "of two workers"}
    for path, text in files.items():
        path.write_text(text)
    error = refused("write", tmp_path, processes=3)
    assert f"capture: {tmp_path} has files of a capture (0.events, 1.events)" in error
    assert {path: path.read_text() for path in tmp_path.iterdir()} == files
