"""The small examples run, and are right."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.examples_loading import example_module
from timely import Config, execute

bfs = example_module("bfs")
wordcount = example_module("wordcount")


def test_splitmix_is_the_published_one() -> None:
    first = bfs.splitmix(np.arange(3)).tolist()
    assert first == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize("workers", [1, 2])
def test_bfs_counts_the_nodes_at_each_distance(workers: int, capsys: pytest.CaptureFixture[str]) -> None:
    nodes, edges, changes = 40, 60, 25
    execute(lambda worker: bfs.program(worker, nodes, edges, changes), Config(workers=workers))
    source, target = bfs.random_edges(changes, edges, nodes)
    distance, frontier, reached = 0, {0}, {0}
    expected = []
    while frontier:
        expected.append(f"distance {distance}: {len(frontier)} nodes")
        frontier = {t for s, t in zip(source.tolist(), target.tolist()) if s in frontier} - reached
        reached |= frontier
        distance += 1
    assert capsys.readouterr().out.splitlines()[:-1] == expected
    assert len(expected) > 3


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_words_are_counted(workers: int, size: int) -> None:
    lines = ["To be, or not to be", "", "that is the question: be", "is it"] * 5
    results = execute(lambda worker: wordcount.program(worker, lines, size), Config(workers=workers))
    words = " ".join(lines).lower().replace(",", "").replace(":", "").split()
    assert results[0] == Counter(words)
    assert not any(results[1:])
