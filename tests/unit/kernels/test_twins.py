"""Each kernel is compared with a slow twin, by a property."""

from __future__ import annotations

import ast
from pathlib import Path

from differential.kernels.__main__ import import_all
from differential.kernels.compile import _KERNELS, Kernel

TESTS = Path(__file__).parents[2]
PROPERTIES = TESTS / "property" / "kernels"
PREFIX = "differential.kernels."
TABLE = "StringTable"

DOORS = {
    "batching.by_time": ("property/trace/test_batcher.py", "Batcher"),
    "batching.take_passed": ("property/trace/test_batcher.py", "Batcher"),
    "batching.take_times": ("property/trace/test_batcher.py", "Batcher"),
    "consolidate.consolidate_parts": ("property/kernels/test_consolidate.py", "consolidated_parts"),
    "consolidate.plan_words": ("property/kernels/test_consolidate.py", "consolidated_parts"),
    "consolidate.unpack_words": ("property/kernels/test_consolidate.py", "consolidated_parts"),
    "memory.address_of": ("property/kernels/test_consolidate.py", "consolidated_parts"),
    "merge.merge": ("property/kernels/test_merge.py", "Merge"),
    "merge.plan": ("property/kernels/test_merge.py", "Merge"),
    "names.number_names": ("unit/kernels/test_names.py", "Distinct"),
    "names.with_more_slots": ("unit/kernels/test_names.py", "Distinct"),
    "numpy_text.packed_texts": ("property/kernels/test_numpy_text.py", "packed"),
    "numpy_text.store_texts": ("property/kernels/test_numpy_text.py", TABLE),
    "reduce.reduce": ("property/kernels/test_reduce.py", "reduced"),
    "reduce_plan.plan_first": ("property/kernels/test_reduce_first.py", "rounds"),
    "reduce_plan.plan_rounds": ("property/kernels/test_reduce_rounds.py", "plan"),
    "reduce_replay.replayed": ("property/kernels/test_reduce_rounds.py", "accumulate_round"),
    "strings.add_strings": ("property/kernels/test_strings.py", TABLE),
    "strings.compact": ("property/kernels/test_strings.py", TABLE),
    "strings.find_strings": ("property/kernels/test_strings.py", TABLE),
    "strings.gather_strings": ("unit/data/test_string_table.py", TABLE),
    "strings.in_order": ("property/kernels/test_strings.py", TABLE),
    "strings.rehash": ("property/kernels/test_strings.py", TABLE),
    "strings.remove_strings": ("property/kernels/test_strings.py", TABLE),
    "strings.widest": ("unit/data/test_string_table.py", TABLE),
}
"""The kernels that no property calls by name, each with the test of what calls it, and the name of that."""


def kernels() -> set[str]:
    import_all()
    names = {_name(kernel) for kernel in _KERNELS if kernel.__module__.startswith(PREFIX)}
    assert len(names) > 50
    return names


def _name(kernel: Kernel) -> str:
    return f"{kernel.__module__.removeprefix(PREFIX)}.{kernel.__name__}"  # type: ignore[attr-defined]


def used_in(test: Path) -> set[str]:
    """Return the names that a test imports and uses, those of kernels with their modules."""
    tree = ast.parse(test.read_text())
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = (node.module or "") + "." if isinstance(node, ast.ImportFrom) else ""
            names = {alias.name for alias in node.names if (alias.asname or alias.name) in used}
            found |= {alias.asname or alias.name for alias in node.names if (alias.asname or alias.name) in used}
            found |= {(module + name).removeprefix(PREFIX) for name in names}
    return found


def test_each_kernel_has_a_twin() -> None:
    named = set().union(*map(used_in, PROPERTIES.glob("test_*.py")))
    without = kernels() - named - DOORS.keys()
    assert not without, f"compare each of {without} with a slow twin in {PROPERTIES}"


def test_the_twins_of_kernels_that_are_called_by_others_are_where_they_are_sought() -> None:
    assert DOORS.keys() <= kernels()
    for name, (test, door) in DOORS.items():
        assert door in used_in(TESTS / test), f"{test} does not use {door}, by which {name} was to be tested"
