"""Where the names of the packages come from, and when."""

from __future__ import annotations

import ast
import subprocess
import sys
from types import ModuleType

import pytest

import differential
import differential.errors
import timely
import timely.errors
from tests.api.modules import modules, tree

STARTS_WITHOUT = (
    "import sys, timely.run.cli, timely.run.launcher; print(*{'numpy', 'zmq', 'timely.api'} & set(sys.modules))"
)


def test_what_starts_processes_imports_nothing_that_takes_long() -> None:
    assert subprocess.check_output([sys.executable, "-c", STARTS_WITHOUT], text=True, timeout=60) == "\n"


@pytest.mark.parametrize(
    "first", ["timely.run.execute", "timely.worker.worker", "timely.dataflow.stream", "differential.trace"]
)
def test_a_module_can_be_imported_first_and_all_names_are_there_after_it(first: str) -> None:
    program = f"import {first}, timely; timely.execute_directly(lambda worker: print(*timely.__all__))"
    found = subprocess.check_output([sys.executable, "-c", program], text=True, timeout=60)
    assert found.split() == timely.__all__


def test_modules_are_names_of_their_package() -> None:
    program = "import timely; print(timely.errors.TimelyError.__name__, timely.graphlinq.Graph.__name__)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True, timeout=60) == "TimelyError Graph\n"


def test_no_name_is_that_of_a_module_too() -> None:
    assert not {f"timely.{name}" for name in timely.__all__} & set(modules())


def test_names_are_listed_and_others_are_refused() -> None:
    assert set(timely.__all__) < set(dir(timely))
    with pytest.raises(AttributeError, match="module 'timely' has no attribute 'exceute'"):
        timely.exceute  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(("package", "most"), [(timely, 40), (differential, 20)])
def test_the_first_names_to_learn_are_few(package: ModuleType, most: int) -> None:
    assert len(set(package.__all__)) == len(package.__all__) <= most
    assert list(package.__all__) == sorted(package.__all__)
    assert [name for name in package.__all__ if not hasattr(package, name)] == []


def test_no_name_beside_the_operators_on_collections_means_something_else() -> None:
    methods = {name for name in vars(differential.Collection) if not name.startswith("_")}
    assert methods.isdisjoint(timely.__all__)
    assert methods.isdisjoint(differential.__all__)
    assert {"join", "meet", "less_equal", "less_than"}.isdisjoint(timely.__all__)


def test_all_errors_and_warnings_can_be_imported_from_both_packages() -> None:
    defined = {
        name
        for name, found in vars(timely.errors).items()
        if isinstance(found, type) and issubclass(found, Exception) and found.__module__ == "timely.errors"
    }
    assert {"CapabilityWarning", "PeerLost", "TimelyError", "TraceError"} < defined
    assert set(timely.errors.__all__) == set(differential.errors.__all__) == defined
    assert all(getattr(differential.errors, name) is getattr(timely.errors, name) for name in defined)


def test_the_packages_raise_no_error_of_another_module() -> None:
    elsewhere = [
        f"{module}.{node.name}"
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ClassDef) and module != "timely.errors" and _bases(node) & set(timely.errors.__all__)
    ]
    assert elsewhere == []


def test_no_two_modules_define_a_class_of_the_same_name() -> None:
    places: dict[str, list[str]] = {}
    for module in modules():
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def _bases(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}
