"""Compiling the loops over rows: at the first call, and once on a machine.

A kernel is a function from int64 arrays to int64 arrays, marked `@kernel`. Importing it costs nothing: it is loaded at
its first call, or compiled, for which Numba is imported. From then on a call costs about 0.1 µs, and some nanoseconds
for each array: a kernel is a `functools.partial` whose function is replaced at the first call, by a built-in function
of its object code (`bridge.py`).

A kernel has exactly one signature, read off its annotations: `Ints` is int64[::1], `Table` is int64[:, ::1], `int` is
int64, `float` is float64 (`signature.py`). `Batches` and `Times` are tables for which Python may pass tuples. Arrays of
another kind (read-only, strided, int32) are refused with a TypeError.

What a kernel calls is marked too, and named directly in the caller's globals (`from ... import view`):

- `@inner`: a function that is compiled into the kernels that call it, and cannot be called from Python;
- `@bare`: an inner function that makes no arrays, and costs least to call;
- `@primitive(meaning)`: a function that receives Numba, when that may be imported, and returns something only compiled
  code can call; `meaning` is what that means in Python;
- another kernel may be called like an inner function; its result must be annotated, and its code stays its own.

Object code (`codegen.py`) is in the package if that was installed as a wheel (`shipped.py`). Otherwise it is cached on
disk, for all installations of a user (`store.py` describes where, and how safely). The key of a cached kernel has its
signature, a digest of everything it calls and of the constants it uses, and what it is compiled for: versions,
processor and settings (`cache.py`). Where its source is installed does not matter.

No two processes compile the same kernel. A process that needs a kernel that another one is compiling compiles others
meanwhile, then waits, and loads it (`turn.py`). Compiling that takes longer than a second is reported on stderr.
`python -m differential.kernels` compiles everything ahead, with as many processes as there are cores. An interrupt
takes effect after the kernel that is being compiled; a second interrupt takes effect at once (`interrupts.py`).

With `DIFFERENTIAL_KERNELS=interpreted` in the environment nothing is compiled: kernels run as the Python they are
written in, a hundred times slower. There a debugger can step through them, and every index is checked.

>>> from differential.kernels.compile import Ints, kernel
>>> @kernel
... def total(column: Ints) -> int:
...     result = 0
...     for item in column:
...         result += item
...     return result
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from differential.kernels.cache import CacheEntry
from differential.kernels.digest import StandIn, digest_of, reached
from differential.kernels.interrupts import interrupted_late, uninterrupted
from differential.kernels.loader import payload_of
from differential.kernels.processor import Processor
from differential.kernels.signature import Signature
from differential.kernels.turn import Turn, notice

Ints: TypeAlias = NDArray[np.int64]
"""A C-contiguous, writable column of int64."""
Table: TypeAlias = NDArray[np.int64]
"""A C-contiguous, writable int64 array of two dimensions; a row is a time, say, or the address of a batch."""

Batches: TypeAlias = Any
"""A table of batches (see `differential.kernels.memory`): in a kernel a `Table`. Python passes it as one, or as a tuple
of arrays that each begin with a row of it."""
Times: TypeAlias = Any
"""A table of times: in a kernel a `Table`. Python passes it as one, or as a tuple of one or more times."""

NOTHING: Ints = np.empty(0, np.int64)
"""An absent column."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

MISSING = (
    "this installation has no compiled kernels for this processor, Python and settings, and Numba, which compiles "
    "them, is not installed: run pip install 'timely-dataflow[compile]', or install a wheel that has compiled kernels"
)
"""The error of a kernel that has to be compiled where Numba is not installed."""

_IS_INTERPRETED = os.environ.get("DIFFERENTIAL_KERNELS") == "interpreted"
_lock = threading.RLock()
_KERNELS: list[Kernel] = []
_ahead: dict[str, bytes] = {}
"""What was compiled while another process compiled the kernel that was needed, by symbol, until it is used."""


