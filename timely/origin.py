"""Where in the user's program something was made: the innermost source line outside this library."""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType
from typing import NamedTuple

_PACKAGES = tuple(
    os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), package) + os.sep
    for package in ("timely", "differential")
)


class Origin(NamedTuple):
    """A line of source code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def is_ours(file: str) -> bool:
    """Return whether a source file belongs to this library."""
    return file.startswith(_PACKAGES)


def user_origin() -> Origin:
    """Return the innermost line of the current call stack that is not ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return Origin("<unknown>", 0) if frame is None else Origin(frame.f_code.co_filename, frame.f_lineno)


def raised_at(traceback: TracebackType | None) -> Origin | None:
    """Return the innermost user line of a traceback, or None when it never left this library."""
    found: Origin | None = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not is_ours(file) and not file.startswith("<frozen"):
            found = Origin(file, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
