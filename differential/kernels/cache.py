"""One compiled kernel in the cache, as Numba's dispatcher asks for it.

Numba gives out a compiled function as a few objects that can be pickled, and makes it of them again, for its own cache;
the dispatcher asks an object for that, its `_cache`. An `Entry` is such an object: it keeps one kernel in a `Store`.
Numba's own cache is not used, since it keeps what it compiles for each installation, trusts what it finds, and ends the
run where that is damaged.

This relies on parts of Numba that are not public: `Dispatcher._cache` and its `load_overload` and `save_overload`,
`CompileResult._reduce` and `_rebuild`, `serialize.dumps`. Where one of these is missing, kernels are compiled in each
process, which is reported.

What a key must hold beside the kernel itself is `environment()`: a kernel compiled with other versions, for another
processor or with other settings is another entry.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import pickle
import platform
import sys
import sysconfig
from typing import Any

from differential.kernels.store import SUFFIX, Store, report

_SETTINGS = (
    "BOUNDSCHECK",
    "CPU_FEATURES",
    "CPU_NAME",
    "DEBUGINFO_DEFAULT",
    "DEBUG_NRT",
    "ENABLE_AVX",
    "ENABLE_PROFILING",
    "EXTEND_VARIABLE_LIFETIMES",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "OPT",
    "SLP_VECTORIZE",
    "USING_SVML",
)
"""Numba's settings that change machine code, or what it calls."""
_NAME_CHARACTERS = 100


@functools.cache
def environment() -> str:
    """Return what machine code depends on apart from its source, a line each."""
    numba = importlib.import_module("numba")
    llvmlite = importlib.import_module("llvmlite")
    processor = importlib.import_module("llvmlite.binding")
    numpy = importlib.import_module("numpy")
    settings = [f"{name}={getattr(numba.config, name, None)!r}" for name in _SETTINGS]
    return "\n".join(
        (
            f"{platform.python_implementation()} {sys.version} {sysconfig.get_config_var('SOABI')}",
            f"numpy {numpy.__version__}",
            f"numba {numba.__version__}",
            f"llvmlite {llvmlite.__version__} {processor.llvm_version_info}",
            f"{processor.get_process_triple()} {processor.get_host_cpu_name()}",
            processor.get_host_cpu_features().flatten(),
            *settings,
        )
    )


class Entry:
    """What the cache holds of one kernel, for one dispatcher.

    `kernel` is the name of the kernel with its module's, and `key` spells out all that its machine code depends on.
    """

    def __init__(self, kernel: str, key: str) -> None:
        self.digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        readable = "".join(each if each.isalnum() or each in "._" else "-" for each in kernel)
        self.name = f"{readable[-_NAME_CHARACTERS:]}-{self.digest}{SUFFIX}"
        self.store = Store.of_user()
        self._kernel = kernel
        self._key = key
        self._payload: bytes | None = None
        self._was_offered = False

    @property
    def cache_path(self) -> str:
        """The directory, as a dispatcher's statistics show it."""
        return str(self.store.directory)

    @property
    def is_read(self) -> bool:
        """Whether there is something to load."""
        return self._payload is not None

    def exists(self) -> bool:
        """Return whether the cache holds the kernel, perhaps damaged."""
        return self.store.has(self.name)

    def read(self) -> bool:
        """Read what the cache holds; return whether it is there, whole and safe to load."""
        self._payload = self.store.read(self.name, self._key)
        return self.is_read

    def load(self, dispatcher: Any, signature: str) -> bool:
        """Have the dispatcher take what was read; return whether there was something, and it could."""
        if not self.is_read:
            return False
        self._attach(dispatcher)
        try:
            dispatcher.compile(signature)
        except Exception as error:  # whatever a pickle of another Numba under the same version's name can raise
            self.store.discard(self.name, f"cannot be loaded ({type(error).__name__}: {error})")
            return False
        finally:
            self._payload = None  # the dispatcher keeps this object for good
        return True

    def compile(self, dispatcher: Any, signature: str) -> None:
        """Have the dispatcher compile, and keep what comes out."""
        self._payload = None
        self._attach(dispatcher)
        dispatcher.compile(signature)
        if not self._was_offered:
            _report_unknown("it asks for no cache")

    def load_overload(self, signature: object, context: Any) -> Any:
        """Return what was read as Numba's result of compiling, or None; called by the dispatcher."""
        if self._payload is None:
            return None
        context.refresh()
        compiler: Any = importlib.import_module("numba.core.compiler")
        return compiler.CompileResult._rebuild(context, *pickle.loads(self._payload))

    def save_overload(self, signature: object, compiled: Any) -> None:
        """Keep a result of compiling; called by the dispatcher."""
        self._was_offered = True
        try:
            if compiled.lifted or compiled.library.has_dynamic_globals or not compiled.environment.can_cache():
                report(f"{self._kernel} refers to objects of this process; it is compiled in each process")
                return
            serialize: Any = importlib.import_module("numba.core.serialize")
            payload = serialize.dumps(compiled._reduce())
        except Exception as error:  # whatever the parts of another Numba raise
            _report_unknown(f"{type(error).__name__}: {error}")
        else:
            self.store.write(self.name, self._key, payload)

    def _attach(self, dispatcher: Any) -> None:
        if hasattr(dispatcher, "_cache"):
            dispatcher._cache = self


def _report_unknown(reason: str) -> None:
    """Report that this Numba is not known well enough to cache what it compiles."""
    version = importlib.import_module("numba").__version__
    report(f"kernels are compiled in each process: Numba {version} cannot be made to cache them here ({reason})")