class Kernel(functools.partial[Any], StandIn):
    """A function that is compiled or loaded at its first call."""

    source: Any
    loaded: Any
    is_bulk: bool

    def prepare(self) -> Any:
        """Return this kernel as a function, compiled or loaded; later calls of the kernel go straight to it."""
        if self.loaded is None:
            with _lock:
                if self.loaded is None:
                    self._use(_in_python(self.source) if _IS_INTERPRETED else _loaded(self))
        return self.loaded

    def called(self) -> list[Kernel]:
        """Return the other kernels that this one calls, or that those call."""
        parts = {id(part) for part in reached(self.source) if part is not self.source}
        return [one for one in _KERNELS if id(one.source) in parts]

    def entry(self) -> CacheEntry:
        """Return what is kept of this kernel. Its key also spells out how this module compiles functions."""
        signature = Signature.of(self.source)
        with uninterrupted():
            sources = digest_of(self.source) + (" bulk" if self.is_bulk else "")
            return CacheEntry(f"{self.source.__module__}.{self.source.__qualname__}", signature, sources)

    def is_compiled(self) -> bool:
        """Return whether this kernel is in use or kept, so that it is loaded at most."""
        return bool(self.loaded) or self.entry().exists()

    def object_codes(self, processors: list[Processor]) -> list[bytes]:
        """Return the object code of this kernel for each processor, with the names that it needs."""
        codegen, symbol = _codegen(), self.entry().symbol
        copy = _resolved(self.source)
        copy.__qualname__ = symbol  # names of machine code are unique in a process
        made = codegen.object_codes(copy, symbol, Signature.of(self.source), processors, self.is_bulk)
        return [payload_of(code, needs) for code, needs in made]

    def external(self) -> Any:
        """Return what stands for this kernel in the globals of kernels that are compiled."""
        signature = Signature.of(self.source)
        if not signature.result:
            raise TypeError(f"kernel {self.source.__qualname__}: a kernel calls it, so its result needs an annotation")
        return _codegen().external(self.entry().symbol, signature)

    def _use(self, loaded: Any) -> None:
        self.loaded = loaded
        self.__setstate__((loaded, (), {}, self.__dict__))  # type: ignore[attr-defined]


_BARE = {"_nrt": False, "forceinline": True}
"""Numba's options for functions that count no references. A Numba that lacks one does without it."""


class _Inner(StandIn):
    """A function to be compiled into its callers."""

    def __init__(self, source: FunctionType, is_bare: bool) -> None:
        self.source = source
        self.is_bare = is_bare
        self.dispatcher: Any = None

    def __call__(self, *_: object) -> Any:
        raise TypeError(f"{self.source.__qualname__} is compiled into kernels; it cannot be called from Python")

    def options(self) -> str:
        return f"inner {_BARE if self.is_bare else ''}"

    def prepare(self) -> Any:
        if self.dispatcher is None:
            self.dispatcher = _resolved(self.source)
            if not _IS_INTERPRETED:
                self.dispatcher = _codegen().jitted(self.dispatcher, **(_BARE if self.is_bare else {}))
                self.dispatcher.get_call_template = _codegen().unliteral(self.dispatcher.get_call_template)
        return self.dispatcher


class _Primitive(StandIn):
    """A function that makes something compiled code can call; it runs when Numba may be imported."""

    def __init__(self, source: FunctionType, meaning: Callable[..., Any]) -> None:
        self.source = source
        self.made: Any = meaning if _IS_INTERPRETED else None

    def __call__(self, *_: object) -> Any:
        raise TypeError(f"{self.source.__qualname__} is compiled into kernels; it cannot be called from Python")

    def prepare(self) -> Any:
        if self.made is None:
            made = self.source(importlib.import_module("numba"))
            self.made = _codegen().jitted(made) if hasattr(made, "py_func") else made
        return self.made


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return `function` as a kernel, which is compiled or loaded at its first call."""

    def first_call(*args: Any) -> Any:
        return made.prepare()(*args)

    made = Kernel(first_call)
    made.source = cast(FunctionType, function)
    made.loaded = None
    made.is_bulk = False
    functools.update_wrapper(made, function)
    _KERNELS.append(made)
    return cast("Callable[Parameters, Result]", made)


def bulk(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return a kernel whose loops are optimised most: for passes over whole columns."""
    cast(Kernel, function).is_bulk = True
    return function


