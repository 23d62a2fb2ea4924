"""Compiling the loops over rows: at the first call, and once on a machine.

A kernel is a function from int64 arrays to int64 arrays, marked `@kernel`. Importing it costs nothing: Numba is
imported, and the kernel compiled or loaded, at its first call. From then on a call costs what Numba's own dispatch
costs (about 0.3 µs, and 0.1 µs for each array): a kernel is a `functools.partial` whose function is replaced at the
first call, and there is no cheaper callable that can be changed.

A kernel has exactly one signature, read off its annotations: `Ints` is int64[::1], `Table` is int64[:, ::1], `int` is
int64, `float` is float64. Arrays of another kind (read-only, strided, int32) are refused with a TypeError; otherwise
Numba would compile the kernel again for them, in the middle of a run.

What a kernel calls is marked too, and named directly in the caller's globals (`from ... import view`):

- `@inner`: a function that is compiled into the kernels that call it, and cannot be called from Python;
- `@bare`: an inner function that makes no arrays, and costs least to call;
- `@primitive(meaning)`: a function that returns, when Numba may be imported, something only compiled code can call;
  `meaning` is what that means in Python;
- another kernel may be called like an inner function.

Compiled code is cached on disk, for all installations of a user (`store.py` describes where, and how safely). The key
of a cached kernel has a digest of everything it calls and of the constants it uses, its signature, and the versions,
the processor and the settings it is compiled for (`cache.py`). Where its source is installed does not matter.

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
import hashlib
import importlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from differential.kernels.cache import Entry, environment
from differential.kernels.interrupts import interrupted_late, uninterrupted
from differential.kernels.turn import Turn, notice

Ints: TypeAlias = NDArray[np.int64]
"""A C-contiguous, writable column of int64."""
Table: TypeAlias = NDArray[np.int64]
"""A C-contiguous, writable int64 array of two dimensions; a row is a time, say, or the address of a batch."""

NOTHING: Ints = np.empty(0, np.int64)
"""An absent column."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_SIGNATURE = {"Ints": "int64[::1]", "Table": "int64[:, ::1]", "int": "int64", "float": "float64"}
_IS_INTERPRETED = os.environ.get("DIFFERENTIAL_KERNELS") == "interpreted"
_lock = threading.RLock()
_KERNELS: list[Kernel] = []


