"""Operators that treat every update by itself: functions from a batch of updates to a batch of updates, run in line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential.arrangement.core import C
from differential.data.updates import Updates, updates_of
from timely.lowlevel import Batch, as_columns, call, inline


def linear(collection: C, transform: Callable[[Updates], Updates], *, keys: Any = None, name: str) -> C:
    """Return the collection whose updates are `transform(batch)` for each batch of updates.

    `keys` is the number of key columns, by default that of `collection`. Its type is not declared, since compiled code
    would refuse others before `check_keys` can.
    """

    def apply(batch: Batch) -> Updates:
        return transform(updates_of(batch))

    return collection.with_stream(inline(collection.stream, apply, name=name), keys)


def mapped(function: Callable[..., Any]) -> Callable[[Updates], Updates]:
    """Return the transform that replaces every record by `function` of it. Here it is compiled; `map` is not."""

    def transform(updates: Updates) -> Updates:
        return updates.with_columns(as_columns(call(function, updates.columns), len(updates)))

    return transform