def inner(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return `function` for use inside kernels, into which it is compiled."""
    return cast("Callable[Parameters, Result]", _Inner(cast(FunctionType, function), is_bare=False))


def bare(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return `function` for use inside kernels; it must neither make nor return arrays.

    It is compiled without reference counts for the arrays it receives, which its caller keeps alive. Each count is a
    locked instruction, and a few of them cost more than a small function does.
    """
    return cast("Callable[Parameters, Result]", _Inner(cast(FunctionType, function), is_bare=True))


def primitive(
    meaning: Callable[..., Any],
) -> Callable[[Callable[[Any], Callable[Parameters, Result]]], Callable[Parameters, Result]]:
    """Return a decorator of functions whose result is for use inside kernels.

    The decorated function is called with Numba, when that may be imported. Interpreted kernels use `meaning` instead.
    """

    def decorate(make: Callable[[Any], Callable[Parameters, Result]]) -> Callable[Parameters, Result]:
        return cast("Callable[Parameters, Result]", _Primitive(cast(FunctionType, make), meaning))

    return decorate


def largest_first() -> list[Kernel]:
    """Return all kernels, those with the most code first."""
    sizes = {one: sum(len(part.__code__.co_code) for part in reached(one.source)) for one in _KERNELS}
    return sorted(sizes, key=sizes.__getitem__, reverse=True)


def are_all_cached() -> bool:
    """Return whether no kernel of the modules imported so far has to be compiled."""
    return _IS_INTERPRETED or all(one.is_compiled() for one in _KERNELS)


def compile_all(report: Callable[[str], None] = print) -> None:
    """Compile or load every kernel of the modules imported so far, and report a line for each.

    The largest come first, so that several processes finish at about the same time.
    """
    for position, one in enumerate(largest_first(), 1):
        started = time.perf_counter()
        one.prepare()
        name = f"{one.source.__module__}.{one.source.__qualname__}"
        report(f"{position}/{len(_KERNELS)} {name}: {time.perf_counter() - started:.2f} s")


def _codegen() -> Any:
    try:
        return importlib.import_module("differential.kernels.codegen")
    except (AttributeError, ImportError, KeyError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "numba":
            raise RuntimeError(MISSING) from error
        version = getattr(sys.modules.get("numba"), "__version__", "")
        raise RuntimeError(
            f"Numba {version} cannot compile the kernels of this package ({error}); install another version of Numba, "
            "or a wheel of this package that has compiled kernels"
        ) from error


def _resolved(function: FunctionType) -> FunctionType:
    """Return a copy whose globals hold what stands for the kernels, inner functions and primitives that it names."""
    namespace = dict(function.__globals__)
    for name in function.__code__.co_names:
        part = namespace.get(name)
        if isinstance(part, Kernel) and not _IS_INTERPRETED:
            namespace[name] = part.external()
        elif isinstance(part, (Kernel, _Inner, _Primitive)):
            namespace[name] = part.prepare()
    copy = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    copy.__module__ = function.__module__
    copy.__qualname__ = function.__qualname__
    return copy


def _in_python(function: FunctionType) -> Any:
    """Return `function` as Python runs it. Integers wrap around, as in compiled code."""
    resolved, annotations = _resolved(function), Signature.of(function).arguments

    def interpreted(*args: Any) -> Any:
        with np.errstate(over="ignore"):
            return _kept(resolved(*map(_table, args, annotations)), args)

    return interpreted


class _View:
    """An array in the memory of others, which it keeps."""

    def __init__(self, array: Any, owners: tuple[Any, ...]) -> None:
        self.__array_interface__ = array.__array_interface__
        self._owners = array, owners


def _kept(result: Any, owners: tuple[Any, ...]) -> Any:
    """Return a kernel's result, which keeps the arguments if it has their memory by address."""
    if isinstance(result, tuple):
        return tuple([_kept(each, owners) for each in result])
    is_view = isinstance(result, np.ndarray) and not result.flags.owndata
    return np.asarray(_View(result, owners)) if is_view else result


def _table(argument: Any, annotation: str) -> Any:
    """Return an argument as a kernel receives it: a tuple as the table that it stands for."""
    if not isinstance(argument, tuple):
        return argument
    rows = [each[:8] for each in argument] if annotation == "Batches" else argument
    return np.array(rows, np.int64).reshape(len(rows), -1 if rows else 8)


def _loaded(kernel: Kernel) -> Any:
    """Return a kernel as a function, compiled or loaded. The kernels that it calls are loaded first."""
    for one in kernel.called():
        one.prepare()
    entry = kernel.entry()
    with contextlib.ExitStack() as stack:
        if not entry.read(_ahead.pop(entry.symbol, None)):
            turn = _turn(entry, stack)
            while turn and not turn.is_ours() and not entry.read():
                # The turn is not ours, so the turns that this takes and ends do not end it.
                if not any(_compile_ahead(one) for one in largest_first()):
                    turn.wait()
            entry.read()  # another process may have compiled it meanwhile
        with uninterrupted():
            loaded = entry.load()
        return loaded or entry.keep(_compiled(kernel, entry, stack))


def _compile_ahead(kernel: Kernel) -> bool:
    """Compile a kernel unless it is compiled or another process compiles it; return whether it is compiled by this."""
    entry = kernel.entry()
    if kernel.loaded or entry.symbol in _ahead or entry.exists():
        return False
    with contextlib.ExitStack() as stack:
        turn = _turn(entry, stack)
        if not turn or not turn.is_ours() or entry.exists():
            return False
        _ahead[entry.symbol] = _compiled(kernel, entry, stack)
        entry.write(_ahead[entry.symbol])
    return True


def _compiled(kernel: Kernel, entry: CacheEntry, stack: contextlib.ExitStack) -> bytes:
    """Return what a kernel is compiled to for this machine."""
    why = "once on this machine" if entry.store.is_usable() else "there is no cache"
    stack.enter_context(interrupted_late())
    stack.enter_context(
        notice(f"differential: compiling {kernel.source.__module__}.{kernel.source.__qualname__} ({why})")
    )
    [payload] = kernel.object_codes([Processor.of_host()])
    return payload


def _turn(entry: CacheEntry, stack: contextlib.ExitStack) -> Turn | None:
    """Return a kernel's turn, which ends with the stack, or None if there is no cache to compile into."""
    if os.name == "posix" and entry.store.is_usable():
        with contextlib.suppress(OSError):
            return stack.enter_context(Turn(entry.store.directory, entry.name))
    return None
