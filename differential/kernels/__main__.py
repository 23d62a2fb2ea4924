"""Compile every kernel ahead of its first use: `python -m differential.kernels`."""

from __future__ import annotations

import importlib
import pkgutil

import differential.kernels
from differential.kernels.compile import compile_all


def main() -> None:
    """Compile or load all kernels, with a line for each."""
    for module in pkgutil.iter_modules(differential.kernels.__path__, "differential.kernels."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    compile_all()


if __name__ == "__main__":
    main()
