"""All modules of the two packages."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from timely.worker.garbage import paused

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("timely", "differential")


@functools.cache
def modules() -> tuple[str, ...]:
    """Return the dotted names of all modules."""
    names = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return tuple(names)


def source(module: str) -> Path:
    """Return the file of a module."""
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def tree(module: str) -> ast.Module:
    """Return the syntax of a module."""
    return _trees()[module]


@functools.cache
def _trees() -> dict[str, ast.Module]:
    with paused():  # none of it is garbage, and searching it again and again takes four times as long as parsing
        return {module: ast.parse(source(module).read_text()) for module in modules()}
