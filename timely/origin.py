"""Where in the user's program something was created or went wrong: the innermost line of the user's own code.

Code of this library and of Python is never the user's. For errors, neither is code of installed packages: NumPy raises
for what a user's function asked of it. A line in a notebook is named by its cell, not by the file that stands for it.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import FrameType, TracebackType
from typing import NamedTuple

_PACKAGES = tuple(
    os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), package) + os.sep
    for package in ("timely", "differential")
)

_COMPILED = ("timely" + os.sep, "differential" + os.sep)
"""Compiled modules name their source files relative to the directory of the build (see `hatch_build.py`)."""

_MODULES = ("timely.", "differential.")

_PYTHON = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib"))
_INSTALLED = tuple(sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib"))


class Origin(NamedTuple):
    """A line of source code."""

    file: str
    line: int

    def __str__(self) -> str:
        cell = _cell(self.file)
        return f"{self.file}:{self.line}" if cell is None else f"{cell}, line {self.line}"


def _cell(file: str) -> str | None:
    """Return IPython's name for a cell, such as `Cell In[3]`, given its file name in Python; None for other files."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return None if named is None else " ".join(named)


def is_ours(file: str) -> bool:
    """Return whether a source file belongs to this library."""
    return file.startswith(_PACKAGES) or file.startswith(_COMPILED)


def is_installed(file: str) -> bool:
    """Return whether a source file is part of Python or of an installed package, or has no source to show."""
    return _is_python(file) or _is_packaged(file) or (file.startswith("<") and not linecache.getline(file, 1))


@cache
def _is_packaged(file: str) -> bool:
    """Return whether a source file belongs to an installed package, or is a Cython source that is not here."""
    return file.startswith(_INSTALLED) or (file.endswith((".pyx", ".pxd")) and not os.path.exists(file))


@cache
def _is_python(file: str) -> bool:
    """Return whether a source file is Python's own; installed packages may be in a directory below."""
    return file.startswith("<frozen") or (file.startswith(_PYTHON) and not file.startswith(_INSTALLED))


def _is_generated(frame: FrameType) -> bool:
    """Return whether a frame is of a method that `dataclass` has made for a class of this library."""
    return frame.f_code.co_filename == "<string>" and frame.f_globals.get("__name__", "").startswith(_MODULES)


def user_origin() -> Origin:
    """Return the innermost line of the call stack that is neither this library's nor Python's."""
    origin = _instead.get()
    if origin is not None:
        return origin
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (
        is_ours(frame.f_code.co_filename) or _is_python(frame.f_code.co_filename) or _is_generated(frame)
    ):
        frame = frame.f_back
    if frame is None:
        return _attributed.get() or Origin("<unknown>", 0)
    return Origin(frame.f_code.co_filename, frame.f_lineno)


_attributed: ContextVar[Origin | None] = ContextVar("attributed", default=None)
"""The origin of what a thread builds for a line that is not on its call stack."""


_instead: ContextVar[Origin | None] = ContextVar("instead", default=None)
"""The origin of what is built later than the line that asked for it, although another line is on the call stack."""


@contextmanager
def attributed(origin: Origin, *, always: bool = False) -> Iterator[None]:
    """Let `user_origin` return an origin where no line of the program is on the call stack of this thread, or `always`.

    A layer uses this if it builds a dataflow in one thread for a statement that was made in another one. It uses
    `always` if it builds operators later than the line that asked for them.

    >>> with attributed(Origin("cell.py", 7)):
    ...     print(user_origin().line)  # of this example, which is on the call stack
    2
    >>> with attributed(Origin("cell.py", 7), always=True):
    ...     print(user_origin().line)
    7
    """
    variable = _instead if always else _attributed
    token = variable.set(origin)
    try:
        yield
    finally:
        variable.reset(token)


def raised_at(traceback: TracebackType | None) -> Origin | None:
    """Return the innermost line of user code in a traceback; None if the traceback never leaves this library.

    If only functions of installed packages ran, this is the outermost line of theirs.
    """
    found: Origin | None = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not is_ours(file) and not _is_python(file) and (found is None or not _is_packaged(file)):
            found = Origin(file, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
