"""pandas and Polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

from differential.extra import needs
from timely.errors import DataError
from timely.lowlevel import Array, Typed, name_of, stated, typed

POLARS_DIGITS = 38


def to_pandas(names: Sequence[str], columns: Sequence[Array]) -> Any:
    """Return a pandas frame of columns: plain columns as they are, others as the types of pandas that have nulls."""
    needs("pandas", "to make a pandas frame")
    import pandas

    series = {}
    for name, column in zip(names, columns):
        if type(column) is np.ndarray and column.dtype.kind in "iufb":
            series[name] = pandas.Series(column, copy=False)
        else:
            try:
                series[name] = _series(column)
            except (ValueError, OverflowError) as error:  # pandas has objects of Python for dates and times of day
                raise DataError(
                    f"column {name!r} holds {name_of(column)}, and pandas cannot have all of its values: {error}; "
                    "to_arrow() and to_polars() keep them"
                ) from None
    return pandas.DataFrame(series, copy=False)


def _series(column: Array) -> Any:
    """Return a column that is not an array of numbers as a series."""
    needs("pyarrow", "to make a pandas frame of other columns than numbers")
    import pandas
    import pyarrow as pa

    from differential.frames.arrow_out import array_of

    if isinstance(column, Typed) and column.type.is_opaque:  # Arrow would make arrays of NumPy of lists
        return pandas.Series(np.asarray(column), dtype=object)
    types = {
        pa.int64(): pandas.Int64Dtype(),
        pa.uint64(): pandas.UInt64Dtype(),
        pa.bool_(): pandas.BooleanDtype(),
        pa.float64(): pandas.Float64Dtype(),
        pa.float32(): pandas.Float32Dtype(),
    }
    array = array_of(column)
    may_be_null = isinstance(column, Typed) and column.type.name.endswith("?") and array.type in types
    # With a mapper, however empty, text is converted row by row.
    return array.to_pandas(types_mapper=types.get if may_be_null else None, timestamp_as_object=False)


def to_polars(names: Sequence[str], columns: Sequence[Array]) -> Any:
    """Return a Polars frame of columns.

    Raises DataError for decimals of more digits, and instants of other zones, than Polars has.
    """
    needs("polars", "to make a Polars frame")
    import polars

    from differential.frames.arrow_out import table

    for name, column in zip(names, columns):
        of: Any = column.type if isinstance(column, Typed) else None
        if getattr(of, "precision", 0) > POLARS_DIGITS:
            raise DataError(
                f"column {name!r} holds {of.name}, and decimals of Polars have at most {POLARS_DIGITS} digits: "
                f"typed(column, 'decimal({POLARS_DIGITS}, {of.scale})') of differential.frames converts it, where "
                "all values fit"
            )
        if (zone := getattr(of, "zone", None)) is not None:
            try:
                polars.Series(name, [], polars.Datetime("us", zone))
            except polars.exceptions.PolarsError:
                utc = of.name.replace(zone, "UTC")
                raise DataError(
                    f"column {name!r} holds {of.name}, and Polars does not have this zone: typed(column, {utc!r}) of "
                    "differential.frames converts it"
                ) from None
    return polars.from_arrow(table(names, columns))


def without_columns(kind: str) -> Any:
    """Return a frame that has no columns and no rows: `kind` is `"pandas"`, `"polars"` or `"pyarrow"`.

    >>> without_columns("pandas").shape
    (0, 0)
    """
    needs(kind, "to make a frame")
    module = import_module(kind)
    return module.table({}) if kind == "pyarrow" else module.DataFrame()


def columns_of_pandas(frame: Any, types: Mapping[str, str] = MappingProxyType({})) -> tuple[list[str], list[Any]]:
    """Return the names and the columns of a pandas frame: arrays of numbers as they are, others as Arrow arrays.

    Columns of nulls alone are lists, and so are objects of Python of which Arrow would change some. The levels of an
    index that have names are columns, too, before the others. In a column that is of none of the types of floats in
    `types`, NaN is a null.
    """
    import pyarrow as pa

    from differential.frames.arrow_in import column_of

    named = [name for name in frame.index.names if name is not None]
    if taken := [name for name in named if name in frame.columns]:
        raise DataError(f"the index and a column are both named {taken[0]!r}: rename one, or reset_index(drop=True)")
    names, columns = [], []
    for name, series in (frame.reset_index(level=named) if named else frame).items():
        names.append(name)
        if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iufbmM":
            columns.append(_with_nulls(series.to_numpy(), types.get(name, "float64")))
        elif (objects := _objects_of(series)) is not None:
            columns.append(objects)
        else:
            try:
                array = _array_of_series(series)
                is_untyped = pa.types.is_null(array.type)
                whole = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
                columns.append(array.to_pylist() if is_untyped else column_of(whole))
            except pa.ArrowException as error:
                raise DataError(
                    f"column {name!r}: Arrow cannot read {series.dtype}: {error}; convert it first"
                ) from None
            except DataError as error:
                raise DataError(f"column {name!r}: {error}") from None
    return names, columns


def _with_nulls(array: Any, of: str) -> Any:
    """Return a column of numbers; NaN as null if there is nothing else, or whole numbers, for a column of a type.

    pandas makes floats of integers beside missing values, and of a column that has no value.
    """
    if not len(array):
        return stated(array)
    if array.dtype.kind != "f" or of.startswith("float"):
        return array
    missing = np.isnan(array)
    if missing.all():
        return [None] * len(array)
    present = array[~missing]
    # pandas may have rounded what was beyond 53 bits, so only smaller numbers are taken for the integers they were.
    # Infinity fails both tests.
    is_whole = of.removesuffix("?") == "int64" and (np.abs(present) < 1 << 53).all() and (present % 1 == 0).all()
    if not missing.any() or not is_whole:
        return array
    return typed([None if each != each else int(each) for each in array.tolist()], "int64?")


def _objects_of(series: Any) -> list[Any] | None:
    """Return the values of a series of objects, with None for nulls; None if Arrow reads the series as it is.

    Arrow infers one type and converts the values to it: it cuts the hours off a time beside a date, the zone off an
    instant beside a time without one, and the nanoseconds off a duration.
    """
    if series.dtype != object:
        return None
    missing = series.isna().to_numpy()
    classes = set(map(type, series[~missing]))
    if not classes or (len(classes) == 1 and classes <= _UNCHANGED):
        return None
    return [None if is_null else value for value, is_null in zip(series, missing)]


_UNCHANGED = {str, bytes, bool, float}
"""Classes of which Arrow reads all values as a list of them is read, if there are no others among them."""


def refuse_objects_of_polars(frame: Any) -> None:
    """Raise DataError if a frame of Polars has a column of objects, which Polars exports as their addresses."""
    import polars

    for name, of in frame.schema.items():
        if of == polars.Object:
            raise DataError(f"column {name!r}: a column cannot hold Python objects: make a column of their values")


def _array_of_series(series: Any) -> Any:
    """Return a series that is not an array of numbers as an Arrow array.

    Arrow before version 26 reads instants with a zone by an attribute that pandas deprecates with a warning since 3.1.
    So this function makes arrays of UTC of them first.
    """
    import pandas
    import pyarrow as pa

    of = series.dtype
    if isinstance(of, pandas.CategoricalDtype) and isinstance(of.categories.dtype, pandas.DatetimeTZDtype):
        return _array_of_series(series.astype(of.categories.dtype))
    if not isinstance(of, pandas.DatetimeTZDtype):
        return pa.array(series, from_pandas=True)
    instants = series.dt.tz_convert(None).to_numpy()
    return pa.array(instants, pa.timestamp(of.unit, of.tz), from_pandas=True)
