"""What object code of kernels needs of a runtime, in LLVM's intermediate code, linked into each kernel.

- *Memory.* Numba's arrays belong to a record that counts references: the functions whose names start with `NRT_`. The
  layout of the record is Numba's, `%record`: compiled code reads its first and fourth item. References are counted
  without atomic operations, which take longer than the rest of a small call: until a kernel returns, only its own
  thread knows its records. The capsules of its results may be released in any thread, and count atomically. Functions
  that count are not inlined, so that LLVM finds pairs of calls that cancel.
- *Shapes.* `reshape` gives a contiguous array another shape; it fails for others.
- *Arguments.* `differential.argument` describes an array of NumPy's that a kernel receives, if it is one that kernels
  take: C-contiguous, aligned, writable int64 of this machine, with the right number of dimensions.
- *Results.* `differential.result` returns an array of NumPy's. The array keeps the record alive that owns its memory,
  by a capsule. Without a record the memory is an argument's, in whole or in part: the result is the argument, or keeps
  it alive. All results of one dimension without items are one array, which costs a tenth of a new one.

NumPy's functions and its type have names of ours (`ARRAY_API`), which the loader binds. The offsets are those of
`PyArrayObject` and `PyArray_Descr`, the same since NumPy 1.7.
"""

from __future__ import annotations

import ctypes
import functools
import importlib

import numpy as np

from differential.kernels.tuples import TABLES

ARRAY_API = {
    "differential.array_type": 2,
    "differential.new_array": 93,
    "differential.set_base": 282,
    "differential.load_text": 313,
    "differential.pack_text": 314,
    "differential.acquire_texts": 316,
    "differential.release_texts": 318,
}
"""Our names of NumPy's functions and type, and their places in the table of its C interface."""

NOTHING = "differential.nothing"
"""Our name of the array without items that is returned for all such results."""

HEAD = object.__basicsize__
"""Where in an object its own fields are."""
_INT64 = np.dtype(np.int64).num
_OTHER_INT64 = next((np.dtype(code).num for code in "ql" if np.dtype(code).num != _INT64), _INT64)
_OTHER = _OTHER_INT64 if np.dtype("l").itemsize == np.dtype("q").itemsize == 8 else _INT64

