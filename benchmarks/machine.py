"""What the figures were measured with: the commit, the machine, and the versions of what is installed."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sysconfig
import time as clock
from pathlib import Path
from typing import Any

from benchmarks.compiled import COMPILED
from benchmarks.harness import ROOT

LIBRARIES = ("numpy", "numba", "scipy", "pyzmq")
PEERS = ("networkx", "igraph", "pathway", "bytewax", "duckdb", "polars")


def document() -> dict[str, Any]:
    """Return the commit, the machine and the versions, in the JSON form of a run."""
    return {
        "commit": _commit(),
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "compiled": bool(COMPILED),
        "build": _build(),
        "versions": {"python": platform.python_version()} | _versions(LIBRARIES) | _versions(PEERS),
    }


def described(found: dict[str, Any]) -> str:
    """Return a document as text of one line."""
    machine, versions = found["machine"], dict(found["versions"])
    compiled = "compiled" if found["compiled"] else "not compiled"
    python = f"{versions.pop('python')} ({found['build']})"
    others = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"{machine['processor']}, {machine['cores']} cores; Python {python}; {others}; "
        f"commit {found['commit']}, {compiled}"
    )


def in_short(found: dict[str, Any]) -> str:
    """Return a document as a shorter text, without the libraries that few pictures need."""
    machine, versions = found["machine"], found["versions"]
    compiled = "compiled" if found["compiled"] else "not compiled"
    libraries = ", ".join(f"{name} {versions[name]}" for name in ("numpy", "numba") if name in versions)
    return (
        f"{machine['processor']}, {machine['cores']} cores; Python {versions['python']} ({found['build']}), "
        f"{libraries}; commit {found['commit']}, {compiled}"
    )


def _build() -> str:
    """Return how Python was built: without optimisation guided by profiles (PGO) a change takes some 15 % longer."""
    given = sysconfig.get_config_var("CONFIG_ARGS") or ""
    flags = {"--enable-optimizations": "PGO", "--with-lto": "LTO"}
    found = [name for flag, name in flags.items() if flag in given]
    return "built with " + " and ".join(found) if found else "built without PGO and LTO"


class Others:
    """How many cores other programs use, and the host of a virtual machine takes, from now on."""

    def __init__(self) -> None:
        self._begun = clock.perf_counter(), _busy(), _own()

    def cores(self) -> float | None:
        """Return the mean number of cores since this was made, or None if the system does not report it.

        The processes that this one has started count as its own once they have ended.
        """
        begun, busy, own = self._begun
        now = _busy()
        if busy is None or now is None:
            return None
        return max(0.0, (now - busy) - (_own() - own)) / max(clock.perf_counter() - begun, 1e-9)


def _busy() -> float | None:
    """Return the seconds in which cores were busy since the start of the system, or None if it does not report them."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system, _, _, *interrupts = map(int, fields[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _versions(names: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of those that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
