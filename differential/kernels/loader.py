"""Object code of kernels in this process: linked by LLVM, and called as built-in functions of Python.

LLVM is imported, Numba is not. Code is loaded from bytes in memory, which the caller has checked, and stays loaded
until the process ends.

A payload is what is kept of a kernel: the names of what its object code needs, and the code. All names must be known
before LLVM links the code, because LLVM ends the process if one is not.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import io
import json
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from differential.kernels.runtime import ARRAY_API, NOTHING, addresses
from differential.kernels.signature import ARRAYS, Signature

_FASTCALL = 0x0080
_END = b"\0"
"""What is between the names and the code."""
_C_LIBRARY = ("free", "log10", "madvise", "malloc", "memcpy", "memmove", "memset")
"""The functions of the C library that kernels call; others are named in an error when a kernel is compiled."""
_PYTHON = ("Py", "_Py")
_nothing = np.empty(0, np.int64)
"""The result of kernels that return a column without items."""
_lock = threading.RLock()
_functions: dict[str, Callable[..., Any]] = {}
"""The kernels that are loaded, by symbol: equal symbols stand for equal code."""


class LoadError(Exception):
    """A payload cannot be loaded into this process."""


class _Definition(ctypes.Structure):
    """`PyMethodDef` of CPython."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


class _Raised(ctypes.Structure):
    """An exception of compiled code: a pickle, the values known when it was raised, an unused address, their number."""

    _fields_ = (
        ("pickle", ctypes.c_void_p),
        ("size", ctypes.c_int32),
        ("values", ctypes.c_void_p),
        ("unused", ctypes.c_void_p),
        ("count", ctypes.c_int32),
    )


class _Plain(pickle.Unpickler):
    """Reads pickles of tuples, numbers and text, and refuses all others."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"an exception of a kernel names {module}.{name}")


def payload_of(code: bytes, needs: list[str]) -> bytes:
    """Return the payload of object code; raise TypeError if it needs a function that no process has for it."""
    provided = (*ARRAY_API, NOTHING, *_C_LIBRARY)
    if unknown := [each for each in needs if each not in provided and not each.startswith((*_PYTHON, "kernel."))]:
        raise TypeError(f"compiled kernels cannot call {', '.join(unknown)}")
    return json.dumps(needs).encode() + _END + code


def load(payload: bytes, symbol: str, name: str, signature: Signature) -> Callable[..., Any]:
    """Return the kernel of a payload as a function; raise `LoadError` if it needs what this process does not have.

    Kernels that it calls must be loaded already.
    """
    try:
        names, end, code = payload.partition(_END)
        if not end:
            raise LoadError("it is not object code")
        with _lock:
            engine, llvm = _engine(), importlib.import_module("llvmlite.binding")
            if symbol in _functions:
                return _functions[symbol]
            if absent := [each for each in json.loads(names) if not llvm.address_of_symbol(each)]:
                raise LoadError(f"this process does not have {', '.join(absent)}")
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
            llvm.add_symbol(symbol, engine.get_function_address(symbol))
            address = engine.get_function_address(f"call.{symbol}")
            return _functions.setdefault(symbol, _function(address, name, signature))
    except (RuntimeError, TypeError, ValueError) as error:
        raise LoadError(f"{type(error).__name__}: {error}") from error


def _function(address: int, name: str, signature: Signature) -> Callable[..., Any]:
    """Return the built-in function whose code is at an address."""
    definition = _Definition(name.encode(), address, _FASTCALL, None)
    # The function refers to its definition, and may outlive this module while the interpreter ends: it is never freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    raisers = (functools.partial(_refuse, name, signature), _raise)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return make(ctypes.addressof(definition), raisers, None)  # type: ignore[no-any-return]


@functools.cache
def _engine() -> Any:
    """Return LLVM's engine, which holds the code that is loaded."""
    llvm = importlib.import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in addresses().items():
        llvm.add_symbol(name, address)
    llvm.add_symbol(NOTHING, id(_nothing))
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    # Arrays are released by code of the engine, even while the interpreter ends: the engine is never closed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    return engine


def _raise(address: int) -> None:
    """Raise the exception at an address, which a kernel has left there."""
    raised = _Raised.from_address(address)
    module, name, known = _Plain(io.BytesIO(ctypes.string_at(raised.pickle, raised.size))).load()
    values = iter(())
    if raised.count:
        values = iter((ctypes.c_int64 * raised.count).from_address(raised.values)[:])
        free = ctypes.CDLL(None).free
        free.argtypes, free.restype = (ctypes.c_void_p,), None
        free(raised.values)
        free(address)
    raise getattr(importlib.import_module(module), name)(*(next(values) if each is None else each[0] for each in known))


def _refuse(name: str, signature: Signature, *given: object) -> None:
    """Raise the TypeError that states what is wrong with the arguments of a kernel."""
    if len(given) != len(signature.arguments):
        raise TypeError(f"kernel {name} takes {len(signature.arguments)} arguments, not {len(given)}")
    for place, (argument, annotation) in enumerate(zip(given, signature.arguments, strict=True), 1):
        if complaint := _complaint(argument, annotation):
            raise TypeError(f"kernel {name}: argument {place} must be {_WANTED[annotation]}; {complaint}")
    raise TypeError(f"kernel {name} does not take these arguments")


_WANTED = {
    "Ints": "a C-contiguous, writable int64 array of one dimension",
    "Table": "a C-contiguous, writable int64 array of two dimensions",
    "Batches": "a C-contiguous, writable int64 array of two dimensions, or a tuple of arrays that begin with a row",
    "Times": "a C-contiguous, writable int64 array of two dimensions, or a tuple of one or more times",
    "int": "an integer of 64 bits",
    "float": "a number",
}


def _complaint(argument: object, annotation: str) -> str:
    """Return how an argument differs from what a kernel takes, or an empty text."""
    if annotation not in ARRAYS:
        is_number = isinstance(argument, (int, np.integer) if annotation == "int" else (int, float, np.number))
        fits = not isinstance(argument, int) or annotation == "float" or -1 << 63 <= argument < 1 << 63
        return "" if is_number and fits else f"it is {argument!r:.100}"
    if annotation == "Batches" and isinstance(argument, tuple):
        parts = (_complaint(each, "Ints") or ("it has no whole row" if len(each) < 8 else "") for each in argument)
        return next((f"{place}: {part}" for place, part in enumerate(parts) if part), "")
    if annotation == "Times" and isinstance(argument, tuple):
        return f"it is {argument!r:.100}"
    if not isinstance(argument, np.ndarray):
        return f"it is of type {type(argument).__name__}"
    if argument.dtype != np.int64 or argument.ndim != ARRAYS[annotation]:
        return f"it is of type {argument.dtype}, with {argument.ndim} dimensions"
    if not argument.flags.writeable:
        return "it is readonly"
    return "" if argument.flags.c_contiguous and argument.flags.aligned else "it is not contiguous"
