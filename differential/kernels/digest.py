"""What the machine code of a function depends on in Python: its code, the code that it reaches, and constants.

Two processes give the same function the same digest, wherever its source is installed.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np


class StandIn:
    """Something that stands for a function in the globals of kernels."""

    source: Any

    def options(self) -> str:
        """Return how the function is compiled."""
        return type(self).__name__


def digest_of(function: FunctionType) -> str:
    """Return a digest of the code and the constants that `function` reaches through its globals."""
    digest = hashlib.blake2b(digest_size=16)
    for one in reached(function):
        digest.update(_alone(one).digest)
    return digest.hexdigest()


def reached(function: FunctionType, ends: Iterable[FunctionType] = ()) -> Iterator[FunctionType]:
    """Yield `function` and what it reaches through its globals, each once, except for `ends` and what only they reach.

    `function` itself may be among the ends.
    """
    seen = {id(end.__code__) for end in ends} - {id(function.__code__)}
    found = [function]
    while found:
        one = found.pop()
        if id(one.__code__) not in seen:
            seen.add(id(one.__code__))
            yield one
            found.extend(_alone(one).names)


class _Alone(NamedTuple):
    """A function without the functions that it names: the digest of its code and constants, and these functions."""

    digest: bytes
    names: list[FunctionType]


@functools.cache
def _alone(function: FunctionType) -> _Alone:
    """Return a function without those that it names. Dozens of kernels reach the same ones.

    The globals of modules that have kernels do not change once one of their kernels is in use.
    """
    code, namespace = function.__code__, function.__globals__
    named = {name: namespace[name] for name in _names(code) if name in namespace}
    cells = [_constant(cell.cell_contents) for cell in function.__closure__ or ()]
    constants = [f"{name}={_constant(value)}" for name, value in named.items()]
    text = repr((spelled_out(code), repr(function.__defaults__), cells, constants))
    values = [value.source if isinstance(value, StandIn) else value for value in named.values()]
    functions = [value for value in values if isinstance(value, FunctionType)]
    return _Alone(hashlib.blake2b(text.encode(), digest_size=16).digest(), functions)


def spelled_out(code: CodeType) -> str:
    """Return as text what code does, without its file and lines: the same text in every process."""
    constants = [spelled_out(each) if isinstance(each, CodeType) else _literal(each) for each in code.co_consts]
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return repr((code.co_code, code.co_exceptiontable, constants, arguments, names))


def _constant(value: object) -> str:
    """Return as text what compiled code takes from the value of a global; functions are digested on their own."""
    if isinstance(value, StandIn):
        return value.options()
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


def _literal(constant: object) -> str:
    """Return a constant of code as text; a set is sorted, because its order differs between processes."""
    return repr(sorted(map(repr, constant))) if isinstance(constant, frozenset) else repr(constant)
