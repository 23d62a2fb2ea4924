"""What Numba makes of arrays, loops and variables of kernels, in fewer of LLVM's instructions than Numba's own.

Numba copies each array to the stack before it reads an item, tests the step of a range when it is counted, and
overwrites variables after their last use, whatever their types. LLVM finds out that most of this has no effect, but
takes longer to do so than to compile the rest. Here an item is an address and a load, and a range counts down.

Importing this module imports Numba.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, lowering, typed_passes, types
from numba.core.compiler_machinery import register_pass
from numba.core.datamodel import default_manager
from numba.core.imputils import Registry
from numba.np import arrayobj

REGISTRY = Registry("differential")
"""Implementations that a context has instead of Numba's."""

_INT64 = ir.IntType(64)


def place_of(kind: Any, field: str) -> int:
    """Return where values of a type have a field."""
    return int(default_manager[kind].get_field_position(field))


_DATA, _SHAPE = (place_of(types.Array(types.int64, 1, "C"), field) for field in ("data", "shape"))
_FIRST, _STEP, _COUNT = (place_of(types.range_iter64_type, field) for field in ("iter", "step", "count"))
"""Where the iterator of a range has the address of the next number, the step, and the address of how many are left."""


class Lower(lowering.Lower):  # type: ignore[misc]
    """Numba's translation of a function, which overwrites only variables that hold counted references."""

    def _counts(self, name: str) -> bool:
        """Return whether a variable holds references that are counted."""
        kind = self.context.data_model_manager[self.typeof(name)]
        return bool(self.context.enable_nrt and kind.contains_nrt_meminfo())

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        return cgutils.alloca_once(self.builder, lltype, name=name)  # Numba also computes its size, for debuggers

    def delvar(self, name: str) -> None:
        if self._counts(name):
            super().delvar(name)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        if self._counts(name) or name in self._singly_assigned_vars:
            super().storevar(value, name, argidx)
        else:  # an earlier value holds no references that would have to be released
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.getvar(name))


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(typed_passes.NativeLowering):  # type: ignore[misc]
    """The pass that translates with `Lower`."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return Lower


def _item(context: Any, builder: Any, kind: Any, array: Any, indices: Any, index_kinds: Any) -> Any:
    """Return the address of an item of a C-contiguous array. A negative index counts from the end."""
    place: Any = None
    for dimension, (index, index_kind) in enumerate(zip(indices, index_kinds, strict=True)):
        index = context.cast(builder, index, index_kind, types.intp)
        if place is not None:
            place = builder.mul(place, builder.extract_value(array, (_SHAPE, dimension)))
        if index_kind.signed and not (_is_constant(index) and index.constant >= 0):
            size = builder.extract_value(array, (_SHAPE, dimension))
            is_negative = builder.icmp_signed("<", index, _number(0))
            index = builder.select(is_negative, builder.add(index, size), index)
        place = index if place is None else builder.add(place, index)
    return builder.gep(builder.extract_value(array, _DATA), [place])


def _is_item(context: Any, kind: Any, index_kinds: Any) -> bool:
    """Return whether indices name one item of an array, and need no check."""
    are_numbers = all(isinstance(each, types.Integer) for each in index_kinds)
    is_plain = kind.layout == "C" and not context.enable_boundscheck
    return are_numbers and is_plain and 0 < kind.ndim == len(index_kinds)


def _indices(builder: Any, index: Any, kind: Any) -> tuple[Any, Any]:
    """Return the indices that one index consists of, and their types."""
    if not isinstance(kind, types.BaseTuple):
        return [index], (kind,)
    return [builder.extract_value(index, place) for place in range(len(kind))], kind


@REGISTRY.lower(operator.getitem, types.Array, types.Integer)  # type: ignore[untyped-decorator]
@REGISTRY.lower(operator.getitem, types.Array, types.BaseTuple)  # type: ignore[untyped-decorator]
def _get(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind, index_kind = signature.args
    indices, index_kinds = _indices(builder, values[1], index_kind)
    if not _is_item(context, kind, index_kinds):
        if isinstance(index_kind, types.BaseTuple):
            return arrayobj.getitem_array_tuple(context, builder, signature, values)
        return arrayobj.getitem_arraynd_intp(context, builder, signature, values)
    return arrayobj.load_item(context, builder, kind, _item(context, builder, kind, values[0], indices, index_kinds))


@REGISTRY.lower(operator.setitem, types.Array, types.Any, types.Any)  # type: ignore[untyped-decorator]
def _set(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind, index_kind, value_kind = signature.args
    array, index, value = values
    indices, index_kinds = _indices(builder, index, index_kind)
    if not _is_item(context, kind, index_kinds):
        return arrayobj.setitem_array(context, builder, signature, values)
    address = _item(context, builder, kind, array, indices, index_kinds)
    arrayobj.store_item(context, builder, kind, context.cast(builder, value, value_kind, kind.dtype), address)
    return None


@REGISTRY.lower(len, types.Array)  # type: ignore[untyped-decorator]
def _length(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.extract_value(values[0], (_SHAPE, 0))


@REGISTRY.lower(range, types.int64)  # type: ignore[untyped-decorator]
@REGISTRY.lower(range, types.int64, types.int64)  # type: ignore[untyped-decorator]
@REGISTRY.lower(range, types.int64, types.int64, types.int64)  # type: ignore[untyped-decorator]
def _range(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    values = (_number(0), *values) if len(values) == 1 else values
    values = (*values, _number(1)) if len(values) == 2 else values
    step = values[2]
    if not (_is_constant(step) and step.constant != 0):
        with cgutils.if_unlikely(builder, builder.icmp_signed("==", step, _number(0))):
            context.call_conv.return_user_exc(builder, ValueError, ("range() arg 3 must not be zero",))
    made = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
    for field, value in zip(("start", "stop", "step"), values, strict=True):
        made = builder.insert_value(made, value, place_of(signature.return_type, field))
    return made


@REGISTRY.lower("getiter", types.range_state64_type)  # type: ignore[untyped-decorator]
def _iterator(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Return an iterator of a range, whose step is not zero, with the count of its numbers."""
    [kind] = signature.args
    start, stop, step = (builder.extract_value(values[0], place_of(kind, each)) for each in ("start", "stop", "step"))
    span, rises = builder.sub(stop, start), builder.icmp_signed(">", step, _number(0))
    is_any = builder.select(
        rises, builder.icmp_signed(">", span, _number(0)), builder.icmp_signed("<", span, _number(0))
    )
    before_last = builder.sub(span, builder.select(rises, _number(1), _number(-1)))
    # The processor traps if the least integer is divided by -1, which may be so only where nothing is counted.
    count = builder.add(builder.sdiv(before_last, builder.select(is_any, step, _number(1))), _number(1))
    iterator = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
    for place, value in ((_FIRST, start), (_COUNT, builder.select(is_any, count, _number(0)))):
        iterator = builder.insert_value(iterator, _on_stack(builder, value), place)
    return builder.insert_value(iterator, step, _STEP)


@REGISTRY.lower("iternext", types.range_iter64_type)  # type: ignore[untyped-decorator]
def _next(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Return the next number, and whether there is one."""
    first, step, count = (builder.extract_value(values[0], place) for place in (_FIRST, _STEP, _COUNT))
    left, number = builder.load(count), builder.load(first)
    builder.store(builder.sub(left, _number(1)), count)
    builder.store(builder.add(number, step), first)
    pair = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
    pair = builder.insert_value(pair, number, place_of(signature.return_type, "first"))
    is_left = builder.icmp_signed(">", left, _number(0))
    return builder.insert_value(pair, is_left, place_of(signature.return_type, "second"))


def _is_constant(value: Any) -> bool:
    return isinstance(value, ir.Constant) and isinstance(value.constant, int)


def _number(value: int) -> Any:
    return ir.Constant(_INT64, value)


def _on_stack(builder: Any, value: Any) -> Any:
    """Return the address of a new variable that has this value."""
    with builder.goto_entry_block():
        address = builder.alloca(value.type)
    builder.store(value, address)
    return address
