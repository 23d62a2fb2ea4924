"""A collection captured by some processes is read by others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from tests.examples_loading import EXAMPLES, example_module
from tests.integration.launcher.launching import Run


def run(*arguments: str | Path) -> str:
    started = Run("run", *arguments)
    try:
        assert started.end(40) == 0, started.error
        return started.output
    finally:
        started.close()


def test_degrees_written_by_two_processes_are_read_by_three_workers(tmp_path: Path) -> None:
    example = example_module("capture")
    run("-n", "2", EXAMPLES / "capture.py", "write", tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    lines = run("-w", "3", EXAMPLES / "capture.py", "read", tmp_path).splitlines()
    source = np.random.default_rng(7).integers(0, example.NODES, (2, example.EDGES + example.EPOCHS))[0]
    degrees = Counter(Counter(source[example.EPOCHS :].tolist()).values())
    expected = [f"degree {degree}: {nodes} nodes" for degree, nodes in sorted(degrees.items())]
    assert [line[line.index("degree") :] for line in lines] == expected
