"""Compile every kernel ahead of its first use: `python -m differential.kernels`."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Callable

import differential.kernels
from differential.kernels.compile import compile_all

DESCRIPTION = """\
Compile every kernel, the loops over rows behind the operators, ahead of its first use, and print a line for each.

Otherwise each is compiled when it is first called, and a program's first run waits for it: run this once after an
installation, where an image is made, or before time is measured. All of them take a minute or two; where they are
compiled already they are only loaded, in a few seconds.

Compiled kernels are kept in __pycache__ beside their sources; where that cannot be written, in the user's cache
directory; with NUMBA_CACHE_DIR in the environment, there. They hold for one machine's kind of processor and one Numba
and Python, and are renewed when their sources change. With DIFFERENTIAL_KERNELS=interpreted nothing is compiled."""


def compile_kernels(report: Callable[[str], None] = print) -> None:
    """Compile or load all kernels, with a line of report for each."""
    for module in pkgutil.iter_modules(differential.kernels.__path__, "differential.kernels."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    compile_all(report)


def main() -> None:
    """Compile or load all kernels, as the command line asks."""
    parser = argparse.ArgumentParser(
        prog="python -m differential.kernels",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args()
    compile_kernels()


if __name__ == "__main__":
    main()
