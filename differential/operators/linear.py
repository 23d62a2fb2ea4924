"""Operators that treat every update by itself: functions from a batch of updates to a batch of updates, run in line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from differential.updates import Updates
from timely.data.container import Batch
from timely.dataflow.inline import inline

if TYPE_CHECKING:
    from differential.collection import Collection


def linear(
    collection: Collection, transform: Callable[[Updates], Updates], *, keys: int | None = None, name: str
) -> Collection:
    """Return the collection whose updates are `transform(batch)` for each batch of updates."""
    from differential.collection import Collection

    def apply(batch: Batch) -> Updates:
        return transform(cast(Updates, batch))

    return Collection(inline(collection.stream, apply, name=name), collection.keys if keys is None else keys)
