"""The memory of this process that is resident: what it is, the most it was, and having some at hand."""

from __future__ import annotations

import mmap
from pathlib import Path
from resource import RUSAGE_SELF, getrusage


def resident() -> int:
    """Return the bytes that are resident or, where the system does not say, the most that were."""
    return _status("VmRSS")


def peak() -> int:
    """Return the most bytes that were resident, since the peak was forgotten if it could be."""
    return _status("VmHWM")


def forget_peak() -> int:
    """Start to measure the peak anew where the system lets us; return the bytes from which it begins."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak()
    return resident()


def have_at_hand(size: int) -> None:
    """Use so many bytes once, and give them back to the system.

    The host of a virtual machine may take free memory away after seconds. To get it again takes up to 2 ms a MB, 20
    times as long as the system itself takes: as long as many things that are measured.
    """
    with mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1


def _status(name: str) -> int:
    """Return a figure of the process's status, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return getrusage(RUSAGE_SELF).ru_maxrss * 1024
