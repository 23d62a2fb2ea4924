"""Import scripts and the modules of `examples/`, which find each other beside the script; make small upgrades."""

from __future__ import annotations

import gzip
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"


def example_module(name: str) -> Any:
    """Return a module of `examples/`."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    return importlib.import_module(name)


def module_at(path: Path) -> ModuleType:
    """Return the module that a script is when it is not run."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_rows(path: Path, rows: Iterable[Iterable[object]]) -> Path:
    """Write tab-separated rows, compressed if the name ends in `.gz`; return the path."""
    text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_random_upgrade(directory: Path, seed: int, packages: int = 12, steps: int = 25) -> tuple[Path, Path]:
    """Write a small upgrade with cycles and loops, in which packages come and go; return both files."""
    random = Random(seed)
    names = [f"p{number:02}" for number in range(packages)]
    every = [(package, needed) for package in names for needed in names]
    edges = set(random.sample(every, packages))
    initial = sorted(edges)
    rows = []
    for step in range(1, steps + 1):
        for edge in random.sample(every, random.randint(1, 6)):
            rows.append((step, "-" if edge in edges else "+", *edge))
            edges ^= {edge}
        if random.random() < 0.2:
            for edge in sorted(edges)[: random.randint(1, packages)]:
                rows.append((step, "-", *edge))
                edges.remove(edge)
    return write_rows(directory / "initial.tsv.gz", initial), write_rows(directory / "steps.tsv.gz", rows)
