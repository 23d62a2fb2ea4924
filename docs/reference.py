"""Writes the pages of the reference when the site is built: what the packages make public, with its docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import differential
import differential.graphs
import timely
import timely.graphlinq

PAGES: dict[str, tuple[str, str, ModuleType | type]] = {
    "timely": ("Timely", "What `import timely` gives.", timely),
    "streams": (
        "Operators on streams",
        "Each is a method of `timely.Stream`; the stream itself is the first argument.",
        timely.Stream,
    ),
    "graphlinq": ("GraphLINQ", "What `import timely.graphlinq` gives.", timely.graphlinq),
    "differential": ("Differential", "What `import differential` gives.", differential),
    "collections": (
        "Operators on collections",
        "Each is a method of `differential.Collection`; the collection itself is the first argument.",
        differential.Collection,
    ),
    "graphs": ("Graphs", "What `import differential.graphs` gives: each a definition.", differential.graphs),
}
DESIGN = Path(__file__).parent / "design"
FACADES = (timely.Stream, differential.Collection)
HEADING = re.compile(r"    # (.+)")
OPERATOR = re.compile(r"    (\w+) = _\w+\.\w+")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and a list of the decisions."""
    for name, (title, about, source) in PAGES.items():
        sections = _operators(source) if isinstance(source, type) else _exported(source)
        text = "\n".join([f"# {title}\n\n{about}\n", *sections])
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    files.append(File.generated(config, "design/index.md", content=_decisions()))
    return files


def _decisions() -> str:
    """Return a page that lists the decisions by the first lines of their pages."""
    lines = [(page.name, page.read_text().partition("\n")[0].lstrip("# ")) for page in sorted(DESIGN.glob("*.md"))]
    return "# Decisions\n\n" + "\n".join(f"- [{title}]({name})" for name, title in lines) + "\n"


def _exported(package: ModuleType) -> Iterator[str]:
    for name in package.__all__:
        found = getattr(package, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            yield _entry(found, members=found not in FACADES)


def _operators(facade: type) -> Iterator[str]:
    """Yield the operators a class lists, below the comments that group them."""
    for line in inspect.getsource(facade).splitlines():
        if heading := HEADING.fullmatch(line):
            yield f"## {heading[1]}\n"
        elif operator := OPERATOR.fullmatch(line):
            yield _entry(getattr(facade, operator[1]), level=3)


def _entry(found: Any, level: int = 2, members: bool = True) -> str:
    options = f"    options:\n      heading_level: {level}\n      members: {str(members).lower()}\n"
    return f"::: {found.__module__}.{found.__qualname__}\n{options}"
