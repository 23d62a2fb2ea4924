"""Compile every kernel ahead of its first use: `python -m differential.kernels`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

import differential.kernels
from differential.kernels.compile import compile_all


def main(report: Callable[[str], None] = print) -> None:
    """Compile or load all kernels, with a line of report for each."""
    for module in pkgutil.iter_modules(differential.kernels.__path__, "differential.kernels."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    compile_all(report)


if __name__ == "__main__":
    main()
