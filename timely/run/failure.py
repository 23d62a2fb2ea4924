"""How a failed run is presented to the person who started it.

An uncaught error of this library ends the script, or the cell of a notebook, with its message and the user's own lines
instead of a traceback through this library. A worker that ends only because another one failed stays in the background:
its process exits with status `PEER_FAILED`. Under `timely run` it leaves its message with the launcher, which prints
the message only if no process reports a cause of its own.
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
from timely.observe.notices import print_error
from timely.origin import Origin, is_installed, is_ours, raised_at

FAILED = 1
"""Exit status of a process that has reported why."""

USAGE_ERROR = 2
"""Exit status of a command that refuses its arguments, and would refuse them again."""

PEER_FAILED = 3
"""Exit status of a process that ends because a peer failed or is gone."""

THREADS_SECONDS = 2.0
"""How long the threads of a failed or interrupted process have to end; those stuck in user code are abandoned."""

_SHOWN_FRAMES = 4
_LONGEST_TEXT = 10_000

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def describe(error: BaseException) -> str:
    """Return an error in one line, for the workers that end because of it; a very long text is truncated."""
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
    """Return a text truncated to fit into the smallest frame that can be configured."""
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} ..."


def message(error: TimelyError) -> str:
    """Return what is printed about an uncaught error: its text, the user's lines, and the error that preceded it."""
    lines = [f"timely: {error}"]
    raised = error.__cause__ if error.__cause__ is not None else error
    called = user_frames(error.__traceback__)
    frames = user_frames(raised.__traceback__)[-_SHOWN_FRAMES:] or called[-_SHOWN_FRAMES:]
    lines_shown = {(frame.filename, frame.lineno) for frame in frames}
    if called and (called[-1].filename, called[-1].lineno) not in lines_shown:
        frames = [called[-1], *frames]  # the line that has called this library, as `db.ask` of a definition elsewhere
    for frame in frames:
        lines.append(f"  {Origin(frame.filename, frame.lineno or 0)}, in {frame.name}")
        if frame.line:
            lines.append(f"    {frame.line}")
    before = raised.__context__
    if before is not None and not raised.__suppress_context__:
        lines.append(f"  after {describe(before)}")
    return "\n".join(lines)


def user_frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    """Return the frames of a traceback that are neither this library's nor an installed package's."""
    return [
        frame
        for frame in traceback.extract_tb(trace)
        if not is_ours(frame.filename) and not is_installed(frame.filename)
    ]


def fail(text: str) -> int:
    """Print `text` on stderr, unless another process of this run has printed it; return the status to exit with.

    All processes of a run read the same files and options, so most mistakes in them are found by all processes at once.
    A script ends with `sys.exit(fail(...))`.

    >>> from contextlib import redirect_stderr
    >>> with redirect_stderr(sys.stdout):
    ...     fail("edges.csv: line 7 has no target")
    edges.csv: line 7 has no target
    1
    """
    report = os.environ.get(REPORT_VARIABLE)
    written = text.encode(errors="backslashreplace")
    if report:
        printed = Path(report).with_name(f"printed.{hashlib.blake2b(written, digest_size=8).hexdigest()}")
        try:
            # The file system decides which of the processes is the first.
            with printed.open("x") as note:
                note.write(str(os.getpid()))
        except FileExistsError:
            if not _has_printed(printed):
                leave_report(text.partition("\n")[0].removeprefix("timely: "))
                return PEER_FAILED
        except OSError:
            pass  # the launcher has ended and removed its directory
    print_error(written.decode())
    return FAILED


def _has_printed(note: Path) -> bool:
    """Return whether it was this process that has left the note of a printed text."""
    with suppress(OSError):
        return note.read_text() == str(os.getpid())
    return False


def leave_report(text: str) -> bool:
    """Leave a message with the launcher if a peer is to report why this process ends; return whether there is one.

    If a process ends with status `PEER_FAILED` and without a report, the program itself has set this status.
    """
    report = os.environ.get(REPORT_VARIABLE)
    if report:
        with suppress(OSError):  # the launcher has ended and removed its directory
            Path(report).write_text(text, errors="backslashreplace")
    return bool(report)


def install_hook() -> None:
    """Make uncaught errors of this library end the program as described above; all others go to the previous hook."""
    if not isinstance(sys.excepthook, UncaughtHook):
        sys.excepthook = UncaughtHook(sys.excepthook)
    TimelyError._render_traceback_ = _shown  # IPython has its own hook, which calls this method


def _shown(error: TimelyError) -> list[str]:
    """Return the lines that a notebook shows for an error."""
    return [*message(error).splitlines(), *_notes(error)]


def _notes(error: TimelyError) -> list[str]:
    return [f"  {note}" for note in getattr(error, "__notes__", ())]


class UncaughtHook:
    """A `sys.excepthook` for errors of this library, in front of the previous hook."""

    def __init__(self, former: Hook) -> None:
        self._former = former

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, PeerFailed):
            if not leave_report(str(error)):
                print_error(f"timely: {error}")
            self._exit(PEER_FAILED)
        elif isinstance(error, TimelyError):
            status = fail(message(error))
            if status != FAILED:
                self._exit(status)
                return
            for note in _notes(error):  # not part of the message, since the notes of other processes differ
                print_error(note)
        else:
            self._former(kind, error, trace)

    def _exit(self, status: int) -> None:
        if not hasattr(sys, "ps1") and not sys.flags.interactive:
            raise SystemExit(status)
