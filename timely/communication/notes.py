"""Notes between the launcher and its processes: short files in the private directory of a run.

- `report.I`, by process I: why it ends, if the cause lies with a peer, which reports it (see `failure`).
- `ending.I`, by process I: it has begun to end in order, so it is running Python code and may take time to clean up.
- `fate.I`, by the launcher: process I has ended or is stopped, so peers need not wait for it any longer.

A process finds the directory by the path of its report. Without a launcher there are no notes. Processes that a
cluster's system starts learn the fates of others in another way, and declare them here (`declare_fate`), as a session
does for the processes that it starts.

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
"""Names the file to which a process that ends because of a peer writes its message, instead of printing it."""


class Notes:
    """The notes of a run, as the launcher reads and writes them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def report(self, process: int) -> Path:
        return self._directory / f"report.{process}"

    def has_begun_to_end(self, process: int) -> bool:
        return (self._directory / f"ending.{process}").exists()

    def write_fate(self, process: int, text: str) -> None:
        """Note for its peers what has become of a process; an empty text withdraws the note."""
        path = self._directory / f"fate.{process}"
        with suppress(OSError):  # such as a full disk: then its peers wait as long as without a note
            if text:
                complete = path.with_suffix(".new")
                complete.write_text(text)
                complete.replace(path)  # in one step, so that no process reads a part of it
            else:
                path.unlink(missing_ok=True)


def begin_to_end() -> None:
    """Note for the launcher, if there is one, that this process has begun to end in order."""
    report = os.environ.get(REPORT_VARIABLE)
    if report:
        with suppress(OSError):  # the launcher has ended and removed its directory
            Path(report).with_name(f"ending.{Path(report).suffix[1:]}").touch()


_declared: dict[tuple[str, int], str] = {}


def declare_fate(process: int, text: str, generation: str = "") -> None:
    """Record within this process, as a verb phrase, why another one cannot meet its peers. Any thread may call this.

    It concerns the runs of one `generation` alone (`Config.generation`), or of all; an empty text withdraws it.
    """
    if text:
        _declared[generation, process] = text
    else:
        _declared.pop((generation, process), None)


_has_prefixes = False


def declare_prefixes() -> None:
    """Record within this process that the launcher puts its number in front of each line of its standard output."""
    global _has_prefixes
    _has_prefixes = True


def has_prefixes() -> bool:
    """Return whether the lines of standard output get a prefix, so that other programs cannot read it as data."""
    return _has_prefixes


def fate_of(process: int, generation: str = "") -> str:
    """Return, as a verb phrase, why a process is known not to meet its peers; empty if nothing is known.

    `generation` is that of a call of `execute`, which has a number of its own after that of the configuration.
    """
    declared = _declared.get((generation.rpartition(".")[0], process)) or _declared.get(("", process))
    if declared:
        return declared
    report = os.environ.get(REPORT_VARIABLE)
    if report:
        with suppress(OSError):
            return Path(report).with_name(f"fate.{process}").read_text()
    return ""
