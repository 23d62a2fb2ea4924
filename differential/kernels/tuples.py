"""Tables that are made of tuples for one call of a kernel, in LLVM's intermediate code; a part of `runtime.py`.

Tables of batches and of times have a few rows mostly. To pass one as a tuple costs some nanoseconds for each row, and
to make an array of it in Python a microsecond. `differential.batches` takes a tuple of arrays of which each begins with
a row, and `differential.frontier` a tuple of times. `differential.table` makes the table: it calls a function for each
item that writes the row, `differential.head` or `differential.time`. An array of two dimensions is taken as it is. The
memory of a table that was made (`differential.room`) is the caller's to free.
"""

from __future__ import annotations

_HEAD = object.__basicsize__

TABLES = f"""
declare ptr @memcpy(ptr, ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_Occurred()
@PyTuple_Type = external global i8

define i1 @differential.is_tuple(ptr %object) {{
  %type.at = getelementptr i8, ptr %object, i64 {_HEAD - 8}
  %type = load ptr, ptr %type.at
  %is_tuple = icmp eq ptr %type, @PyTuple_Type
  ret i1 %is_tuple
}}

define i1 @differential.room(i64 %rows, i64 %columns, ptr %object, ptr %array) {{
  %items = mul i64 %rows, %columns
  %bytes = mul i64 %items, 8
  %all = add i64 %bytes, 16
  %memory = call ptr @malloc(i64 %all)
  %failed = icmp eq ptr %memory, null
  br i1 %failed, label %no, label %fill
fill:
  %columns.at = getelementptr i64, ptr %memory, i64 1
  %data = getelementptr i8, ptr %memory, i64 16
  store i64 %rows, ptr %memory
  store i64 %columns, ptr %columns.at
  %array.data = getelementptr %array, ptr %array, i32 0, i32 1
  %array.bytes = getelementptr %array, ptr %array, i32 0, i32 2
  %array.dimensions = getelementptr %array, ptr %array, i32 0, i32 3
  %array.sizes = getelementptr %array, ptr %array, i32 0, i32 4
  %array.memory = getelementptr %array, ptr %array, i32 0, i32 5
  store ptr %object, ptr %array
  store ptr %data, ptr %array.data
  store i64 %bytes, ptr %array.bytes
  store i32 2, ptr %array.dimensions
  store ptr %memory, ptr %array.sizes
  store ptr %memory, ptr %array.memory
  ret i1 true
no:
  ret i1 false
}}

define i1 @differential.table(ptr %object, i64 %columns, ptr %write, ptr %array) {{
  %rows = call i64 @PyTuple_Size(ptr %object)
  %has_room = call i1 @differential.room(i64 %rows, i64 %columns, ptr %object, ptr %array)
  br i1 %has_room, label %start, label %no
start:
  %data.at = getelementptr %array, ptr %array, i32 0, i32 1
  %data = load ptr, ptr %data.at
  br label %next
next:
  %row = phi i64 [ 0, %start ], [ %following, %written ]
  %more = icmp slt i64 %row, %rows
  br i1 %more, label %each, label %yes
each:
  %item = call ptr @PyTuple_GetItem(ptr %object, i64 %row)
  %base = mul i64 %row, %columns
  %target = getelementptr i64, ptr %data, i64 %base
  %is_row = call i1 %write(ptr %item, i64 %columns, ptr %target)
  br i1 %is_row, label %written, label %no
written:
  %following = add i64 %row, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}}

define i1 @differential.head(ptr %item, i64 %columns, ptr %target) {{
  %head = alloca %array
  %is_head = call i1 @differential.argument(ptr %item, i32 1, ptr %head)
  br i1 %is_head, label %check, label %no
check:
  %bytes.at = getelementptr %array, ptr %head, i32 0, i32 2
  %bytes = load i64, ptr %bytes.at
  %row = mul i64 %columns, 8
  %is_whole = icmp uge i64 %bytes, %row
  br i1 %is_whole, label %copy, label %no
copy:
  %source.at = getelementptr %array, ptr %head, i32 0, i32 1
  %source = load ptr, ptr %source.at
  %copied = call ptr @memcpy(ptr %target, ptr %source, i64 %row)
  ret i1 true
no:
  ret i1 false
}}

define i1 @differential.time(ptr %item, i64 %columns, ptr %target) {{
  %is_tuple = call i1 @differential.is_tuple(ptr %item)
  br i1 %is_tuple, label %check, label %no
check:
  %own = call i64 @PyTuple_Size(ptr %item)
  %alike = icmp eq i64 %own, %columns
  br i1 %alike, label %next, label %no
next:
  %column = phi i64 [ 0, %check ], [ %after, %store ]
  %left = icmp slt i64 %column, %columns
  br i1 %left, label %read, label %yes
read:
  %number = call ptr @PyTuple_GetItem(ptr %item, i64 %column)
  %value = call i64 @PyLong_AsLongLong(ptr %number)
  %suspect = icmp eq i64 %value, -1
  br i1 %suspect, label %ask, label %store
ask:
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %store, label %no
store:
  %place = getelementptr i64, ptr %target, i64 %column
  store i64 %value, ptr %place
  %after = add i64 %column, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}}

define i1 @differential.batches(ptr %object, ptr %array) {{
  %is_made = call i1 @differential.is_tuple(ptr %object)
  br i1 %is_made, label %make, label %given
given:
  %fits = call i1 @differential.argument(ptr %object, i32 2, ptr %array)
  ret i1 %fits
make:
  %is_table = call i1 @differential.table(ptr %object, i64 8, ptr @differential.head, ptr %array)
  ret i1 %is_table
}}

define i1 @differential.frontier(ptr %object, ptr %array) {{
  %is_made = call i1 @differential.is_tuple(ptr %object)
  br i1 %is_made, label %make, label %given
given:
  %fits = call i1 @differential.argument(ptr %object, i32 2, ptr %array)
  ret i1 %fits
make:
  %rows = call i64 @PyTuple_Size(ptr %object)
  %none = icmp eq i64 %rows, 0
  br i1 %none, label %no, label %measure
measure:
  %first = call ptr @PyTuple_GetItem(ptr %object, i64 0)
  %is_time = call i1 @differential.is_tuple(ptr %first)
  br i1 %is_time, label %count, label %no
count:
  %columns = call i64 @PyTuple_Size(ptr %first)
  %is_table = call i1 @differential.table(ptr %object, i64 %columns, ptr @differential.time, ptr %array)
  ret i1 %is_table
no:
  ret i1 false
}}
"""