class Kernel(functools.partial[Any]):
    """A function that is compiled or loaded at its first call."""

    source: Any
    dispatcher: Any

    def prepare(self) -> Any:
        """Return Numba's dispatcher of this kernel, compiled or loaded; later calls of the kernel go straight to it."""
        if self.dispatcher is None:
            with _lock:
                if self.dispatcher is None:
                    self._use((_in_python if _IS_INTERPRETED else _compile_kernel)(self.source))
        return self.dispatcher

    def is_compiled(self) -> bool:
        """Return whether this kernel is in use or cached, so that it is loaded at most."""
        return bool(self.dispatcher) or _entry_of(self.source).exists()

    def prepare_if_nobody_has(self) -> bool:
        """Compile this kernel unless it is compiled, or some process is compiling it or one that it calls.

        Returns whether it is compiled now by this call.
        """
        called = {part for part in _reached(self.source) if part is not self.source}
        if self.dispatcher or not all(one.is_compiled() for one in _KERNELS if one.source in called):
            return False
        dispatcher = _compile_kernel(self.source, is_wanted=False)
        if dispatcher is not None:
            self._use(dispatcher)
        return dispatcher is not None

    def _use(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher
        self.__setstate__((dispatcher, (), {}, self.__dict__))  # type: ignore[attr-defined]


_BARE = {"_nrt": False, "forceinline": True}
"""Numba's options for functions that count no references. A Numba that lacks one does without it."""


class _Inner:
    """A function to be compiled into its callers."""

    def __init__(self, source: FunctionType, is_bare: bool) -> None:
        self.source = source
        self.is_bare = is_bare
        self.dispatcher: Any = None

    def __call__(self, *_: object) -> Any:
        raise TypeError(f"{self.source.__qualname__} is compiled into kernels; it cannot be called from Python")

    def prepare(self) -> Any:
        if self.dispatcher is None and _IS_INTERPRETED:
            self.dispatcher, namespace = _copy(self.source)
            _resolve(self.source, namespace)
        elif self.dispatcher is None:
            njit = _numba().njit
            known = importlib.import_module("numba.core.cpu").CPUTargetOptions
            dispatcher = njit(
                _resolved(self.source),
                nogil=True,
                error_model="numpy",
                no_cpython_wrapper=True,
                no_cfunc_wrapper=True,
                **{name: value for name, value in _BARE.items() if self.is_bare and hasattr(known, name)},
            )
            resolve = dispatcher.get_call_template
            unliteral = importlib.import_module("numba.core.types").unliteral
            # Without `unliteral` Numba would compile the function again for each constant among its arguments.
            dispatcher.get_call_template = lambda args, kws: resolve([unliteral(one) for one in args], kws)
            self.dispatcher = dispatcher
        return self.dispatcher


class _Primitive:
    """A function that makes something compiled code can call; it runs when Numba may be imported."""

    def __init__(self, source: FunctionType, meaning: Callable[..., Any]) -> None:
        self.source = source
        self.made: Any = meaning if _IS_INTERPRETED else None

    def __call__(self, *_: object) -> Any:
        raise TypeError(f"{self.source.__qualname__} is compiled into kernels; it cannot be called from Python")

    def prepare(self) -> Any:
        if self.made is None:
            self.made = self.source()
        return self.made


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return `function` as a kernel, which is compiled or loaded at its first call."""

    def first_call(*args: Any) -> Any:
        return made.prepare()(*args)

    made = Kernel(first_call)
    made.source = cast(FunctionType, function)
    made.dispatcher = None
    functools.update_wrapper(made, function)
    _KERNELS.append(made)
    return cast("Callable[Parameters, Result]", made)


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
) -> Callable[[Callable[[], Callable[Parameters, Result]]], Callable[Parameters, Result]]:
    """Return a decorator of functions whose result is for use inside kernels.

    The decorated function is called when Numba may be imported. Interpreted kernels use `meaning` instead.
    """

    def decorate(make: Callable[[], Callable[Parameters, Result]]) -> Callable[Parameters, Result]:
        return cast("Callable[Parameters, Result]", _Primitive(cast(FunctionType, make), meaning))

    return decorate


def _largest_first() -> list[Kernel]:
    """Return all kernels, those with the most code first."""
    sizes = {one: sum(len(part.__code__.co_code) for part in _reached(one.source)) for one in _KERNELS}
    return sorted(sizes, key=sizes.__getitem__, reverse=True)


def are_all_cached() -> bool:
    """Return whether no kernel of the modules imported so far has to be compiled."""
    return _IS_INTERPRETED or all(one.is_compiled() for one in _KERNELS)


def compile_all(report: Callable[[str], None] = print) -> None:
    """Compile or load every kernel of the modules imported so far, and report a line for each.

    The largest come first, so that several processes finish at about the same time.
    """
    for position, one in enumerate(_largest_first(), 1):
        started = time.perf_counter()
        one.prepare()
        name = f"{one.source.__module__}.{one.source.__qualname__}"
        report(f"{position}/{len(_KERNELS)} {name}: {time.perf_counter() - started:.2f} s")


def _numba() -> Any:
    return importlib.import_module("numba")


def _resolved(function: FunctionType) -> FunctionType:
    """Return a copy of `function` whose globals hold Numba's objects in place of ours."""
    copy, namespace = _copy(function)
    _resolve(function, namespace)
    return copy


def _copy(function: FunctionType) -> tuple[FunctionType, dict[str, Any]]:
    """Return a copy of `function` that has globals of its own, and these globals."""
    namespace = dict(function.__globals__)
    copy = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    copy.__module__ = function.__module__
    copy.__qualname__ = function.__qualname__
    return copy, namespace


def _resolve(function: FunctionType, namespace: dict[str, Any]) -> None:
    """Replace the kernels, inner functions and primitives that `function` names by what is prepared of them."""
    for name in function.__code__.co_names:
        if isinstance(namespace.get(name), (Kernel, _Inner, _Primitive)):
            namespace[name] = namespace[name].prepare()


def _in_python(function: FunctionType) -> Any:
    """Return `function` as Python runs it. Integers wrap around, as in compiled code."""
    resolved = _resolved(function)

    def interpreted(*args: Any) -> Any:
        with np.errstate(over="ignore"):
            return resolved(*args)

    return interpreted


def _digest(function: FunctionType) -> str:
    """Return a digest of the code and the constants that `function` reaches through its globals."""
    digest = hashlib.blake2b(digest_size=16)
    for one in _reached(function):
        cells = [_constant(cell.cell_contents) for cell in one.__closure__ or ()]
        digest.update(repr((_spelled_out(one.__code__), repr(one.__defaults__), cells)).encode())
        for name in _names(one.__code__):
            if name in one.__globals__:
                digest.update(f"{name}={_constant(one.__globals__[name])};".encode())
    return digest.hexdigest()


def _constant(value: object) -> str:
    """Return as text what compiled code takes from the value of a global; functions are digested on their own."""
    if isinstance(value, (Kernel, _Inner, _Primitive)):
        return f"{type(value).__name__} {isinstance(value, _Inner) and value.is_bare}"
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes()!r}"
    if hasattr(value, "__qualname__"):  # a class or a function, whose representation may hold its address
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global names that code, and the functions defined in it, may look up."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _spelled_out(code: CodeType) -> str:
    """Return as text what code does, without its file and lines: the same text in every process."""
    constants = [_spelled_out(each) if isinstance(each, CodeType) else _literal(each) for each in code.co_consts]
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return repr((code.co_code, code.co_exceptiontable, constants, arguments, names))


