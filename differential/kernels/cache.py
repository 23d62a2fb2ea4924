"""What is kept of one compiled kernel, and what its object code depends on.

Object code is found by its key: the kernel's name and signature; a digest of its code, of the code that it calls and of
its constants; how this package compiles it; and the `environment()`. A kernel that is compiled from other sources, for
another processor or with other settings has another key. Numba's version is only part of the key of what is compiled on
this machine: object code does not call Numba, so the kernels of a wheel are valid with every version.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import os
import platform
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from differential.kernels.loader import LoadError, load
from differential.kernels.processor import Processor
from differential.kernels.shipped import Shipped
from differential.kernels.signature import Signature
from differential.kernels.store import SUFFIX, KernelStore, report

_SETTINGS = (
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "DEBUG_NRT",
    "EXTEND_VARIABLE_LIFETIMES",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "OPT",
)
"""The settings of Numba that change the code that it makes."""
_CONFIGURATION = ".numba_config.yaml"
"""A file of the working directory in which Numba also looks for settings."""
_COMPILERS = ("bridge.py", "codegen.py", "library.py", "loader.py", "lowering.py", "runtime.py", "tuples.py")
_NAME_CHARACTERS = 100


@functools.cache
def environment(processor: Processor) -> str:
    """Return what object code for a processor depends on besides its source, a line for each."""
    numpy = importlib.import_module("numpy._core._multiarray_umath")
    settings = [f"{name}={os.environ[f'NUMBA_{name}']}" for name in _SETTINGS if f"NUMBA_{name}" in os.environ]
    configuration = Path(_CONFIGURATION)
    return "\n".join(
        (
            f"{platform.python_implementation()} {sysconfig.get_config_var('SOABI')} {sys.hexversion >> 16:x}",
            f"objects of {object.__basicsize__} bytes, arrays of version {numpy._get_ndarray_c_version():x}",
            str(processor),
            *settings,
            *([configuration.read_text(errors="replace")] if configuration.is_file() else []),
        )
    )


@functools.cache
def compilers() -> str:
    """Return a digest of the versions of the libraries that compile, without importing Numba."""
    digest = hashlib.blake2b(digest_size=16)
    for library in ("numba", "llvmlite"):
        spec = importlib.util.find_spec(library)
        for place in spec.submodule_search_locations or () if spec else ():
            with open(Path(place) / "_version.py", "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


@functools.cache
def toolchain() -> str:
    """Return a digest of the modules that make object code of kernels, and of the one that loads it."""
    digest = hashlib.blake2b(digest_size=16)
    for name in _COMPILERS:
        digest.update(Path(__file__).with_name(name).read_bytes())
    return digest.hexdigest()


class CacheEntry:
    """What is kept of one kernel: by the package that is installed (`Shipped`), or for this user (`KernelStore`).

    `kernel` is the kernel's qualified name; `sources` spells out what its object code depends on in Python.
    """

    def __init__(self, kernel: str, signature: Signature, sources: str) -> None:
        self._kernel = kernel
        self._signature = signature
        self._source = f"{kernel}{signature}\n{sources}\n{toolchain()}"
        self.readable = "".join(each if each.isalnum() or each in "._" else "-" for each in kernel)[-_NAME_CHARACTERS:]
        self.symbol = f"kernel.{self.readable}.{_digest(self._source)}"
        self.store = KernelStore.of_user()
        self._payload: bytes | None = None
        self._is_shipped = True

    def key(self, processor: Processor) -> str:
        """Return the key of this kernel's object code for a processor."""
        return f"{self._source}\n{environment(processor)}"

    @functools.cached_property
    def own_key(self) -> str:
        """The key of what is compiled on this machine, for its processor."""
        return f"{self.key(Processor.of_host())}\n{compilers()}"

    @functools.cached_property
    def name(self) -> str:
        """The name of the file in the store."""
        return f"{self.readable}-{_digest(self.own_key)}{SUFFIX}"

    def exists(self) -> bool:
        """Return whether the kernel is kept, whole or damaged."""
        return self._shipped() is not None or self.store.has(self.name)

    def read(self, known: bytes | None = None) -> bool:
        """Read the object code, unless it is known; return whether it is there, whole and safe to load."""
        self._payload = known or self._shipped() or self.kept()
        return self._payload is not None

    def kept(self) -> bytes | None:
        """Return the object code that was compiled on this machine, or None."""
        return self.store.read(self.name, self.own_key)

    def load(self) -> Callable[..., Any] | None:
        """Return what was read as a function, or None if nothing was read or it cannot be loaded."""
        payload, self._payload = self._payload, None
        if payload is None:
            return None
        try:
            return load(payload, self.symbol, self._kernel, self._signature)
        except LoadError as error:
            if self._shipped() is None:
                self.store.discard(self.name, f"cannot be loaded ({error})")
                return None
            report(f"the compiled kernel {self._kernel} of this package cannot be loaded ({error}); it is not used")
            self._is_shipped = False
            self.read()
            return self.load()

    def keep(self, payload: bytes) -> Callable[..., Any]:
        """Return what was compiled on this machine as a function, and keep it."""
        self.write(payload)
        return load(payload, self.symbol, self._kernel, self._signature)

    def write(self, payload: bytes) -> None:
        """Keep what was compiled on this machine."""
        self.store.write(self.name, self.own_key, payload)

    def _shipped(self) -> bytes | None:
        shipped = Shipped.of_package() if self._is_shipped else None
        return shipped.payload(self.key(shipped.processor)) if shipped else None


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