TEXT = f"""
%record = type {{ i64, ptr, ptr, ptr, i64, ptr }} ; references, destructor, its argument, data, bytes, unused
%array = type {{ ptr, ptr, i64, i32, ptr, ptr }} ; object, data, bytes, dimensions, their sizes, memory to free

declare ptr @malloc(i64)
declare void @free(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @differential.new_array(ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)
declare i32 @differential.set_base(ptr, ptr)
@differential.array_type = external global i8
@differential.nothing = external global i8

define ptr @NRT_Allocate(i64 %bytes) {{
  %memory = call ptr @malloc(i64 %bytes)
  ret ptr %memory
}}

define void @NRT_Free(ptr %memory) {{
  call void @free(ptr %memory)
  ret void
}}

define ptr @NRT_MemInfo_alloc(i64 %bytes) {{
  %record = call ptr @NRT_MemInfo_alloc_aligned(i64 %bytes, i32 16)
  ret ptr %record
}}

define ptr @NRT_MemInfo_alloc_aligned(i64 %bytes, i32 %alignment) {{
  %align = zext i32 %alignment to i64
  %head = getelementptr %record, ptr null, i32 1
  %size = ptrtoint ptr %head to i64
  %spare = add i64 %size, %align
  %all = add i64 %bytes, %spare
  %wraps = icmp ult i64 %all, %bytes
  br i1 %wraps, label %fail, label %allocate
allocate:
  %record = call ptr @malloc(i64 %all)
  %failed = icmp eq ptr %record, null
  br i1 %failed, label %fail, label %fill
fill:
  %place = ptrtoint ptr %record to i64
  %after = add i64 %place, %spare
  %mask = sub i64 0, %align
  %start = and i64 %after, %mask
  %offset = sub i64 %start, %place
  %data = getelementptr i8, ptr %record, i64 %offset
  %destructor.at = getelementptr %record, ptr %record, i32 0, i32 1
  %argument.at = getelementptr %record, ptr %record, i32 0, i32 2
  %data.at = getelementptr %record, ptr %record, i32 0, i32 3
  %bytes.at = getelementptr %record, ptr %record, i32 0, i32 4
  store i64 1, ptr %record
  store ptr null, ptr %destructor.at
  store ptr null, ptr %argument.at
  store ptr %data, ptr %data.at
  store i64 %bytes, ptr %bytes.at
  ret ptr %record
fail:
  ret ptr null
}}

define void @NRT_MemInfo_call_dtor(ptr %record) {{
  %destructor.at = getelementptr %record, ptr %record, i32 0, i32 1
  %destructor = load ptr, ptr %destructor.at
  %none = icmp eq ptr %destructor, null
  br i1 %none, label %done, label %destroy
destroy:
  %argument.at = getelementptr %record, ptr %record, i32 0, i32 2
  %data.at = getelementptr %record, ptr %record, i32 0, i32 3
  %bytes.at = getelementptr %record, ptr %record, i32 0, i32 4
  %argument = load ptr, ptr %argument.at
  %data = load ptr, ptr %data.at
  %bytes = load i64, ptr %bytes.at
  call void %destructor(ptr %data, i64 %bytes, ptr %argument)
  br label %done
done:
  call void @free(ptr %record)
  ret void
}}

define ptr @NRT_MemInfo_data_fast(ptr %record) {{
  %data.at = getelementptr %record, ptr %record, i32 0, i32 3
  %data = load ptr, ptr %data.at
  ret ptr %data
}}

define void @NRT_incref(ptr %record) noinline {{
  %none = icmp eq ptr %record, null
  br i1 %none, label %done, label %count
count:
  %before = load i64, ptr %record
  %after = add i64 %before, 1
  store i64 %after, ptr %record
  br label %done
done:
  ret void
}}

define void @NRT_decref(ptr %record) noinline {{
  %none = icmp eq ptr %record, null
  br i1 %none, label %done, label %count
count:
  %before = load i64, ptr %record
  %after = sub i64 %before, 1
  store i64 %after, ptr %record
  %unused = icmp eq i64 %after, 0
  br i1 %unused, label %destroy, label %done
destroy:
  call void @NRT_MemInfo_call_dtor(ptr %record)
  br label %done
done:
  ret void
}}

define i32 @numba_attempt_nocopy_reshape(i64 %dimensions, ptr %sizes, ptr %strides, i64 %new_dimensions, ptr %new_sizes,
                                         ptr %new_strides, i64 %item, i32 %fortran) {{
  %other_order = icmp ne i32 %fortran, 0
  br i1 %other_order, label %no, label %check
check:
  %left = phi i64 [ %dimensions, %0 ], [ %place, %contiguous ]
  %expected = phi i64 [ %item, %0 ], [ %larger, %contiguous ]
  %checked = icmp eq i64 %left, 0
  br i1 %checked, label %fill, label %compare
compare:
  %place = sub i64 %left, 1
  %size.at = getelementptr i64, ptr %sizes, i64 %place
  %size = load i64, ptr %size.at
  %stride.at = getelementptr i64, ptr %strides, i64 %place
  %stride = load i64, ptr %stride.at
  %single = icmp eq i64 %size, 1
  %equal = icmp eq i64 %stride, %expected
  %fine = or i1 %single, %equal
  br i1 %fine, label %contiguous, label %no
contiguous:
  %larger = mul i64 %expected, %size
  br label %check
fill:
  %rest = phi i64 [ %new_dimensions, %check ], [ %new_place, %set ]
  %step = phi i64 [ %item, %check ], [ %new_step, %set ]
  %filled = icmp eq i64 %rest, 0
  br i1 %filled, label %yes, label %set
set:
  %new_place = sub i64 %rest, 1
  %new_stride.at = getelementptr i64, ptr %new_strides, i64 %new_place
  store i64 %step, ptr %new_stride.at
  %new_size.at = getelementptr i64, ptr %new_sizes, i64 %new_place
  %new_size = load i64, ptr %new_size.at
  %new_step = mul i64 %step, %new_size
  br label %fill
yes:
  ret i32 1
no:
  ret i32 0
}}

define void @differential.release(ptr %record) {{
  %before = atomicrmw sub ptr %record, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %destroy, label %done
destroy:
  call void @NRT_MemInfo_call_dtor(ptr %record)
  br label %done
done:
  ret void
}}

define void @differential.release_capsule(ptr %capsule) {{
  %record = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  call void @differential.release(ptr %record)
  ret void
}}

define i64 @differential.bytes(i32 %dimensions, ptr %sizes) {{
  %first = load i64, ptr %sizes
  %flat = icmp eq i32 %dimensions, 1
  br i1 %flat, label %done, label %square
square:
  %second.at = getelementptr i64, ptr %sizes, i32 1
  %second = load i64, ptr %second.at
  %product = mul i64 %first, %second
  br label %done
done:
  %items = phi i64 [ %first, %0 ], [ %product, %square ]
  %bytes = mul i64 %items, 8
  ret i64 %bytes
}}

define i1 @differential.argument(ptr %object, i32 %dimensions, ptr %array) {{
  %type.at = getelementptr i8, ptr %object, i64 {HEAD - 8}
  %type = load ptr, ptr %type.at
  %exact = icmp eq ptr %type, @differential.array_type
  br i1 %exact, label %is_array, label %subclass
subclass:
  %derived = call i32 @PyType_IsSubtype(ptr %type, ptr @differential.array_type)
  %is_derived = icmp ne i32 %derived, 0
  br i1 %is_derived, label %is_array, label %no
is_array:
  %own.at = getelementptr i8, ptr %object, i64 {HEAD + 8}
  %own = load i32, ptr %own.at
  %fits = icmp eq i32 %own, %dimensions
  br i1 %fits, label %is_shaped, label %no
is_shaped:
  %flags.at = getelementptr i8, ptr %object, i64 {HEAD + 48}
  %flags = load i32, ptr %flags.at
  %wanted = and i32 %flags, {0x0001 | 0x0100 | 0x0400} ; contiguous, aligned, writable
  %usable = icmp eq i32 %wanted, {0x0001 | 0x0100 | 0x0400}
  br i1 %usable, label %is_usable, label %no
is_usable:
  %kind.at = getelementptr i8, ptr %object, i64 {HEAD + 40}
  %kind = load ptr, ptr %kind.at
  %number.at = getelementptr i8, ptr %kind, i64 {HEAD + 12}
  %number = load i32, ptr %number.at
  %order.at = getelementptr i8, ptr %kind, i64 {HEAD + 10}
  %order = load i8, ptr %order.at
  %one = icmp eq i32 %number, {_INT64}
  %other = icmp eq i32 %number, {_OTHER}
  %long = or i1 %one, %other
  %native = icmp eq i8 %order, {ord("=")}
  %integers = and i1 %long, %native
  br i1 %integers, label %fill, label %no
fill:
  %data.at = getelementptr i8, ptr %object, i64 {HEAD}
  %data = load ptr, ptr %data.at
  %sizes.at = getelementptr i8, ptr %object, i64 {HEAD + 16}
  %sizes = load ptr, ptr %sizes.at
  %bytes = call i64 @differential.bytes(i32 %dimensions, ptr %sizes)
  %array.data = getelementptr %array, ptr %array, i32 0, i32 1
  %array.bytes = getelementptr %array, ptr %array, i32 0, i32 2
  %array.dimensions = getelementptr %array, ptr %array, i32 0, i32 3
  %array.sizes = getelementptr %array, ptr %array, i32 0, i32 4
  store ptr %object, ptr %array
  store ptr %data, ptr %array.data
  store i64 %bytes, ptr %array.bytes
  store i32 %dimensions, ptr %array.dimensions
  store ptr %sizes, ptr %array.sizes
  ret i1 true
no:
  ret i1 false
}}

define ptr @differential.owner(ptr %data, i64 %bytes, ptr %arrays, i32 %count) {{
  br label %next
next:
  %place = phi i32 [ 0, %0 ], [ %following, %other ]
  %more = icmp slt i32 %place, %count
  br i1 %more, label %look, label %none
look:
  %array = getelementptr %array, ptr %arrays, i32 %place
  %start.at = getelementptr %array, ptr %array, i32 0, i32 1
  %start = load ptr, ptr %start.at
  %size.at = getelementptr %array, ptr %array, i32 0, i32 2
  %size = load i64, ptr %size.at
  %end = getelementptr i8, ptr %start, i64 %size
  %after_start = icmp uge ptr %data, %start
  %before_end = icmp ult ptr %data, %end
  %at_end = icmp eq ptr %data, %end
  %empty = icmp eq i64 %bytes, 0
  %ends = and i1 %at_end, %empty
  %not_after = or i1 %before_end, %ends
  %inside = and i1 %after_start, %not_after
  br i1 %inside, label %found, label %other
other:
  %following = add i32 %place, 1
  br label %next
found:
  ret ptr %array
none:
  ret ptr null
}}

define i1 @differential.is_whole(ptr %array, ptr %data, i32 %dimensions, ptr %sizes) {{
  %start.at = getelementptr %array, ptr %array, i32 0, i32 1
  %start = load ptr, ptr %start.at
  %own.at = getelementptr %array, ptr %array, i32 0, i32 3
  %own = load i32, ptr %own.at
  %same_start = icmp eq ptr %start, %data
  %same_dimensions = icmp eq i32 %own, %dimensions
  %alike = and i1 %same_start, %same_dimensions
  br i1 %alike, label %compare, label %no
compare:
  %own_sizes.at = getelementptr %array, ptr %array, i32 0, i32 4
  %own_sizes = load ptr, ptr %own_sizes.at
  %own_first = load i64, ptr %own_sizes
  %first = load i64, ptr %sizes
  %same_first = icmp eq i64 %own_first, %first
  %own_bytes = call i64 @differential.bytes(i32 %dimensions, ptr %own_sizes)
  %bytes = call i64 @differential.bytes(i32 %dimensions, ptr %sizes)
  %same_bytes = icmp eq i64 %own_bytes, %bytes
  %filled = icmp ne i64 %bytes, 0
  %same_size = and i1 %same_first, %same_bytes
  %same = and i1 %same_size, %filled
  ret i1 %same
no:
  ret i1 false
}}

define ptr @differential.result(ptr %record, ptr %data, i32 %dimensions, ptr %sizes, ptr %arrays, i32 %count) {{
  %owned = icmp ne ptr %record, null
  %length = load i64, ptr %sizes
  %flat = icmp eq i32 %dimensions, 1
  %empty = icmp eq i64 %length, 0
  %common = and i1 %flat, %empty
  br i1 %common, label %share, label %own_or_borrow
share:
  br i1 %owned, label %unneeded, label %shared
unneeded:
  call void @differential.release(ptr %record)
  br label %shared
shared:
  call void @Py_IncRef(ptr @differential.nothing)
  ret ptr @differential.nothing
own_or_borrow:
  br i1 %owned, label %new, label %borrowed
borrowed:
  %bytes = call i64 @differential.bytes(i32 %dimensions, ptr %sizes)
  %argument = call ptr @differential.owner(ptr %data, i64 %bytes, ptr %arrays, i32 %count)
  %foreign = icmp eq ptr %argument, null
  br i1 %foreign, label %new, label %part
part:
  %object = load ptr, ptr %argument
  call void @Py_IncRef(ptr %object)
  %whole = call i1 @differential.is_whole(ptr %argument, ptr %data, i32 %dimensions, ptr %sizes)
  br i1 %whole, label %same, label %new
same:
  ret ptr %object
new:
  %lender = phi ptr [ null, %own_or_borrow ], [ null, %borrowed ], [ %object, %part ]
  %array = call ptr @differential.new_array(ptr @differential.array_type, i32 %dimensions, ptr %sizes, i32 {_INT64},
                                            ptr null, ptr %data, i32 0, i32 {0x0001 | 0x0100 | 0x0400}, ptr null)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %drop, label %own
own:
  br i1 %owned, label %wrap, label %lend
wrap:
  %capsule = call ptr @PyCapsule_New(ptr %record, ptr null, ptr @differential.release_capsule)
  %unwrapped = icmp eq ptr %capsule, null
  br i1 %unwrapped, label %drop_array, label %base
lend:
  %lent = icmp ne ptr %lender, null
  br i1 %lent, label %base, label %done
base:
  %keeper = phi ptr [ %capsule, %wrap ], [ %lender, %lend ]
  %set = call i32 @differential.set_base(ptr %array, ptr %keeper) ; takes the reference, even if it fails
  %unset = icmp slt i32 %set, 0
  br i1 %unset, label %fail, label %done
done:
  ret ptr %array
drop_array:
  call void @Py_DecRef(ptr %array)
  br label %drop
drop:
  br i1 %owned, label %drop_record, label %drop_lender
drop_record:
  call void @differential.release(ptr %record)
  ret ptr null
drop_lender:
  %has_lender = icmp ne ptr %lender, null
  br i1 %has_lender, label %drop_argument, label %nothing
drop_argument:
  call void @Py_DecRef(ptr %lender)
  ret ptr null
nothing:
  ret ptr null
fail:
  call void @Py_DecRef(ptr %array)
  ret ptr null
}}
{TABLES}"""


@functools.cache
def addresses() -> dict[str, int]:
    """Return the addresses of NumPy's functions and type by our names."""
    table = ctypes.pythonapi.PyCapsule_GetPointer
    table.restype, table.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_void_p)
    numpy = importlib.import_module("numpy._core._multiarray_umath")
    entries = ctypes.cast(table(numpy._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return {name: entries[place] or 0 for name, place in ARRAY_API.items()}
