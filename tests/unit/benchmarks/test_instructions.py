"""Counting the instructions of a change: what is read of callgrind's file, and what is shown of it."""

from __future__ import annotations

from benchmarks.graphs import RandomGraph
from benchmarks.instructions import Call, Prepared, counted, details, table

FILE = """\
events: Ir

fn=(1) _PyEval_EvalFrameDefault
7 1000
cfn=(2) CPyDef_region___Region___run
calls=2 0
7 60000

fn=(2)
+3 20000
cfn=(3) malloc
calls=40 0
* 40000
+1 0

fn=(3)
12 40000
"""
"""A file of two changes. The number of a line may be relative to the line before."""


def test_names_are_given_once_and_costs_of_calls_are_those_of_the_callers() -> None:
    found = counted(FILE.splitlines())
    evaluate, run = "_PyEval_EvalFrameDefault", "CPyDef_region___Region___run"
    assert found.own == {evaluate: 1000, run: 20_000, "malloc": 40_000}
    assert found.calls == [Call(evaluate, run, 2, 60_000), Call(run, "malloc", 40, 40_000)]
    assert found.totals() == {evaluate: (0, 61_000), run: (2, 60_000), "malloc": (40, 40_000)}


def test_the_table_shows_compiled_functions_for_each_change() -> None:
    first, second = table(counted(FILE.splitlines()), 2, 60)
    assert first.split() == ["30,500", "instructions", "of", "one", "change"]
    assert second.split() == ["30,000", "in", "1.00", "calls", "of", "CPyDef_region___Region___run"]


def test_a_function_is_shown_with_what_calls_it_and_what_it_calls() -> None:
    lines = [line.split() for line in details(counted(FILE.splitlines()), 2, "Region___run")]
    assert lines == [
        ["30,000", "in", "1.00", "calls", "of", "CPyDef_region___Region___run"],
        ["30,000", "in", "1.00", "calls", "by", "_PyEval_EvalFrameDefault"],
        ["20,000", "in", "20.00", "calls", "to", "malloc"],
    ]


def test_prepared_changes_are_those_of_the_graph() -> None:
    graph, prepared = RandomGraph(10, 20), Prepared(10, 20, 3)
    for first in range(3):
        expected, found = graph.changes(first, 1), prepared.changes(first, 1)
        assert [column.tolist() for column in expected] == [column.tolist() for column in found]
