"""Write the pages of the reference when the site is built: the public names of the packages, with their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import differential
import differential.capture
import differential.delta
import differential.durable
import differential.graphs
import differential.session
import differential.session.sinks
import differential.session.sinks.kafka
import differential.session.sinks.postgresql
import differential.session.sources
import differential.session.sources.kafka
import differential.session.sources.postgresql
import timely
import timely.capture
import timely.errors
import timely.graphlinq
import timely.observe.events
import timely.order
import timely.progress

PAGES: dict[str, tuple[str, ModuleType | type]] = {
    "timely": ("Timely", timely),
    "streams": ("Operators on streams", timely.Stream),
    "scopes": ("Operators on scopes", timely.Scope),
    "order": ("The order of times", timely.order),
    "progress": ("Progress tracking", timely.progress),
    "capture": ("Captured streams", timely.capture),
    "graphlinq": ("GraphLINQ", timely.graphlinq),
    "events": ("Events of the log", timely.observe.events),
    "errors": ("Errors", timely.errors),
    "differential": ("Differential", differential),
    "collections": ("Operators on collections", differential.Collection),
    "session": ("Sessions", differential.session),
    "sources": ("Sources of sessions", differential.session.sources),
    "sinks": ("Sinks of sessions", differential.session.sinks),
    "source-postgresql": ("PostgreSQL as a source", differential.session.sources.postgresql),
    "sink-postgresql": ("PostgreSQL as a sink", differential.session.sinks.postgresql),
    "source-kafka": ("Kafka as a source", differential.session.sources.kafka),
    "sink-kafka": ("Kafka as a sink", differential.session.sinks.kafka),
    "captured-collections": ("Captured collections", differential.capture),
    "durable": ("Durable collections", differential.durable),
    "delta": ("Delta queries", differential.delta),
    "graphs": ("Graphs", differential.graphs),
}
LOWLEVEL = """# Below streams

::: timely.lowlevel
    options:
      heading_level: 2
      members: false

::: differential.lowlevel
    options:
      heading_level: 2
      members: false

::: timely.services
    options:
      heading_level: 2
      members: false
"""
"""The contracts for layers on top. Their names have their entries elsewhere, or are explained there."""
DESIGN = Path(__file__).parent / "design"
CORES = ("differential.", "timely.dataflow.", "timely.graphlinq.")
FACADES = (timely.Stream, differential.Collection)
HEADING = re.compile(r"    # (.+)")
OPERATOR = re.compile(r"    (\w+) = _\w+\.\w+")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and a list of the decisions."""
    for name, (title, source) in PAGES.items():
        sections = _operators(source) if isinstance(source, type) else _exported(source)
        files.append(File.generated(config, f"reference/{name}.md", content="\n".join([f"# {title}\n", *sections])))
    files.append(File.generated(config, "reference/lowlevel.md", content=LOWLEVEL))
    files.append(File.generated(config, "design/index.md", content=_decisions()))
    return files


def _decisions() -> str:
    """Return a page that lists the decisions by the titles of their pages."""
    lines = [(page.name, page.read_text().partition("\n")[0].lstrip("# ")) for page in sorted(DESIGN.glob("*.md"))]
    return "# Decisions\n\n" + "\n".join(f"- [{title}]({name})" for name, title in lines) + "\n"


def _exported(module: ModuleType) -> Iterator[str]:
    """Yield the names that a module exports or, if it has no `__all__`, the names that it defines."""
    yield f"The public names of `{module.__name__}`.\n"
    own = [name for name, found in vars(module).items() if getattr(found, "__module__", "") == module.__name__]
    for name in getattr(module, "__all__", own):
        found = getattr(module, name)
        if getattr(found, "__module__", "") == timely.errors.__name__ and module is not timely.errors:
            continue  # an object has one entry, and errors have a page of their own
        if found is differential.Session and module is differential:
            continue  # the same: sessions have theirs
        if module is timely.progress and name in timely.__all__:
            continue  # the same: the names that programs use are with those of `timely`
        if not name.startswith("_") and (inspect.isclass(found) or inspect.isfunction(found)):
            yield _entry(found)


def _operators(facade: type) -> Iterator[str]:
    """Yield the methods of a class, and the operators that it lists, under the comments that group them."""
    noun = facade.__name__
    yield f"Each operator is a method of `{noun}`; its first argument is the {noun.lower()} on which it is called.\n"
    own = [name for name, found in vars(facade).items() if _is_public_method(facade, name, found)]
    if own and facade in FACADES:  # the entry of another class has its methods
        yield f"## {noun}\n"
        yield from (_entry(getattr(facade, name), level=3) for name in own)
    for line in inspect.getsource(facade).splitlines():
        if heading := HEADING.fullmatch(line):
            yield f"## {heading[1]}\n"
        elif operator := OPERATOR.fullmatch(line):
            yield _entry(getattr(facade, operator[1]), level=3)


def _is_public_method(owner: type, name: str, found: object) -> bool:
    is_method = inspect.isfunction(found) or isinstance(found, classmethod)
    return is_method and not name.startswith("_") and found.__qualname__.startswith(f"{owner.__qualname__}.")


def _entry(found: Any, level: int = 2) -> str:
    options = f"    options:\n      heading_level: {level}\n"
    if found in FACADES:
        options += "      members: false\n"
    if inspect.isclass(found) and any(base.__module__.startswith(CORES) for base in found.__mro__[1:]):
        options += "      inherited_members: true\n"  # a facade lists the operators, and its core has the rest
    if hasattr(found, "_fields") or is_dataclass(found):
        options += "      show_if_no_docstring: true\n"  # the fields
    return f"::: {found.__module__}.{found.__qualname__}\n{options}"
