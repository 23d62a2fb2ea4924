"""Messages in transit from the cluster that writes a collection to the one that reads it.

They arrive late, in any order, some of them several times, at any of the sources that are read. In the end all have
arrived.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from timely.capture import EventQueue
from timely.capture.event import Event

PLACES = 3
"""The number of sources read for each collection, whatever the number of workers."""


class Post:
    """Carries the messages of one collection, from each of its writers."""

    def __init__(self, writers: int, random: Random, happened: Counter[str]) -> None:
        self.written = [EventQueue() for _ in range(writers)]
        self.read = [EventQueue() for _ in range(PLACES)]
        self._random = random
        self._happened = happened
        self._waiting: list[Event] = []
        self._is_closed = False

    def carry(self) -> None:
        """Deliver a message, if there is one, and close the sources at which no more will arrive."""
        for queue in self.written:
            while (event := queue.next_nowait()) is not None:
                self._waiting.append(event)
        if self._waiting:
            place = self._random.randrange(len(self._waiting))
            self._happened["message out of turn"] += place > 0
            self._random.choice(self.read).push(self._waiting[place])
            if self._random.random() < 0.2:
                self._happened["message repeated"] += 1
            else:
                self._waiting.pop(place)
        elif not self._is_closed and all(queue.exhausted for queue in self.written):
            self._is_closed = True
            for queue in self.read:
                queue.close()
