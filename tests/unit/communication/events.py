"""A few events, and reading what comes of them."""

from __future__ import annotations

import numpy as np

from timely.captured import EventSource, Messages
from timely.container import Columns, records

EVENTS = [Messages((epoch,), Columns((np.arange(5) + epoch,))) for epoch in range(3)]
EXPECTED = [(event.time, list(records(event.batch))) for event in EVENTS]


def read(source: EventSource) -> list[object]:
    """Return what `source` has to give now."""
    found = []
    while (event := source.next_nowait()) is not None:
        assert isinstance(event, Messages)
        found.append((event.time, list(records(event.batch))))
    return found
