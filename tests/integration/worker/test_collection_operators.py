"""Every operator of collections gives the same answers on one worker, several threads and several processes: those of
its definition."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import differential
from differential import Arrangement, Collection, Trace, delta
from differential.delta import CollectionIndex, Prefixes
from tests.examples_loading import module_at
from tests.integration.agreement import lines_of_processes, lines_of_threads

SCRIPT = Path(__file__).parent / "scripts" / "collection_operators.py"


@pytest.fixture(scope="module")
def programs() -> ModuleType:
    return module_at(SCRIPT)


@pytest.fixture(scope="module")
def expected(programs: ModuleType) -> Counter[str]:
    """The lines that follow from the definitions."""
    lines: Counter[str] = programs.expected()
    assert {line.split(":")[0] for line in lines} == {
        f"{kind}, {title}"
        for kind in programs.KINDS
        for title in [*programs.programs_of(kind), *(title for more in programs.APART.values() for title in more)]
    }, "some program has no answer"
    return lines


def assert_same(found: Counter[str], expected: Counter[str]) -> None:
    assert (sorted((expected - found).elements()), sorted((found - expected).elements())) == ([], [])


@pytest.mark.timeout(200)
@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.lengthy)])
def test_threads_print_the_lines_of_the_definitions(programs: ModuleType, expected: Counter[str], workers: int) -> None:
    assert_same(lines_of_threads(programs, workers), expected)


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    "processes", [pytest.param(2, marks=pytest.mark.lengthy), pytest.param(3, marks=pytest.mark.slow)]
)
def test_processes_print_the_lines_of_the_definitions(expected: Counter[str], processes: int) -> None:
    assert_same(lines_of_processes(SCRIPT, processes), expected)


def public(of: type) -> set[str]:
    return {name for name, value in inspect.getmembers(of, callable) if not name.startswith("_")}


PARTS = {"arranged", "derived", "entered", "exported", "imported", "indexed", "reader", "updates_of", "with_stream"}
"""What operators are made of."""
READING = {"allow_compaction_to", "batches", "consolidate", "contents", "cursor", "drop", "statistics"}
READING |= {"set_logical_compaction", "set_physical_compaction"}
"""What a program does with a trace outside of dataflows."""
ELSEWHERE = {"as_updates", "by_both", "by_key", "count", "with_updates"}
"""Parts of relations, which `extend` uses, and streams instead of collections."""


def test_no_operator_of_collections_is_forgotten() -> None:
    text = SCRIPT.read_text()
    names = public(Collection) | (public(Arrangement) | public(Prefixes) | public(CollectionIndex)) - ELSEWHERE
    names |= public(Trace) - READING
    names |= {name for name in (*differential.__all__, *delta.__all__) if name.islower()} - {"example"}
    forgotten = {name for name in names - PARTS if not re.search(rf"\b{name}\(", text)}
    assert not forgotten, f"add a program that uses each of {forgotten} to {SCRIPT}"
