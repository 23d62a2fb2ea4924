"""Frames: columns between Arrow and collections, beside the conversion of pyarrow to NumPy or Python's text.

A column of an Arrow table is read as a frame, and the frame is converted to Arrow again. The first conversion is not
measured. The result is compared with the table. The last figures are the times that pyarrow takes to make a NumPy array
of the column, of Python's strings where it is text.

The cases of lists convert a list of Python's values to a column and back. The last figure is the rate at which pyarrow
makes an array of the list.

The cases of a session make a table of integers and floats from the frame of a library and commit it, and read the
table as a frame of the same library. The last figure is the time that pyarrow takes to sort the same rows: a table is
indexed, and read in order.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.graphs import splitmix
from benchmarks.harness import Case, Figures, check

IN, OUT, ARROW = "in, M rows/s", "out, M rows/s", "pyarrow, M rows/s"
KINDS = ("integers", "integers with nulls", "floats", "timestamps", "text", "text with nulls", "decimals")
LISTS = ("integers", "floats", "text", "timestamps", "decimals", "integers with nulls")
LIBRARIES = ("numpy", "pandas", "polars", "arrow")
LIMITS = {"integers": {IN: 1000.0, OUT: 1000.0}, "floats": {IN: 500.0, OUT: 1000.0}}
"""The least rates of what is not copied."""

CASES = [
    *(Case(f"frames 1M {kind}", "frames", {"kind": kind, "rows": 1_000_000}) for kind in KINDS),
    *(
        Case(
            f"frames 10M {kind}", "frames", {"kind": kind, "rows": 10_000_000}, quick=False, limits=LIMITS.get(kind, {})
        )
        for kind in KINDS
    ),
    *(Case(f"frames 1M lists of {kind}", "frames", {"kind": f"lists of {kind}", "rows": 1_000_000}) for kind in LISTS),
    *(
        Case(f"frames {size} of a session, {library}", "frames", {"kind": library, "rows": rows}, quick=False)
        for size, rows in (("1M", 1_000_000), ("10M", 10_000_000))
        for library in LIBRARIES
    ),
]


def column(kind: str, rows: int) -> Any:
    """Return an Arrow array with one value of eight null where there are nulls."""
    import pyarrow as pa

    numbers = (splitmix(np.arange(rows)) >> np.uint64(20)).astype(np.int64)
    missing = numbers % 8 == 0
    if kind.startswith("integers"):
        return pa.array(numbers, mask=missing if kind.endswith("nulls") else None)
    if kind == "floats":
        return pa.array(numbers / 7)
    if kind == "timestamps":
        return pa.array(numbers.view("M8[us]"))
    if kind == "decimals":
        return pa.array(numbers).cast(pa.decimal128(20, 0)).cast(pa.decimal128(18, 0))
    names = pa.array(np.char.add("name ", (numbers % 10_000).astype("U")).tolist())
    return pa.compute.if_else(pa.array(missing), None, names) if kind.endswith("nulls") else names


def measure(kind: str, rows: int) -> Figures:
    """Return how many rows are converted in a second, each way, and by pyarrow."""
    import pyarrow as pa
    import pyarrow.compute

    from differential.frames import read

    if kind in LIBRARIES:
        return _of_session(kind, rows)
    if kind.startswith("lists of "):
        return _of_list(column(kind.removeprefix("lists of "), rows).to_pylist())
    table = pa.table({"column": column(kind, rows)})
    frame, into = _timed(lambda: read(table))
    found, out = _timed(frame.to_arrow)
    _, arrow = _timed(lambda: table["column"].to_numpy())
    check(found["column"].combine_chunks().equals(table["column"].combine_chunks()), "the column has changed")
    return {IN: 1e-6 * rows / into, OUT: 1e-6 * rows / out, ARROW: 1e-6 * rows / arrow}


def _of_list(values: list[Any]) -> Figures:
    """Return how many values become a column in a second, and are read from it, and how many pyarrow takes."""
    import pyarrow as pa

    from differential.frames import read

    frame, into = _timed(lambda: read({"column": values}))
    found, out = _timed(frame.columns[0].tolist)
    _, arrow = _timed(lambda: pa.array(values))
    check(found == values, "the values have changed")
    return {IN: 1e-6 * len(values) / into, OUT: 1e-6 * len(values) / out, ARROW: 1e-6 * len(values) / arrow}


def _of_session(library: str, rows: int) -> Figures:
    """Return how many rows a session takes and returns in a second, and how many pyarrow sorts."""
    import pyarrow as pa

    from differential import Session

    numbers = np.argsort(splitmix(np.arange(rows)))
    columns = {"number": numbers, "share": numbers / 7}
    table = pa.table(columns)
    frames = {"numpy": lambda: columns, "pandas": table.to_pandas, "polars": lambda: _polars(table)}
    frame = frames.get(library, lambda: table)()
    with Session() as db:

        def commit() -> None:
            db.drop("rows")
            db.table("rows", frame)
            db.commit()

        db.table("rows", {"number": int, "share": float})
        _, into = _timed(commit)
        found = db.table("rows")
        reads = {"numpy": lambda: found.rows().arrays(), "pandas": found.to_pandas, "polars": found.to_polars}
        _, out = _timed(reads.get(library, found.to_arrow))
        ordered, arrow = _timed(lambda: table.sort_by([("number", "ascending"), ("share", "ascending")]))
        check(found.to_arrow().combine_chunks().equals(ordered.combine_chunks()), "the rows have changed")
    return {IN: 1e-6 * rows / into, OUT: 1e-6 * rows / out, ARROW: 1e-6 * rows / arrow}


def _polars(table: Any) -> Any:
    import polars

    return polars.from_arrow(table)


def _timed(convert: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a conversion, and the seconds that the second one takes."""
    convert()
    begun = clock.perf_counter()
    result = convert()
    return result, clock.perf_counter() - begun
