"""The relational join from its definition: a loop in a loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.oracle.layers import Update
from timely.order import Time, join

Pair = tuple[int, int, int, Time, int]
"""Key, new value, past value, time, diff."""


def join_by_loops(new: Iterable[Sequence[Update]], past: Iterable[Sequence[Update]]) -> list[Pair]:
    """Return all pairs of rows with equal keys, sorted; equal pairs are not added up."""
    layers = list(past)
    return sorted(
        (key, new_val, past_val, join(new_time, past_time), new_diff * past_diff)
        for batch in new
        for layer in layers
        for key, new_val, new_time, new_diff in batch
        for past_key, past_val, past_time, past_diff in layer
        if key == past_key
    )
