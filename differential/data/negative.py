"""Errors for records that occur a negative number of times.

The theory allows them: a difference of collections has such records, and operators that add and multiply numbers of
occurrences (`concat`, `negate`, `join`, `consolidate`, `sum`, `totals`, ...) pass them on. Mostly, though, a negative
number means that a program has removed a record that was not there. So every operator that interprets a number of
occurrences refuses a negative one: `count`, `distinct`, `threshold`, the other reductions, and readers of a collection
(`output`, `Trace.contents`, cursors). Those that can also report a difference accept `signed=True`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from differential.data.overflow import shown
from timely.errors import NegativeCountError
from timely.lowlevel import Time

_REMEDY = (
    ": something was removed that was not there, at that time or before, perhaps because a function returned another "
    "value for a record than it did before"
)
_OR_A_DIFFERENCE = "; or this is a difference, for which there is signed=True"


def negative_count(
    record: Sequence[NDArray[Any]], count: int, time: Time, *, may_be_signed: bool = False
) -> NegativeCountError:
    """Return the error for a record, the first row of these columns, that occurs a negative number of times.

    `may_be_signed` is whether the operator that refuses it accepts `signed=True`.

    >>> raise negative_count((np.array([7]),), -1, (3,))
    Traceback (most recent call last):
    ...
    timely.errors.NegativeCountError: the record 7 occurs a negative number of times, -1: something was removed ...
    """
    remedy = _REMEDY + _OR_A_DIFFERENCE if may_be_signed else _REMEDY
    fault = f"the record {shown(record)} occurs a negative number of times, {count}"
    return NegativeCountError(fault, time, remedy=remedy)


def negative_total(key: Sequence[NDArray[Any]], count: int, time: Time) -> NegativeCountError:
    """Return the error for a key, the first row of these columns, that has a negative number of records.

    >>> raise negative_total((np.array([7]),), -1, (3,))
    Traceback (most recent call last):
    ...
    timely.errors.NegativeCountError: the key 7 has a negative number of records, -1: something was removed ...
    """
    fault = f"the key {shown(key)} has a negative number of records, {count}"
    return NegativeCountError(fault, time, remedy=_REMEDY + _OR_A_DIFFERENCE)
