"""What the launcher and its processes know of each other: short files in the private directory of a run.

- `report.I`, by process I: why it ends, where the cause is a peer's to tell (see `failure`);
- `ending.I`, by process I: it has begun to end in order, and so runs Python code and takes time to clean up;
- `fate.I`, by the launcher: process I has ended, or is stopped; a peer that waits for it need not wait longer.

The path of its report tells a process where the directory is. A process without a launcher finds and leaves nothing.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as directory:
...     notes = Notes(Path(directory))
...     notes.write_fate(1, "is stopped")
...     os.environ[REPORT_VARIABLE] = str(notes.report(0))
...     fate_of(1), fate_of(2), notes.has_begun_to_end(0), begin_to_end(), notes.has_begun_to_end(0)
('is stopped', '', False, None, True)
>>> del os.environ[REPORT_VARIABLE]
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

REPORT_VARIABLE = "TIMELY_REPORT"
"""Names the file where a process that ends because of a peer leaves its message, instead of printing it."""


class Notes:
    """The notes of a run, as the launcher reads and writes them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def report(self, process: int) -> Path:
        """Return where a process leaves its report."""
        return self._directory / f"report.{process}"

    def has_begun_to_end(self, process: int) -> bool:
        """Return whether a process has begun to end in order."""
        return (self._directory / f"ending.{process}").exists()

    def write_fate(self, process: int, text: str) -> None:
        """Leave for its peers what has become of a process; an empty text takes it back."""
        path = self._directory / f"fate.{process}"
        with suppress(OSError):  # the disk is full: then its peers wait as long as without a note
            if text:
                complete = path.with_suffix(".new")
                complete.write_text(text)
                complete.replace(path)
            else:
                path.unlink(missing_ok=True)


def begin_to_end() -> None:
    """Report to the launcher, if there is one, that this process has begun to end in order."""
    report = os.environ.get(REPORT_VARIABLE)
    if report:
        with suppress(OSError):  # the launcher has ended, and removed its directory
            Path(report).with_name(f"ending.{Path(report).suffix[1:]}").touch()


def fate_of(process: int) -> str:
    """Return what the launcher reports of a process that can meet nobody, as a verb phrase; else an empty text."""
    report = os.environ.get(REPORT_VARIABLE)
    if report:
        with suppress(OSError):
            return Path(report).with_name(f"fate.{process}").read_text()
    return ""
