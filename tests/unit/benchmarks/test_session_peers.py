"""The jobs of `session_peers` give the same answers by all tools, and a wrong one is found."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import session_peers
from benchmarks.harness import WrongAnswer


@pytest.mark.parametrize(
    ("name", "job"), [("here", "orders"), ("here", "reach"), ("duckdb", "reach"), ("polars", "orders")]
)
def test_a_tool_answers_as_numpy_does(name: str, job: str) -> None:
    columns = session_peers.initial(job, 2_000)
    asked = session_peers.tool(name, job, columns)
    try:
        asked.first()
        one, other = session_peers.added(job, 2_000, 1, 3)
        asked.change(one, other)
        assert asked.whole() == session_peers.expected(job, [columns, (one, other)])
    finally:
        asked.close()


def test_a_wrong_sum_after_a_change_is_no_figure() -> None:
    given = [(np.array([0, 1]), np.array([3, 4])), (np.array([1]), np.array([2]))]
    session_peers.check_changes("orders", given, given[1:], [{1: 6}], "a tool")
    with pytest.raises(WrongAnswer, match="the sum of customer 1 is wrong"):
        session_peers.check_changes("orders", given, given[1:], [{1: 4}], "a tool")
