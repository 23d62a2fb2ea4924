"""The function of a kernel's object code that Python calls.

It is a built-in function of CPython (`METH_FASTCALL`): it reads integers and arrays from the objects that it receives,
releases the interpreter's lock, calls the kernel, and returns objects. An argument costs a few nanoseconds. A table of
batches or of times may also be a tuple, of which the table is made for the duration of the call.

Its `self` is a tuple of two functions of Python, which raise: the first is called with arguments that the kernel does
not take, the second with the address of an exception that the kernel raised (`loader.py`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np.arrayobj import make_array

from differential.kernels.signature import ARRAYS

_POINTER = ir.IntType(8).as_pointer()
_INT32, _INT64, _DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()
_ARRAY = ir.LiteralStructType([_POINTER, _POINTER, _INT64, _INT32, _POINTER, _POINTER])
"""`%array` of `runtime.py`."""
_DATA, _BYTES, _SIZES, _MEMORY = 1, 2, 4, 5

_MADE = {"Batches": "differential.batches", "Times": "differential.frontier"}
"""What describes a table that may be made for the call, by its annotation."""


class _Bridge:
    """A function of Python's that calls one kernel, while it is built."""

    def __init__(self, context: Any, described: Any, symbol: str) -> None:
        self.context = context
        self.described = described
        self.module = context.create_module(f"call.{symbol}")
        kind = ir.FunctionType(_POINTER, [_POINTER, _POINTER.as_pointer(), _INT64])
        self.function = ir.Function(self.module, kind, f"call.{symbol}")
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.refused = self.function.append_basic_block("refused")
        arrays = [each for each in described.argtypes if isinstance(each, types.Array)]
        self.arrays = cgutils.alloca_once(self.builder, _ARRAY, size=len(arrays) or 1)
        self.array_count = 0
        self.made: list[Any] = []
        kernel = context.call_conv.get_function_type(described.restype, described.argtypes)
        self.kernel = ir.Function(self.module, kernel, symbol)

    def call(self, name: str, result: Any, *arguments: Any) -> Any:
        """Call a function of C."""
        kind = ir.FunctionType(result, [each.type for each in arguments])
        function = self.module.globals.get(name) or ir.Function(self.module, kind, name)
        return self.builder.call(function, arguments)

    def require(self, condition: Any) -> None:
        """Go on if the condition holds, and refuse the arguments otherwise."""
        following = self.builder.append_basic_block("taken")
        self.builder.cbranch(condition, following, self.refused)
        self.builder.position_at_end(following)

    def number(self, item: Any, read: str, kind: Any) -> Any:
        """Return the number that an object is; -1 may also report an error."""
        value = self.call(read, kind, item)
        compare = self.builder.icmp_signed if kind is _INT64 else self.builder.fcmp_unordered
        is_suspect = compare("==", value, ir.Constant(kind, -1))
        with self.builder.if_then(is_suspect, likely=False):
            error = self.call("PyErr_Occurred", _POINTER)
            fine = self.builder.append_basic_block("fine")
            self.builder.cbranch(cgutils.is_null(self.builder, error), fine, self.refused)
            self.builder.position_at_end(fine)
        return value

    def field(self, place: Any, field: int) -> Any:
        """Return the address of a field of an `%array`."""
        return self.builder.gep(place, [ir.Constant(_INT32, 0), ir.Constant(_INT32, field)])

    def reserve(self, annotations: tuple[str, ...]) -> None:
        """Note which of the arrays are tables that may be made for the call; none is yet."""
        annotations = tuple(each for each in annotations if each in ARRAYS)
        for place in (place for place, annotation in enumerate(annotations) if annotation in _MADE):
            self.made.append(self.builder.gep(self.arrays, [ir.Constant(_INT32, place)]))
            self.builder.store(cgutils.get_null_value(_POINTER), self.field(self.made[-1], _MEMORY))

    def free(self) -> None:
        """Free the tables that were made for the call."""
        for place in self.made:
            self.call("free", ir.VoidType(), self.builder.load(self.field(place, _MEMORY)))

    def array(self, item: Any, kind: Any, annotation: str) -> Any:
        """Return Numba's structure of an array that an object is. It counts no references: Python holds the object."""
        builder, context = self.builder, self.context
        place = builder.gep(self.arrays, [ir.Constant(_INT32, self.array_count)])
        self.array_count += 1
        described = builder.bitcast(place, _POINTER)
        if annotation in _MADE:
            self.require(self.call(_MADE[annotation], ir.IntType(1), item, described))
        else:
            dimensions = ir.Constant(_INT32, kind.ndim)
            self.require(self.call("differential.argument", ir.IntType(1), item, dimensions, described))
        data, size, lengths = (builder.load(self.field(place, field)) for field in (_DATA, _BYTES, _SIZES))
        lengths = builder.bitcast(lengths, _INT64.as_pointer())
        shape = [builder.load(builder.gep(lengths, [ir.Constant(_INT32, each)])) for each in range(kind.ndim)]
        strides = [ir.Constant(_INT64, 8)]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        made = make_array(kind)(context, builder)
        made.data = builder.bitcast(data, made.data.type)
        made.nitems, made.itemsize = builder.udiv(size, ir.Constant(_INT64, 8)), ir.Constant(_INT64, 8)
        made.shape, made.strides = cgutils.pack_array(builder, shape), cgutils.pack_array(builder, strides)
        made.meminfo = cgutils.get_null_value(made.meminfo.type)
        made.parent = cgutils.get_null_value(made.parent.type)
        return made._getvalue()

    def argument(self, place: int, kind: Any, annotation: str) -> Any:
        """Return an argument as the kernel takes it."""
        item = self.builder.load(self.builder.gep(self.function.args[1], [ir.Constant(_INT32, place)]))
        if isinstance(kind, types.Array):
            return self.array(item, kind, annotation)
        if kind == types.float64:
            return self.number(item, "PyFloat_AsDouble", _DOUBLE)
        return self.number(item, "PyLong_AsLongLong", _INT64)

    def result(self, value: Any, kind: Any) -> Any:
        """Return one value of a kernel's as an object."""
        builder = self.builder
        if isinstance(kind, types.Array):
            made = make_array(kind)(self.context, builder, value)
            sizes = cgutils.alloca_once_value(builder, made.shape)
            return self.call(
                "differential.result",
                _POINTER,
                builder.bitcast(made.meminfo, _POINTER),
                builder.bitcast(made.data, _POINTER),
                ir.Constant(_INT32, kind.ndim),
                builder.bitcast(sizes, _POINTER),
                builder.bitcast(self.arrays, _POINTER),
                ir.Constant(_INT32, self.array_count),
            )
        if kind == types.boolean:
            return self.call("PyBool_FromLong", _POINTER, builder.zext(value, _INT64))
        if isinstance(kind, types.Float):
            return self.call("PyFloat_FromDouble", _POINTER, self.context.cast(builder, value, kind, types.float64))
        if isinstance(kind, types.Integer):
            return self.call("PyLong_FromLongLong", _POINTER, self.context.cast(builder, value, kind, types.int64))
        raise TypeError(f"a kernel cannot return {kind} to Python")

    def results(self, value: Any, kind: Any) -> Any:
        """Return what a kernel returns as an object, or null if there is no memory."""
        builder = self.builder
        if kind == types.none:
            nothing = ir.GlobalVariable(self.module, ir.IntType(8), "_Py_NoneStruct")
            self.call("Py_IncRef", ir.VoidType(), nothing)
            return nothing
        if not isinstance(kind, types.BaseTuple):
            return self.result(value, kind)
        together = self.call("PyTuple_New", _POINTER, ir.Constant(_INT64, len(kind)))
        with builder.if_then(cgutils.is_null(builder, together), likely=False):
            builder.ret(together)
        missing = cgutils.alloca_once_value(builder, cgutils.false_bit)
        for place, (each, item) in enumerate(zip(kind, cgutils.unpack_tuple(builder, value, len(kind)), strict=True)):
            made = self.result(item, each)
            with builder.if_then(cgutils.is_null(builder, made), likely=False):
                builder.store(cgutils.true_bit, missing)
            self.call("PyTuple_SetItem", _INT32, together, ir.Constant(_INT64, place), made)
        with builder.if_then(builder.load(missing), likely=False):
            self.call("Py_DecRef", ir.VoidType(), together)
            builder.ret(cgutils.get_null_value(_POINTER))
        return together

    def raiser(self, place: int, arguments: Any, count: Any) -> Any:
        """Call one of the functions that raise, and return its result, which is null."""
        raises = self.call("PyTuple_GetItem", _POINTER, self.function.args[0], ir.Constant(_INT64, place))
        return self.call("PyObject_Vectorcall", _POINTER, raises, arguments, count, cgutils.get_null_value(_POINTER))


