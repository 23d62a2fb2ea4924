"""The answers from scratch, on graphs small enough to solve by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples_loading import example_module

pytest.importorskip("scipy")
oracle = example_module("graph_oracle")

NAMES = list("abcdefgh")
EVERY = ["components", "cycles", "watch", "top"]


def answers(*edges: str, watch: str = "a", only: list[str] = EVERY) -> dict[str, object]:
    numbers = np.array([[NAMES.index(name) for name in edge] for edge in edges], np.int64).reshape(-1, 2)
    watched = {name: NAMES.index(name) for name in watch}
    found: dict[str, object] = oracle.answers(NAMES, numbers[:, 0], numbers[:, 1], watched, only)
    return found


def test_only_packages_with_an_edge_make_components() -> None:
    assert answers("ab", "cb", "de", "ff")["components"] == {"count": 3, "largest": 3}


def test_a_loop_makes_no_cycle() -> None:
    assert answers("aa", "ab")["cycles"] == {"count": 0, "largest": 0, "packages": []}


def test_the_first_by_name_of_several_largest_cycles_is_reported() -> None:
    assert answers("gh", "hg", "be", "eb", "cd", "dc")["cycles"] == {"count": 3, "largest": 2, "packages": ["b", "e"]}


def test_watched_packages_count_what_depends_on_them() -> None:
    assert answers("ba", "cb", "ac", "dc", "ef", watch="afh")["watch"] == {"a": 3, "f": 1, "h": 0}


def test_ties_are_in_the_order_of_names() -> None:
    assert answers("ah", "bh", "hb", "ga", "ca")["top"] == [["a", 2], ["h", 2], ["b", 1]]


def test_a_graph_without_edges_has_answers() -> None:
    assert answers() == {
        "edges": 0,
        "components": {"count": 0, "largest": 0},
        "cycles": {"count": 0, "largest": 0, "packages": []},
        "watch": {"a": 0},
        "top": [],
    }


def test_only_the_requested_questions_are_answered() -> None:
    assert list(answers("ab", only=["top"])) == ["edges", "top"]
