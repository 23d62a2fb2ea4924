"""The processes of a run, found by a variable of their environment, and which signals they survive."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

MARK = "SIGNALS_FUZZER_RUN"
"""The variable whose value distinguishes the processes of one run from all others."""


def marked(value: str) -> Iterator[int]:
    """Yield the processes of a run that are alive: neither ended nor waiting for their parent to take note."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and environ_of(int(entry.name)).get(MARK) == value and _is_alive(entry):
            yield int(entry.name)


def child(launcher: int, index: int) -> int | None:
    """Return the process with this index that a launcher has started, once it runs Python."""
    for pid in _children(launcher):
        if b"timely.run.launched" in _read(pid, "cmdline") and environ_of(pid).get("TIMELY_PROCESS") == str(index):
            return pid
    return None


def environ_of(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with; none where it has ended."""
    pairs = (pair.partition(b"=") for pair in _read(pid, "environ").split(b"\0"))
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}


def survives(pid: int, signum: signal.Signals) -> bool:
    """Return whether a process blocks, ignores or handles a signal."""
    sets = {b"SigBlk:", b"SigIgn:", b"SigCgt:"}
    fields = (line.split() for line in _read(pid, "status").splitlines())
    return any(int(field[1], 16) >> (signum - 1) & 1 for field in fields if field and field[0] in sets)


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _is_alive(entry: Path) -> bool:
    return (_read(int(entry.name), "stat").rpartition(b")")[2].split() or [b"Z"])[0] != b"Z" and os.path.exists(entry)