def _literal(constant: object) -> str:
    """Return a constant of code as text; a set is sorted, because its order differs between processes."""
    return repr(sorted(map(repr, constant))) if isinstance(constant, frozenset) else repr(constant)


def _reached(function: FunctionType) -> Iterator[FunctionType]:
    """Yield `function` and what it reaches through its globals, each once."""
    reached: set[int] = set()
    found = [function]
    while found:
        one = found.pop()
        if id(one.__code__) not in reached:
            reached.add(id(one.__code__))
            yield one
            for value in (one.__globals__.get(name) for name in _names(one.__code__)):
                if isinstance(value, (Kernel, _Inner, _Primitive)):
                    found.append(value.source)
                elif isinstance(value, FunctionType):
                    found.append(value)


def _signature(function: FunctionType) -> str:
    types = []
    for name in function.__code__.co_varnames[: function.__code__.co_argcount]:
        annotation = function.__annotations__.get(name)
        if annotation not in _SIGNATURE:
            raise TypeError(
                f"kernel {function.__qualname__}: the annotation of {name!r} must be one of {', '.join(_SIGNATURE)}, "
                f"as text (from __future__ import annotations); it is {annotation!r}"
            )
        types.append(_SIGNATURE[annotation])
    return f"({', '.join(types)},)"


def _dispatcher_of(copy: FunctionType) -> Any:
    """Return Numba's dispatcher of a copy of a kernel; nothing is compiled or loaded yet."""
    return _numba().njit(copy, nogil=True, error_model="numpy")


def _entry_of(function: FunctionType) -> Entry:
    """Return a kernel's entry in the cache. Its key also spells out how this module compiles functions."""
    with uninterrupted():
        surroundings = environment()
    how = [_spelled_out(code) for code in (_dispatcher_of.__code__, _Inner.prepare.__code__)]
    way = hashlib.blake2b(repr((how, _BARE)).encode(), digest_size=16).hexdigest()
    name = f"{function.__module__}.{function.__qualname__}"
    return Entry(name, "\n".join((f"{name}{_signature(function)}", _digest(function), way, surroundings)))


def _compile_kernel(function: FunctionType, is_wanted: bool = True) -> Any:
    """Return Numba's dispatcher of a kernel, compiled or loaded.

    A kernel that is not wanted yet is compiled ahead, unless it is cached or another process compiles it: then the
    result is None.
    """
    entry, signature = _entry_of(function), _signature(function)
    copy, namespace = _copy(function)
    copy.__qualname__ = f"{function.__qualname__}_{entry.digest}"  # names of machine code are unique in a process
    dispatcher = _dispatcher_of(copy)
    with contextlib.ExitStack() as stack:
        if not entry.read():
            # Resolving may compile kernels that this one calls, each in a turn of its own. No turn is held here yet:
            # closing another turn's file would end it (see `Turn`).
            _resolve(function, namespace)
            turn = _turn(entry, stack)
            while turn and is_wanted and not turn.is_ours() and not entry.read():
                # The turn is not ours, so the turns that this takes and ends do not end it.
                if not any(one.prepare_if_nobody_has() for one in _largest_first()):
                    turn.wait()
            if turn and not is_wanted and not turn.is_ours():
                return None
            entry.read()  # another process may have compiled it meanwhile
        if entry.is_read and not is_wanted:
            return None
        with uninterrupted():
            is_loaded = entry.load(dispatcher, signature)
        if not is_loaded:
            _resolve(function, namespace)
            why = "once on this machine" if entry.store.is_usable() else "there is no cache"
            stack.enter_context(interrupted_late())
            stack.enter_context(
                notice(f"differential: compiling {function.__module__}.{function.__qualname__} ({why})")
            )
            entry.compile(dispatcher, signature)
    dispatcher.disable_compile()
    return dispatcher


def _turn(entry: Entry, stack: contextlib.ExitStack) -> Turn | None:
    """Return a kernel's turn, which ends with the stack, or None if there is no cache to compile into."""
    if os.name == "posix" and entry.store.is_usable():
        with contextlib.suppress(OSError):
            return stack.enter_context(Turn(entry.store.directory, entry.name))
    return None
