"""A few events, and what a reader returns of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from timely.capture.event import EventSource, Messages
from timely.data.container import Batch, Columns, records

EVENTS = [Messages((epoch,), Columns((np.arange(5) + epoch,))) for epoch in range(3)]
EXPECTED = [(event.time, list(records(event.batch))) for event in EVENTS]


class Unknown:
    """An event of an unregistered kind."""

    kind = "unknown"

    def parts(self) -> tuple[None, None]:
        return None, None

    @classmethod
    def from_parts(cls, plain: Any, batch: Batch | None) -> Unknown:
        return cls()


def read(source: EventSource) -> list[object]:
    """Return the events that `source` has now."""
    found = []
    while (event := source.next_nowait()) is not None:
        assert isinstance(event, Messages)
        found.append((event.time, list(records(event.batch))))
    return found
