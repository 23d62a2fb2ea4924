"""Errors for numbers of occurrences, and sums, that do not fit into 64 bits.

Operators on collections compute exact sums and products or refuse them: these never wrap around. Numbers that a
program's functions compute with NumPy wrap around as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from differential.data.codes import Encoder
from differential.data.updates import Array, Ints, Updates, plain
from differential.kernels.products import multiply
from differential.kernels.wide import Overflow
from timely.errors import DataError
from timely.lowlevel import CapabilitySet, InputPort, Time


def shown(record: Sequence[Array]) -> str:
    """Return the record that is the first row of columns, for people.

    >>> shown((np.array([7]),)), shown((np.array([7]), np.array(["a"])))
    ('7', "(7, 'a')")
    """
    fields = [column.tolist()[0] for column in record]
    return repr(fields[0]) if len(fields) == 1 else f"({', '.join(map(repr, fields))})"


def naming(
    key: Encoder,
    value: Encoder | None = None,
    held: CapabilitySet | None = None,
    input: InputPort | None = None,
) -> Callable[[Exception], Exception]:
    """Return a function that returns an error that names the record for an `Overflow`, and any other error as it is.

    `key` and `value` decode the record; without `value` the error names only the key. The time in it is that of the
    fault; without one, the least that the operator holds or, if it holds none, that of the message that it handles.
    """
    # An encoder of no columns decodes to none, so that the record is the key alone.
    meaning = Encoder(key.interner, "value", ()) if value is None else value

    def name(error: Exception) -> Exception:
        if not isinstance(error, Overflow):
            return error
        time = error.time
        if time is None and held is not None:
            time = min(held.times, default=None)
        if time is None and input is not None:
            time = input.time
        return named(error, key, meaning, time)

    return name


def named(fault: Overflow, key: Encoder, value: Encoder, time: Time | None = None) -> DataError:
    """Return the error for a record that occurs too often, whose codes a kernel gave."""
    codes = [np.array([code], np.int64) for code in fault.args[:2]]
    keys = key.decode(codes[0], 1)
    if value.adds:
        return too_large(keys[: len(keys) - key.hidden], time)
    columns = keys + value.decode(codes[1], 1)
    return too_often(columns[: len(columns) - value.hidden], time)


def too_large(key: Sequence[Array], time: Time | None = None, room: str = "64 bits") -> DataError:
    """Return the error for a key, the first row of these columns, whose values have too large a sum.

    >>> raise too_large((np.array([7]),), (3,))
    Traceback (most recent call last):
    ...
    timely.errors.DataError: what the values of 7 add up to does not fit into 64 bits, in which a sum and a mean ...
    """
    return DataError(
        f"what the values of {shown(key)} add up to does not fit into {room}, in which a sum and a mean are made: "
        "divide them first, or add up floats",
        time,
    )


def too_often(record: Sequence[Array], time: Time | None = None) -> DataError:
    """Return the error for a record, the first row of these columns, that occurs too often.

    >>> raise too_often((np.array([7]),))
    Traceback (most recent call last):
    ...
    timely.errors.DataError: how often 7 occurs does not fit into 64 bits: insert it less often, or add up ...
    """
    return DataError(
        f"how often {shown(record)} occurs does not fit into 64 bits: insert it less often, or add up quantities as "
        "floats (sum) rather than as numbers of occurrences",
        time,
    )


def multiplied(updates: Updates, factors: Ints, *, keys: int | None = None) -> Ints:
    """Return the products of the diffs of updates with `factors`, of which each update has one, or several.

    With several, each update has one before any has its second. Raises DataError, which names the record and the time,
    where a product does not fit into 64 bits. With `keys`, a product is a part of a sum over that many columns.

    >>> often = Updates.at((3,), (np.array([7]),), np.array([1 << 40]))
    >>> multiplied(often, np.array([1 << 23]))
    Traceback (most recent call last):
    ...
    timely.errors.DataError: how often 7 occurs does not fit into 64 bits: ...
    """
    if not len(updates.diffs):
        return factors
    products = np.empty(len(factors), np.int64)
    diffs = updates.diffs if len(factors) == len(updates) else np.tile(updates.diffs, len(factors) // len(updates))
    # It returns the first row whose product does not fit, or a negative number.
    row = multiply(plain(diffs), plain(factors), products)
    if row >= 0:
        fault = updates.take(np.array([row % len(updates)]))
        record, time = fault.columns[:keys], fault.each_time()[0]
        raise too_often(record, time) if keys is None else too_large(record, time)
    return products
