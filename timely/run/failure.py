"""How a failed run looks to the person who started it.

An error of this library that nobody catches ends the script, or a notebook's cell, with its message and the user's own
lines, not with a traceback through our internals. A worker that ends only because another one failed stays in the
background: it exits with status `PEER_FAILED`, and under `timely run` it leaves its message with the launcher, which
shows it only if no process has a cause of its own to tell.
"""

from __future__ import annotations

import hashlib
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from timely.communication.notes import REPORT_VARIABLE
from timely.errors import PeerFailed, TimelyError
from timely.origin import Origin, is_installed, is_ours, raised_at

FAILED = 1
"""Exit status of a process that has told why."""

PEER_FAILED = 3
"""Exit status of a process that ends because a peer failed or is gone."""

THREADS_SECONDS = 2.0
"""How long the threads of a failed or interrupted process get to end; those stuck in user code are left behind."""

_SHOWN_FRAMES = 4
_SAID_CHARACTERS = 10_000

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def describe(error: BaseException) -> str:
    """Return an error in a line, for the workers that end because of it; of a very long one, the beginning."""
    if isinstance(error, TimelyError):
        return _cut(str(error))
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code
        return f"it ended with status {code}" if isinstance(code, int) else _cut(str(code)).removeprefix("timely: ")
    origin = raised_at(error.__traceback__)
    where = f" ({origin})" if origin is not None else ""
    return f"{_cut(''.join(traceback.format_exception_only(error)).strip())}{where}"


def _cut(text: str) -> str:
    """Return a text that fits into the smallest frame there may be."""
    return text if len(text) <= _SAID_CHARACTERS else f"{text[:_SAID_CHARACTERS]} ..."


def message(error: TimelyError) -> str:
    """Return what is printed about an uncaught error: what it says, the user's lines it came from, what came before."""
    lines = [f"timely: {error}"]
    raised = error.__cause__ if error.__cause__ is not None else error
    frames = user_frames(raised.__traceback__) or user_frames(error.__traceback__)
    for frame in frames[-_SHOWN_FRAMES:]:
        lines.append(f"  {Origin(frame.filename, frame.lineno or 0)}, in {frame.name}")
        if frame.line:
            lines.append(f"    {frame.line}")
    before = raised.__context__
    if before is not None and not raised.__suppress_context__:
        lines.append(f"  after {describe(before)}")
    return "\n".join(lines)


def user_frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    """Return the frames of a traceback that are neither ours nor of anything installed."""
    return [
        frame
        for frame in traceback.extract_tb(trace)
        if not is_ours(frame.filename) and not is_installed(frame.filename)
    ]


def fail(text: str) -> int:
    """Print `text` on stderr, unless another process of this run has said the same; return the status to exit with.

    All processes of a run read the same files and options, so most mistakes in them are found by all at once. A script
    ends with `sys.exit(fail(...))`.

    >>> from contextlib import redirect_stderr
    >>> with redirect_stderr(sys.stdout):
    ...     fail("edges.csv: line 7 has no target")
    edges.csv: line 7 has no target
    1
    """
    report = os.environ.get(REPORT_VARIABLE)
    written = text.encode(errors="backslashreplace")
    if report:
        said = Path(report).with_name(f"said.{hashlib.blake2b(written, digest_size=8).hexdigest()}")
        try:
            said.touch(exist_ok=False)
        except FileExistsError:
            leave_report(text.partition("\n")[0].removeprefix("timely: "))
            return PEER_FAILED
        except OSError:
            pass  # The launcher has gone, and its directory with it.
    print(written.decode(), file=sys.stderr)
    return FAILED


def leave_report(text: str) -> bool:
    """Leave with the launcher why this process ends, as its peers are to tell; return whether there is a launcher.

    A process with status `PEER_FAILED` that has left no report has that status from the program.
    """
    report = os.environ.get(REPORT_VARIABLE)
    if report:
        with suppress(OSError):  # the launcher has gone, and its directory with it
            Path(report).write_text(text, errors="backslashreplace")
    return bool(report)


def install_hook() -> None:
    """Let uncaught errors of this library end the program as described above; leave all others to the former hook."""
    if not isinstance(sys.excepthook, UncaughtHook):
        sys.excepthook = UncaughtHook(sys.excepthook)
    TimelyError._render_traceback_ = _shown  # IPython, which has a hook of its own, asks an error for this


def _shown(error: TimelyError) -> list[str]:
    """Return the lines that a notebook shows for an error."""
    return [*message(error).splitlines(), *_notes(error)]


def _notes(error: TimelyError) -> list[str]:
    return [f"  {note}" for note in getattr(error, "__notes__", ())]


class UncaughtHook:
    """A `sys.excepthook` for errors of this library, in front of another hook."""

    def __init__(self, former: Hook) -> None:
        self._former = former

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, PeerFailed):
            self._leave(error)
        elif isinstance(error, TimelyError):
            status = fail(message(error))
            if status != FAILED:
                self._exit(status)
                return
            for note in _notes(error):  # no part of the message, for other processes have others
                print(note, file=sys.stderr)
        else:
            self._former(kind, error, trace)

    def _leave(self, error: PeerFailed) -> None:
        if not leave_report(str(error)):
            print(f"timely: {error}", file=sys.stderr)
        self._exit(PEER_FAILED)

    def _exit(self, status: int) -> None:
        if not hasattr(sys, "ps1") and not sys.flags.interactive:
            raise SystemExit(status)
