"""What of both packages was compiled to C in place (`hatch_build.py`)."""

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
    """Return what to do where an extension module, which runs in its source's place, is not made of that."""
    for file, source in COMPILED.items():
        if not source.exists() or file.stat().st_mtime < source.stat().st_mtime:
            return f"{file} is older than its source: compile again, or delete it and its like"
    return None
