"""Columns of NumPy's text in kernels: read and written by the functions that NumPy exports for them.

A kernel receives the address of an array, from which it reads where the items are, how many, how far apart, and what
type they have. What is in an item, only NumPy's functions know ("NpyString_load" and others, NumPy Enhancement Proposal
55; they have names of ours, see `differential.kernels.runtime`). Texts of a type share memory, which belongs to one
thread at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from differential.kernels.compile import Ints, Table, bare, kernel, primitive
from differential.kernels.memory import empty, item
from differential.kernels.runtime import HEAD, addresses
from differential.kernels.strings import SIZE, START, TAGS

_DATA, _SHAPE, _STRIDES, _TYPE = HEAD, HEAD + 16, HEAD + 24, HEAD + 40
"""Where in an array's object there are the addresses of the items, the lengths, the distances, and the type."""

_LENGTH, _BYTES, _LOADED = range(3)
"""What `load` fills in: the number of bytes of a text, and where they are."""


def _in_python(name: str, result: Any) -> Callable[..., int]:
    """Return a function of NumPy's for interpreted kernels. All arguments are integers, or addresses."""

    def function(*arguments: int) -> int:
        kind = ctypes.CFUNCTYPE(result, *[ctypes.c_int64] * len(arguments))
        return kind(addresses()[name])(*map(int, arguments)) or 0

    return function


def _external(numba: Any, name: str, result: str, arguments: int) -> Callable[..., Any]:
    """Return a function of NumPy's for compiled kernels."""
    types = numba.core.types
    return types.ExternalFunction(name, getattr(types, result)(*[types.int64] * arguments))  # type: ignore[no-any-return]


def _acquired(kind: int) -> int:
    """Return what holds the texts of a type, released: interpreted kernels have the lock of the interpreter."""
    allocator = _in_python("differential.acquire_texts", ctypes.c_int64)(kind)
    _in_python("differential.release_texts", None)(allocator)
    return allocator


def _released(allocator: int) -> None:
    """Do nothing: see `_acquired`."""


def _put(address: int, word: int) -> None:
    ctypes.c_int64.from_address(int(address)).value = int(word)


@primitive(_in_python("differential.load_text", ctypes.c_int32))
def load(numba: Any) -> Callable[[int, int, int], int]:
    """Find the bytes of the text in a cell; return 0 if that succeeds: `load(allocator, cell, loaded)`."""
    return _external(numba, "differential.load_text", "int32", 3)


@primitive(_in_python("differential.pack_text", ctypes.c_int32))
def pack(numba: Any) -> Callable[[int, int, int, int], int]:
    """Put a text into a cell; return 0 if that succeeds: `pack(allocator, cell, start, length)`."""
    return _external(numba, "differential.pack_text", "int32", 4)


@primitive(_acquired)
def acquire(numba: Any) -> Callable[[int], int]:
    """Return what holds the texts of a type, for this thread alone: `acquire(type)`."""
    return _external(numba, "differential.acquire_texts", "int64", 1)


@primitive(_released)
def release(numba: Any) -> Callable[[int], None]:
    """Let other threads have the texts of a type again: `release(allocator)`."""
    return _external(numba, "differential.release_texts", "void", 1)


@primitive(_put)
def put(numba: Any) -> Callable[[int, int], None]:
    """Write an int64 to any `address`, a multiple of 8 or not: `put(address, word)`."""
    types, cgutils = numba.core.types, numba.core.cgutils

    @numba.extending.intrinsic
    def put(typing_context, address, word):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            builder.store(args[1], builder.inttoptr(args[0], cgutils.intp_t.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return put  # type: ignore[no-any-return]


@bare
def _end_of(start: int, length: int) -> int:
    """Return up to eight bytes as a word. Only words that some of them are in are read: no page beyond."""
    inside = start & 7
    word = (item(start - inside) >> (8 * inside)) & ((1 << (64 - 8 * inside)) - 1) if inside else item(start)
    if inside + length > 8:
        word |= item(start - inside + 8) << (64 - 8 * inside)
    return word & ((1 << (8 * length)) - 1) if length < 8 else word


@kernel
def packed_texts(column: int, tag: int) -> tuple[Ints, Ints, Ints]:
    """Return the texts of a column as words, where in these each starts, and its size with this tag.

    `column` is the address of the array. The result is empty if NumPy cannot read one of the texts.
    """
    data, rows, step = item(column + _DATA), item(item(column + _SHAPE)), item(item(column + _STRIDES))
    starts, sizes, loaded = empty(rows), empty(rows), empty(_LOADED)
    allocator, top = acquire(item(column + _TYPE)), 0
    for row in range(rows):
        if load(allocator, data + row * step, loaded.ctypes.data) != 0:
            rows = 0
            break
        starts[row], sizes[row] = top, loaded[_LENGTH] * TAGS + tag
        top += (loaded[_LENGTH] + 7) >> 3
    release(allocator)
    words, place = empty(top), 0  # while nothing is acquired: there may be no memory for them
    allocator = acquire(item(column + _TYPE))
    for row in range(rows):
        read = load(allocator, data + row * step, loaded.ctypes.data)
        at, length = loaded[_BYTES], sizes[row] // TAGS
        if read != 0 or loaded[_LENGTH] != length:  # another thread has written to the column
            rows = 0
            break
        while length >= 8:
            words[place] = item(at)
            at, length, place = at + 8, length - 8, place + 1
        if length > 0:
            words[place] = _end_of(at, length)
            place += 1
    release(allocator)
    return words, starts[:rows], sizes[:rows]


@kernel
def store_texts(column: int, meta: Table, arena: Ints, numbers: Ints) -> int:
    """Put the strings with these numbers into the array at an address, of as many texts; return how many there are.

    There are fewer if there is no memory for more. `meta` and `arena` are those of a table of strings.
    """
    data, step, stored = item(column + _DATA), item(item(column + _STRIDES)), 0
    allocator = acquire(item(column + _TYPE))
    for number in numbers:
        start, length = arena.ctypes.data + 8 * meta[number, START], meta[number, SIZE] // TAGS
        if pack(allocator, data + stored * step, start, length) != 0:
            break
        stored += 1
    release(allocator)
    return stored


@kernel
def as_bytes(words: Ints, starts: Ints, sizes: Ints) -> Ints:
    """Return the bytes of strings one after the other, without gaps, and up to fifteen more bytes."""
    total = 0
    for size in sizes:
        total += size // TAGS
    made = empty((total >> 3) + 2)
    end = made.ctypes.data
    for row in range(len(starts)):
        length, place = sizes[row] // TAGS, starts[row]
        for at in range(0, length, 8):
            put(end + at, words[place])
            place += 1
        end += length
    return made
