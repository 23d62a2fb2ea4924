"""What pacts for updates have in common."""

from __future__ import annotations

from differential.updates import Updates
from timely.container import Batch


class OfUpdates:
    """A pact for updates alone: it admits no other batches, and no times of other scopes.

    >>> updates = Updates.at((7,), (np.array([1, 2]),))
    >>> OfUpdates().admits(updates, 1), OfUpdates().admits(updates, 2), OfUpdates().admits([1, 2], 1)
    (True, False, False)
    """

    def admits(self, batch: Batch, coordinates: int) -> bool:
        """Return whether a batch is one of updates, at times of so many coordinates (see `pact.Selective`)."""
        return type(batch) is Updates and batch.times.shape[1] == coordinates
