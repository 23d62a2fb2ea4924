"""Compile every kernel ahead of its first use: `python -m differential.kernels`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import differential.kernels
from differential.kernels.compile import are_all_cached, compile_all
from differential.kernels.packing import made_for
from differential.kernels.processor import Processor

MOST_PROCESSES = 4
"""More processes would mostly wait for the kernel that takes longest."""
_COMPILERS = tuple(f"differential.kernels.{name}" for name in ("bridge", "codegen", "library", "lowering"))
"""The modules that import Numba, and are imported when something is compiled."""

DESCRIPTION = """\
Compile every kernel, the loops over rows behind the operators, ahead of its first use, and print a line for each.

Otherwise each kernel is compiled when it is first called, and a program's first run waits for it. Run this once after
an installation, when an image is built, or before you measure time. To compile all kernels takes up to a
minute; to load those that are compiled already takes a fraction of a second.

Compiled kernels are kept for all installations of a user in ~/.cache/timely-dataflow/kernels (in XDG_CACHE_HOME
instead of ~/.cache, if that is set). DIFFERENTIAL_CACHE_DIR in the environment names another directory, and
NUMBA_CACHE_DIR one for everything that Numba and this package compile. They are valid for one kind of processor and
for one version each of Python, NumPy and Numba; those that nobody has used for 90 days are removed. A directory to
which other users can write is not used. To ship compiled kernels in an image, compile them as root into a
DIFFERENTIAL_CACHE_DIR that others can read (chmod -R a+rX). With DIFFERENTIAL_KERNELS=interpreted nothing is
compiled.

A wheel has compiled kernels inside, and with those nothing is compiled at all. --into writes such files: with --for
host one for this processor, with --for levels one for each kind of processor for which wheels are published."""


def compile_kernels(report: Callable[[str], None] = print, processes: int | None = None) -> None:
    """Compile or load all kernels and report a line for each, with this many processes or one for each core."""
    import_all()
    others = min(processes or os.cpu_count() or 1, MOST_PROCESSES) - 1
    with _helped(0 if are_all_cached() else others):
        compile_all(report)


def import_all() -> None:
    """Import every module that has kernels."""
    for module in pkgutil.iter_modules(differential.kernels.__path__, "differential.kernels."):
        if module.name not in (__name__, "differential.kernels.__main__", *_COMPILERS):
            importlib.import_module(module.name)


@contextlib.contextmanager
def _helped(others: int) -> Iterator[None]:
    """Have `others` more processes compile kernels during the block."""
    command = [sys.executable, "-m", "differential.kernels", "--processes", "1"]
    quiet = subprocess.DEVNULL
    helpers = [
        subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        for _ in range(others)
    ]
    try:
        yield
    finally:
        for helper in helpers:
            helper.terminate()
        for helper in helpers:
            helper.wait()


def main() -> None:
    """Compile or load all kernels, with the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m differential.kernels",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    most = f"how many processes compile (default: one for each core, at most {MOST_PROCESSES})"
    parser.add_argument("--processes", type=int, help=most)
    parser.add_argument("--into", type=Path, metavar="DIRECTORY", help="write the kernels to files as wheels have them")
    parser.add_argument("--for", dest="target", choices=("host", "levels"), default="host", help="for --into")
    options = parser.parse_args()
    if options.processes is not None and options.processes < 1:
        parser.error(f"argument --processes: must be at least 1, not {options.processes}")
    if options.into is None:
        compile_kernels(processes=options.processes)
        return
    import_all()
    processors = Processor.levels() if options.target == "levels" else [Processor.of_host()]
    for shipped in made_for(processors, options.processes or os.cpu_count() or 1):
        name = "host" if options.target == "host" else shipped.processor.name
        print(shipped.write(options.into, name))


if __name__ == "__main__":
    main()
