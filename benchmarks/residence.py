"""The resident memory of this process: its size, its peak, and how to touch memory before it is needed."""

from __future__ import annotations

import mmap
from pathlib import Path
from resource import RUSAGE_SELF, getrusage


def resident() -> int:
    """Return the resident bytes or, if the system does not report them, their peak."""
    return _status("VmRSS")


def peak() -> int:
    """Return the peak of the resident bytes, since the last `forget_peak` if the system supports that."""
    return _status("VmHWM")


def forget_peak() -> int:
    """Restart the measurement of the peak if the system supports it; return the bytes at which it starts."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak()
    return resident()


def have_at_hand(size: int) -> None:
    """Touch that many bytes once, and return them to the system.

    The host of a virtual machine may reclaim free memory after seconds. Providing it again takes up to 2 ms a MB, 20
    times as long as the system itself takes, and as long as many of the measured workloads.
    """
    with mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1


def _status(name: str) -> int:
    """Return a field of the process's status, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return getrusage(RUSAGE_SELF).ru_maxrss * 1024
