"""Modules and functions are small enough to be read at once, and rooms few enough to be known."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.api.modules import PACKAGES, ROOT, modules, source, tree

LINES, FUNCTION_LINES, PARAMETERS, ROOMS = 450, 60, 8, 12


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for module in modules():
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.FunctionDef):
                yield module, node


def lines(function: ast.FunctionDef) -> int:
    """Return how many lines a function has without its docstring."""
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    documented = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
    return (function.end_lineno or 0) - function.lineno + 1 - documented


def parameters(function: ast.FunctionDef) -> int:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return len([each for each in given if each.arg not in ("self", "cls")])


def test_a_module_has_at_most_so_many_lines() -> None:
    assert [name for name in modules() if source(name).read_text().count("\n") > LINES] == []


def test_a_function_has_at_most_so_many_lines() -> None:
    assert {f"{module}.{each.name}": lines(each) for module, each in functions() if lines(each) > FUNCTION_LINES} == {}


def test_a_function_has_at_most_so_many_parameters() -> None:
    wide = [f"{module}.{each.name}" for module, each in functions() if parameters(each) > PARAMETERS]
    assert wide == []


def test_a_package_has_at_most_so_many_rooms() -> None:
    for package in PACKAGES:
        rooms = [path.name for path in (ROOT / package).iterdir() if (path / "__init__.py").exists()]
        assert len(rooms) <= ROOMS, rooms


def test_no_room_has_the_name_of_a_module_beside_it() -> None:
    for package in PACKAGES:
        flat = {path.stem for path in (ROOT / package).glob("*.py")}
        rooms = {path.name for path in (ROOT / package).iterdir() if path.is_dir()}
        assert flat.isdisjoint(rooms)
