"""The lines that a script's programs print, for comparing one number of workers with another.

A script has a function `everything(worker)`, which returns the lines of one worker, and prints them when it is run.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

from tests.integration.launcher.launching import Run
from timely import Config, execute


def lines_of_threads(programs: ModuleType, workers: int) -> Counter[str]:
    """Return the lines of all workers of this process."""
    return Counter(line for lines in execute(programs.everything, Config(workers=workers)) for line in lines)


def lines_of_processes(script: Path, processes: int, workers: int = 1) -> Counter[str]:
    """Return the lines of all workers of this many processes, which must end without an error."""
    run = Run("run", "-n", str(processes), "-w", str(workers), script)
    try:
        assert run.end(60) == 0, run.error
        return Counter(line.partition("] ")[2] for line in run.output.splitlines())
    finally:
        run.close()
