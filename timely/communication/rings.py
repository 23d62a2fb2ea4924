"""The rings of one worker as its allocator uses them. Without rings there is nothing to take or wait for."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from timely.communication.inbox import ARE_POSSIBLE, Inbox
from timely.communication.link import Link


class Rings:
    """The rings from all peers that have been given one.

    >>> rings = Rings()
    >>> rings.is_ready(), rings.filenos(), rings.close()
    (False, [], None)
    """

    def __init__(self) -> None:
        self.links: list[Link] = []
        """The peers that may send by rings."""
        self._inbox: Inbox | None = None

    def provide(self, links: Collection[Link]) -> None:
        """Make a ring for each peer, if the system can."""
        if ARE_POSSIBLE:
            with suppress(OSError):  # no memory, or no descriptors: then everything goes by the sockets
                self._inbox = Inbox([link.peer for link in links])
                self.links = [*links]
                for link in links:
                    link.ring, link.offer = self._inbox.readers[link.peer], self._inbox.offer(link.peer)

    def is_ready(self) -> bool:
        """Return whether the next message of a peer lies in its ring."""
        return any(link.is_ring_ready for link in self.links)

    def set_asleep(self, value: bool) -> None:
        if self._inbox is not None:
            self._inbox.set_asleep(value)

    def filenos(self) -> list[int]:
        return [] if self._inbox is None else [self._inbox.fileno()]

    def clear(self) -> None:
        if self._inbox is not None:
            self._inbox.clear()

    def close(self) -> None:
        if self._inbox is not None:
            self._inbox.close()
