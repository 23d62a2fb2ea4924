"""The definitions of algorithms take fewer lines than those that the papers report for theirs.

A line is one of code: blank ones, comments and docstrings do not count, and neither does what checks arguments or reads
and prints data, as in the papers.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DEFINITIONS = {
    "PageRank": (30, {"differential/graphs/pagerank.py": {"_ranks"}}),
    "weakly connected components": (
        49,
        {
            "differential/graphs/components.py": {"weakly_connected_components", "by_magnitude"},
            "differential/graphs/propagate.py": {"propagate"},
        },
    ),
    "strongly connected components": (
        161,
        {
            "differential/graphs/strong_components.py": {
                "cyclic_edges",
                "on_the_way",
                "strongly_connected_components",
                "_trim",
            }
        },
    ),
    "approximate shortest paths": (
        70,
        {"differential/graphs/landmarks.py": {"landmark_distances", "approximate_distances"}},
    ),
    "k-exposure": (26, {"examples/kexposure.py": {"exposures"}}),
    "topics": (27, {"examples/topics.py": {"connected", "top_hashtags", "answered"}}),
}
"""The lines that the papers report (Murray et al., SOSP 2013, section 6), and our definitions."""


def lines_of(path: Path, names: set[str]) -> int:
    """Return how many lines of code the functions of a module take."""
    text = path.read_text(encoding="utf-8")
    found = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    count = 0
    for name in names:
        function = found[name]
        docstring = function.body[0]
        assert isinstance(docstring, ast.Expr), f"{name} has a docstring"
        lines = text.splitlines()[docstring.end_lineno : function.end_lineno]
        count += sum(bool(line.strip()) and not line.strip().startswith("#") for line in lines) + 1
    return count


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_is_shorter_than_that_of_the_papers(name: str) -> None:
    bound, parts = DEFINITIONS[name]
    assert sum(lines_of(ROOT / path, functions) for path, functions in parts.items()) < bound
