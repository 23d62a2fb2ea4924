"""One compiled kernel in the cache, in the form for which Numba's dispatcher asks.

Numba reduces a compiled function to a few objects that can be pickled, and rebuilds it from them; it does so for its
own cache. The dispatcher asks an object for this, its `_cache`. An `Entry` is such an object: it keeps one kernel in a
`Store`. Numba's own cache is not used, because it keeps what it compiles for each installation, trusts the files that
it finds, and ends the run if one is damaged.

This relies on parts of Numba that are not public: `Dispatcher._cache` and its `load_overload` and `save_overload`,
`CompileResult._reduce` and `_rebuild`, `serialize.dumps`. If one of these is missing, each process compiles its
kernels, and reports that.

The key of an entry has, beside the kernel itself, the `environment()`: a kernel that is compiled with other versions,
for another processor or with other settings is another entry.
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
"""The settings of Numba that change machine code, or what the code calls."""
_NAME_CHARACTERS = 100


@functools.cache
def environment() -> str:
    """Return what machine code depends on besides its source, a line for each."""
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
    """What the cache has of one kernel, for one dispatcher.

    `kernel` is the kernel's qualified name; `key` spells out everything its machine code depends on.
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
        """The directory, which a dispatcher's statistics show."""
        return str(self.store.directory)

    @property
    def is_read(self) -> bool:
        """Whether there is something to load."""
        return self._payload is not None

    def exists(self) -> bool:
        """Return whether the cache has the kernel, whole or damaged."""
        return self.store.has(self.name)

    def read(self) -> bool:
        """Read the kernel from the cache; return whether it is there, whole and safe to load."""
        self._payload = self.store.read(self.name, self._key)
        return self.is_read

    def load(self, dispatcher: Any, signature: str) -> bool:
        """Load what was read into the dispatcher; return whether that succeeds, False if nothing was read."""
        if not self.is_read:
            return False
        # `compile` calls `load_overload` first, which returns what was read, so nothing is compiled.
        self._attach(dispatcher)
        try:
            dispatcher.compile(signature)
        except Exception as error:  # a pickle of a Numba that differs under the same version can raise anything
            self.store.discard(self.name, f"cannot be loaded ({type(error).__name__}: {error})")
            return False
        finally:
            self._payload = None  # the dispatcher keeps this object, which would keep the machine code in memory twice
        return True

    def compile(self, dispatcher: Any, signature: str) -> None:
        """Compile the dispatcher's function, and keep the result in the cache."""
        self._payload = None
        self._attach(dispatcher)
        dispatcher.compile(signature)
        if not self._was_offered:
            _report_unknown("it asks for no cache")

    def load_overload(self, signature: object, context: Any) -> Any:
        """Return what was read as a result of Numba's compiler, or None; the dispatcher calls this."""
        if self._payload is None:
            return None
        context.refresh()
        compiler: Any = importlib.import_module("numba.core.compiler")
        return compiler.CompileResult._rebuild(context, *pickle.loads(self._payload))

    def save_overload(self, signature: object, compiled: Any) -> None:
        """Keep a result of Numba's compiler; the dispatcher calls this."""
        self._was_offered = True
        try:
            if compiled.lifted or compiled.library.has_dynamic_globals or not compiled.environment.can_cache():
                report(f"{self._kernel} refers to objects of this process; it is compiled in each process")
                return
            serialize: Any = importlib.import_module("numba.core.serialize")
            payload = serialize.dumps(compiled._reduce())
        except Exception as error:  # the private parts of another Numba can raise anything
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
