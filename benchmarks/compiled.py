"""The modules of both packages that were compiled to C in place (`hatch_build.py`)."""

from __future__ import annotations

from pathlib import Path

import differential
import timely

COMPILED = {
    file: file.with_name(file.name.partition(".")[0] + ".py")
    for package in (timely, differential)
    for file in Path(package.__path__[0]).rglob("*.so")
}
"""The extension modules, each with its source."""


def stale() -> str | None:
    """Return what to do if an extension module, which runs instead of its source, is older than that; else None."""
    for file, source in COMPILED.items():
        if not source.exists() or file.stat().st_mtime < source.stat().st_mtime:
            return f"{file} is older than its source: compile again, or delete it and the others like it"
    return None
