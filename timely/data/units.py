"""Functions of times that count different units: what NumPy cannot convert to one unit is compared exactly, or refused.

NumPy converts both sides to the finer of their units. A count that does not fit into 64 bits then becomes another time
before NumPy 2.5, which raises OverflowError: the year 9999 in nanoseconds is one of the year 1816.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timely.data.logical import Array
from timely.errors import DataError


def applied(ufunc: np.ufunc, operands: list[Any]) -> Any:
    """Return a function of columns of times and other values. Raises DataError where it would need more than 64 bits.

    >>> day, nano = np.array(["9999-12-31"], "M8[D]"), np.array(["2026-03-01"], "M8[ns]")
    >>> applied(np.greater, [day, nano])
    array([ True])
    """
    if len({each.dtype for each in operands if _is_time(each)}) > 1:
        operands = list(map(_in_days, operands))
        times = [each for each in operands if _is_time(each)]
        finest = np.result_type(*[np.dtype(f"m8{each.dtype.str[3:]}") for each in times])
        beyond = [each for each in times if not _fits(each, finest)]
        if beyond and ufunc in _EXACT and len(times) == 2:
            return _compared(ufunc, times[0], times[1], finest)
        if beyond:
            raise DataError(
                f"a time in {_unit(beyond[0].dtype)} does not fit into 64 bits in {_unit(finest)}, the finest unit of "
                "these columns; .astype converts the other column to a coarser one"
            )
    try:
        return ufunc(*operands)
    except OverflowError as error:  # of NumPy 2.5; before, a result that is too large comes out as another one
        raise DataError(f"a result does not fit into 64 bits: {error}") from None


def _is_time(operand: Any) -> bool:
    return isinstance(operand, (np.ndarray, np.generic)) and operand.dtype.kind in "mM"


def _in_days(operand: Any) -> Any:
    """Return dates that count months or years, which have no fixed length, in days."""
    is_long = _is_time(operand) and operand.dtype.kind == "M" and _unit(operand.dtype) in ("M", "Y")
    return operand.astype("M8[D]") if is_long else operand


def _unit(dtype: Any) -> str:
    return str(np.datetime_data(dtype)[0])


def _fits(times: Any, finest: np.dtype[Any]) -> bool:
    """Return whether times, or durations, can be counted in a finer unit, that of a duration."""
    try:
        finer = times.astype(f"{times.dtype.kind}8{finest.str[3:]}")
    except OverflowError:  # of NumPy 2.5; before, what is too large comes out as another time
        return False
    return bool(((finer.astype(times.dtype) == times) | np.isnat(times)).all())


def _compared(ufunc: np.ufunc, first: Any, second: Any, finest: np.dtype[Any]) -> Any:
    """Return a comparison of times, of which one side counts in the finest of their units."""
    is_fine_first = first.dtype.str[3:] == finest.str[3:]
    fine, coarse = (first, second) if is_fine_first else (second, first)
    if fine.dtype.str[3:] != finest.str[3:]:
        raise DataError(f"cannot compare times in {first.dtype} and {second.dtype}; .astype converts one of them")
    # How many of the finest unit there are in one of the coarse unit.
    ratio = int(np.ones(1, f"m8{coarse.dtype.str[3:]}").astype(finest).astype(np.int64)[0])
    counts, wanted = fine.astype(np.int64), coarse.astype(np.int64)
    below = counts // ratio  # the last count of the coarse unit that is not after the time
    above = below + (counts % ratio != 0)
    # `_EXACT` has the finer time on the left, where the program may have the coarser one.
    found = _EXACT[ufunc if is_fine_first else _REVERSED[ufunc]](below, above, wanted)
    missing = np.isnat(fine) | np.isnat(coarse)
    return np.where(missing, ufunc is np.not_equal, found)


_EXACT: dict[np.ufunc, Callable[[Array, Array, Array], Any]] = {
    np.less: lambda below, above, wanted: below < wanted,
    np.less_equal: lambda below, above, wanted: above <= wanted,
    np.greater: lambda below, above, wanted: above > wanted,
    np.greater_equal: lambda below, above, wanted: below >= wanted,
    np.equal: lambda below, above, wanted: (below == wanted) & (above == wanted),
    np.not_equal: lambda below, above, wanted: (below != wanted) | (above != wanted),
}
"""How a time between two counts of a coarser unit, or at one, compares with a count of that unit."""

_REVERSED: dict[np.ufunc, np.ufunc] = {
    np.less: np.greater,
    np.less_equal: np.greater_equal,
    np.greater: np.less,
    np.greater_equal: np.less_equal,
    np.equal: np.equal,
    np.not_equal: np.not_equal,
}
