"""Show the output of several processes on one terminal, each line with the prefix of its process.

Lines are kept whole: an unfinished line is held back for a moment, in case the rest follows. A prompt or a progress
line (text after a carriage return) is then shown unfinished; if another process writes meanwhile, its output starts on
a new line. After a carriage return a line may be overwritten on a terminal; in a file, a new line starts.

What programs write for other programs to read is passed on byte for byte instead (`Raw`).
"""

from __future__ import annotations

import re
import select
from collections.abc import Callable
from typing import IO

PARTIAL_SECONDS = 0.1
_LONGEST_HELD = 1 << 16
_PIECES = re.compile(rb"[^\r\n]+|\r?\n|\r")
_LAST_END = re.compile(rb".*(\n|\r(?=[^\n]))", re.DOTALL)


class Terminal:
    """An output shared by several `Lines`; None discards their text. `trouble` is why nothing more can be written.

    `wait` is called before each write. It returns when the output accepts some bytes, or returns False if the output
    is to be given up; then what it has not accepted is discarded, and so is all later text.
    """

    def __init__(self, output: IO[bytes] | None, wait: Callable[[IO[bytes]], bool] = lambda output: True) -> None:
        self._output = output
        self._wait = wait
        self._overwrites = output is not None and output.isatty()
        self._unfinished: Lines | None = None
        self.trouble: OSError | None = None

    def write(self, lines: Lines, text: bytes) -> None:
        """Write the output of one process, unless writing has failed before."""
        if self._output is None or self.trouble is not None:
            return
        self.pass_on(b"".join(self._place(lines, piece) for piece in _PIECES.findall(text)))

    def pass_on(self, data: bytes) -> None:
        """Write bytes as they are, unless writing has failed before."""
        if self._output is None or self.trouble is not None:
            return
        left = memoryview(data)
        try:
            while left:
                if not self._wait(self._output):
                    self._output = None
                    return
                # A pipe that is ready accepts this many bytes without blocking. An unbuffered output may write only a
                # part of them, or nothing.
                left = left[self._output.write(left[: select.PIPE_BUF]) or 0 :]
            self._output.flush()
        except OSError as error:
            self.trouble = error

    def _place(self, lines: Lines, piece: bytes) -> bytes:
        """Return the bytes that put a piece of text, a line's end or a carriage return in its place."""
        own = self._unfinished is lines
        if piece == b"\r":
            lines.returned = own
            return b""
        if piece.endswith(b"\n"):
            return self._end_line(lines, own)
        start = b"" if self._unfinished is None else b"\n"
        if own and not lines.returned:
            prefix = start = b""
        else:
            prefix = lines.prefix
        if own and lines.returned and self._overwrites:
            start = b"\r\x1b[K"
        self._cut(lines)
        self._unfinished, lines.returned, lines.cut = lines, False, False
        return start + prefix + piece

    def _end_line(self, lines: Lines, own: bool) -> bytes:
        if own:
            self._unfinished = None
            return b"\n"
        if lines.cut:
            lines.cut = False  # the other process's text has ended the line already
            return b""
        start = b"" if self._unfinished is None else b"\n"
        self._cut(lines)
        self._unfinished = None
        return start + lines.prefix + b"\n"

    def _cut(self, lines: Lines) -> None:
        if self._unfinished not in (None, lines):
            self._unfinished.cut = True


class Lines:
    """One output of one process. `returned`: its line may be overwritten; `cut`: another process has ended it."""

    def __init__(self, prefix: bytes, terminal: Terminal) -> None:
        self.prefix = prefix
        self.returned = False
        self.cut = False
        self._terminal = terminal
        self._held = b""
        self._since = 0.0

    def feed(self, data: bytes, now: float) -> None:
        """Accept what the process wrote, and show the lines that are complete."""
        self._held += data
        self._since = now
        complete = _LAST_END.match(self._held)
        end = len(self._held) if len(self._held) > _LONGEST_HELD else complete.end() if complete else 0
        if end:
            self._terminal.write(self, self._held[:end])
            self._held = self._held[end:]

    def release(self, now: float, patience: float = PARTIAL_SECONDS) -> None:
        """Show what has been held back for long enough. A carriage return waits for what follows it."""
        if self._held.strip(b"\r") and now >= self._since + patience:
            text = self._held.rstrip(b"\r")
            self._terminal.write(self, text)
            # Carriage returns stay, in case a line end follows.
            self._held = self._held[len(text) :]


class Raw:
    """One output of one process, passed on as it is and at once."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def feed(self, data: bytes, _: float) -> None:
        self._terminal.pass_on(data)

    def release(self, now: float, patience: float = 0.0) -> None:
        """Do nothing: nothing is held back."""
