"""Reduction straight from the definition, the slow twin of `differential.kernels.reduce`.

An update is `(key, value, time, diff)`; a multiset is a dict from value to diff without zeros. The output of a key is
the history whose accumulation at every time is the reduction of the accumulated input; it is found by replaying
everything, at every time in the closure under join of all times at the key, in lexicographic order.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction

from timely.order import Time, join, less_equal

Update = tuple[int, int, Time, int]
Multiset = dict[int, int]
Reduction = Callable[[Multiset], Multiset]


class NegativeDiff(Exception):
    """A value has a negative diff, for which the reduction has no meaning."""


def closure_under_join(times: Iterable[Time]) -> set[Time]:
    """Return the joins of all nonempty sets of `times`."""
    closed: set[Time] = set()
    for time in set(times):
        closed |= {join(time, other) for other in closed} | {time}
    return closed


def accumulate(updates: Iterable[Update], time: Time) -> dict[int, Multiset]:
    """Return the multiset of values of each key as of a time."""
    diffs: Counter[tuple[int, int]] = Counter()
    for key, val, when, diff in updates:
        if less_equal(when, time):
            diffs[key, val] += diff
    result: dict[int, Multiset] = {}
    for (key, val), diff in diffs.items():
        if diff != 0:
            result.setdefault(key, {})[val] = diff
    return result


def reduce_by_replay(updates: list[Update], reduction: Reduction) -> list[Update]:
    """Return the output history: at each time, the reduction less the corrections at earlier times."""
    output: list[Update] = []
    for key in sorted({update[0] for update in updates}):
        rows = [update for update in updates if update[0] == key]
        corrections: list[Update] = []
        for time in sorted(closure_under_join(row[2] for row in rows)):
            right = reduction(accumulate(rows, time).get(key, {}))
            wrong = accumulate(corrections, time).get(key, {})
            for val in sorted(right.keys() | wrong.keys()):
                diff = right.get(val, 0) - wrong.get(val, 0)
                if diff != 0:
                    corrections.append((key, val, time, diff))
        output += corrections
    return output


def count(values: Multiset) -> Multiset:
    total = sum(values.values())
    return {total: 1} if total else {}


def total(values: Multiset) -> Multiset:
    return {sum(val * diff for val, diff in values.items()): 1} if values else {}


def float_total(values: Multiset) -> Multiset:
    """The exact sum of floats given as codes, rounded once; finite floats only."""
    exact = sum((Fraction(decode_float(val)) * diff for val, diff in values.items()), Fraction(0))
    try:
        rounded = float(exact)
    except OverflowError:
        rounded = float("inf") if exact > 0 else float("-inf")
    return {encode_float(rounded): 1} if values else {}


def encode_float(number: float) -> int:
    """Return the int64 that orders as the float does."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def decode_float(code: int) -> float:
    """Return the float with this code."""
    bits = code if code >= 0 else code ^ 0x7FFFFFFFFFFFFFFF
    number: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return number


def first_places(
    values: Multiset, places: int, descending: bool, rank: Callable[[int], int | str] = lambda val: val
) -> Multiset:
    """The first values in the order of their ranks, each of which takes as many places as its diff."""
    if any(diff < 0 for diff in values.values()):
        raise NegativeDiff
    result: Multiset = {}
    for val in sorted(values, key=rank, reverse=descending):
        taken = min(places, values[val])
        if taken > 0:
            result[val] = taken
            places -= taken
    return result


def extreme(values: Multiset, descending: bool) -> Multiset:
    return dict.fromkeys(first_places(values, 1, descending), 1)


def text_of(number: int) -> str:
    """Return the string with a number; strings are in another order than their numbers, and have words in common."""
    return "a name of " + "x" * (number % 3) + f"{number * 37 % 101:03d}"


def distinct(values: Multiset) -> Multiset:
    if any(diff < 0 for diff in values.values()):
        raise NegativeDiff
    return dict.fromkeys(values, 1)


REDUCTIONS: dict[str, Callable[[int], Reduction]] = {
    "COUNT": lambda parameter: count,
    "SUM": lambda parameter: total,
    "SUM_FLOAT": lambda parameter: float_total,
    "MIN": lambda parameter: lambda values: extreme(values, False),
    "MAX": lambda parameter: lambda values: extreme(values, True),
    "DISTINCT": lambda parameter: distinct,
    "SMALLEST": lambda parameter: lambda values: first_places(values, parameter, False),
    "LARGEST": lambda parameter: lambda values: first_places(values, parameter, True),
    "FIRST": lambda parameter: lambda values: first_places(values, parameter, False, text_of),
    "LAST": lambda parameter: lambda values: first_places(values, parameter, True, text_of),
}
"""The meaning of each kind of built-in reduction, by name, given its parameter."""
