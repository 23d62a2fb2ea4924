"""The imports of a tree of Python files, read by `ast`: which module imports which.

A module is a `.py` file; its name is its path below the directory, with dots, and a package's is that of its
`__init__.py`. If the directory is a package itself, names begin with its own. Only imports between modules of the tree
count: `import a.b` imports the longest part that is a module; `from a import b` imports `a.b` if that is a module, and
otherwise `a`. That importing `a.b` also runs the package `a` is left out, for otherwise nearly every package would be a
cycle. So are imports under `if TYPE_CHECKING:`, which never run.
"""

from __future__ import annotations

import ast
import os
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from timely.errors import DataError

Edge = tuple[str, str]
"""A module, and one that it imports."""


class Import(NamedTuple):
    """What an import statement names: a module, and what is taken from it, if anything."""

    module: str
    names: tuple[str, ...]


class Stamp(NamedTuple):
    """What changes when a file is edited."""

    modified: int
    """In nanoseconds."""
    size: int


class Tree:
    """A directory of Python files, as they were when `refresh` was called last."""

    def __init__(self, directory: str, at_import: bool = False) -> None:
        """Read nothing yet; with `at_import`, imports inside of functions are left out."""
        self._root = Path(directory)
        self._at_import = at_import
        self._stamps: dict[Path, Stamp] = {}
        self._imports: dict[str, list[Import]] = {}
        self.faults: dict[str, str] = {}
        """What is wrong with files that cannot be read, by path, in words that name file and line."""
        self.edges: set[Edge] = set()

    @property
    def modules(self) -> set[str]:
        """The names of all modules."""
        return {self.name_of(path) for path in self._stamps}

    def refresh(self) -> tuple[list[Edge], list[Edge]]:
        """Read the files that have changed since the last call; return the imports that are gone, and the new ones.

        Raises DataError if the directory is missing or cannot be read.
        """
        found = dict(self._files())
        for path in self._stamps.keys() - found.keys():
            self._imports.pop(self.name_of(path), None)
            self.faults.pop(str(path), None)
        for path, stamp in found.items():
            if self._stamps.get(path) != stamp:
                self._read(path)
        self._stamps = found
        edges = set(self._resolved())
        gone, new = sorted(self.edges - edges), sorted(edges - self.edges)
        self.edges = edges
        return gone, new

    def name_of(self, path: Path) -> str:
        """Return the name of the module in a file."""
        parts = list(path.relative_to(self._root).with_suffix("").parts)
        if (self._root / "__init__.py").exists():
            parts.insert(0, self._root.resolve().name)
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        return ".".join(parts)

    def _files(self) -> Iterator[tuple[Path, Stamp]]:
        """Yield the Python files that have names of modules, in order, and their stamps."""

        def refuse(error: OSError) -> None:
            raise DataError(f"cannot read {error.filename}: {error.strerror}")

        for directory, inner, names in os.walk(self._root, onerror=refuse):
            inner[:] = sorted(name for name in inner if name.isidentifier() and name != "__pycache__")
            for name in sorted(names):
                if name.endswith(".py") and name.removesuffix(".py").isidentifier():
                    path = Path(directory, name)
                    try:
                        stat = path.stat()
                    except OSError:
                        continue  # an editor has just replaced it, or it is a link that leads nowhere
                    yield path, Stamp(stat.st_mtime_ns, stat.st_size)

    def _read(self, path: Path) -> None:
        """Keep the imports of a file, or what is wrong with it."""
        name = self.name_of(path)
        self._imports.pop(name, None)
        self.faults.pop(str(path), None)
        try:
            with tokenize.open(path) as file:  # decodes as Python does
                parsed = ast.parse(file.read(), str(path))
        except SyntaxError as error:
            where = "" if error.lineno is None else f", line {error.lineno}"
            self.faults[str(path)] = f"{path}{where}: {error.msg}"
        except (ValueError, UnicodeDecodeError, RecursionError) as error:
            self.faults[str(path)] = f"{path}: {error}"
        except OSError as error:
            self.faults[str(path)] = f"cannot read {path}: {error.strerror}"
        else:
            is_package = path.name == "__init__.py"
            self._imports[name] = list(_imports(parsed, name, is_package, self._at_import))

    def _resolved(self) -> Iterator[Edge]:
        """Yield the imports between modules of the tree."""
        modules = self.modules
        for name, imports in self._imports.items():
            for statement in imports:
                for target in _targets(statement, modules):
                    if target != name:
                        yield name, target


def _imports(parsed: ast.AST, name: str, is_package: bool, at_import: bool) -> Iterator[Import]:
    """Yield what the import statements of a module name, with relative names made absolute."""
    package = name.split(".") if is_package else name.split(".")[:-1]
    for node in _statements(parsed, at_import):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, ())
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            if node.level and not above:
                continue  # beyond the top of the tree
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield Import(module, tuple(alias.name for alias in node.names))


def _statements(parsed: ast.AST, at_import: bool) -> Iterator[ast.AST]:
    """Yield all nodes but those under `if TYPE_CHECKING:` and, with `at_import`, in functions."""
    # A list instead of recursion: an `elif` is nested in all those before it.
    waiting = [parsed]
    while waiting:
        node = waiting.pop()
        if at_import and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        yield node
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _is_type_checking(test: ast.expr) -> bool:
    """Return whether a condition is `TYPE_CHECKING` or `typing.TYPE_CHECKING`."""
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _targets(statement: Import, modules: set[str]) -> Iterator[str]:
    """Yield the modules that an import reaches."""
    module, names = statement
    if not names:
        parts = module.split(".")
        longest = next((end for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in modules), 0)
        if longest:
            yield ".".join(parts[:longest])
        return
    for name in names:
        if f"{module}.{name}" in modules:
            yield f"{module}.{name}"
        elif module in modules:
            yield module


def shortest_cycle(edges: Iterable[Edge], members: set[str]) -> list[str]:
    """Return a shortest cycle among some modules, from its least module on; of several, the first in order."""
    imports: dict[str, list[str]] = {member: [] for member in sorted(members)}
    for source, target in sorted(edges):
        if source in members and target in members:
            imports[source].append(target)
    best: list[str] = []
    for start in imports:
        cycle = _cycle_through(start, imports, len(best))
        if cycle and (not best or len(cycle) < len(best)):
            best = cycle
    return best


def _cycle_through(start: str, imports: dict[str, list[str]], bound: int) -> list[str]:
    """Return a shortest cycle through a module, if one is shorter than `bound` (0 means no bound), or else nothing."""
    before: dict[str, str] = {start: ""}
    layer, length = [start], 1
    while layer and (not bound or length < bound):
        following = []
        for module in layer:
            for target in imports[module]:
                if target == start:
                    return _way(before, module)
                if target not in before:
                    before[target] = module
                    following.append(target)
        layer, length = following, length + 1
    return []


def _way(before: dict[str, str], module: str) -> list[str]:
    """Return the modules from the start of a search to a module."""
    way = [module]
    while before[way[-1]]:
        way.append(before[way[-1]])
    return way[::-1]
