"""The processors for which object code is made: this one, or a level that many have."""

from __future__ import annotations

import functools
import importlib
import platform
from typing import Any, NamedTuple

_LEVEL_3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "xsave")
"""What x86-64-v3 has beyond the baseline, by LLVM's names. (System V ABI for AMD64, table 3.1.)"""


class Processor(NamedTuple):
    """A processor by LLVM's name, and the features that it has (+) or lacks (-) beside those of the name."""

    name: str
    features: str

    @staticmethod
    @functools.cache
    def of_host() -> Processor:
        """Return the processor of this machine."""
        return Processor(_llvm().get_host_cpu_name(), _llvm().get_host_cpu_features().flatten())

    @staticmethod
    def levels() -> list[Processor]:
        """Return the levels for which wheels have kernels, the least demanding last."""
        if platform.machine().lower() in ("x86_64", "amd64"):
            return [Processor("x86-64-v3", ""), Processor("x86-64", "")]
        return [Processor("generic", "")]

    def runs_here(self) -> bool:
        """Return whether this machine runs code for this processor."""
        if self.name == "x86-64-v3":
            features = _llvm().get_host_cpu_features()
            return all(features.get(each, False) for each in _LEVEL_3)
        return self.name in ("x86-64", "generic") or self == Processor.of_host()

    def __str__(self) -> str:
        return f"{_llvm().get_process_triple()} {self.name} {self.features}".rstrip()


def _llvm() -> Any:
    return importlib.import_module("llvmlite.binding")