def add_bridge(context: Any, described: Any, symbol: str, annotations: tuple[str, ...]) -> Any:
    """Return a module with the function `call.{symbol}`, by which Python calls the kernel `symbol`.

    The annotations are those of the arguments.
    """
    bridge = _Bridge(context, described, symbol)
    builder = bridge.builder
    _, arguments, count = bridge.function.args
    bridge.reserve(annotations)
    bridge.require(builder.icmp_signed("==", count, ir.Constant(_INT64, len(described.argtypes))))
    values = [
        bridge.argument(place, kind, annotation)
        for place, (kind, annotation) in enumerate(zip(described.argtypes, annotations, strict=True))
    ]
    thread = bridge.call("PyEval_SaveThread", _POINTER)
    status, value = context.call_conv.call_function(
        builder, bridge.kernel, described.restype, described.argtypes, values
    )
    bridge.call("PyEval_RestoreThread", ir.VoidType(), thread)
    # No result is part of such a table: kernels return none of their addresses and of their frontiers.
    bridge.free()
    with builder.if_then(status.is_error, likely=False):
        address = bridge.call("PyLong_FromVoidPtr", _POINTER, builder.bitcast(status.excinfoptr, _POINTER))
        place = cgutils.alloca_once_value(builder, address)
        raised = bridge.raiser(1, place, ir.Constant(_INT64, 1))
        bridge.call("Py_DecRef", ir.VoidType(), address)
        builder.ret(raised)
    builder.ret(bridge.results(value, described.restype))
    builder.position_at_end(bridge.refused)
    bridge.call("PyErr_Clear", ir.VoidType())
    bridge.free()
    builder.ret(bridge.raiser(0, arguments, count))
    return bridge.module
