"""The memory of this process that is resident: what it is, and the most it was."""

from __future__ import annotations

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
