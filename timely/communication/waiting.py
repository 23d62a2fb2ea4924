"""Prints which peers the workers of a process are waiting for before they have met.

All workers of a process share one `Waiting`, so it prints one line, however many of them wait.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from threading import Lock

from timely.communication.link import Link
from timely.observe.notices import notify

WAITING_SECONDS = 4.0
"""The time until the first line, and between two lines."""


class Waiting:
    """Which workers of a process wait for which peers, and when to print it next."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._missing: dict[int, Collection[Link]] = {}
        self._begun = inf
        self._lines = 0
        self._lock = Lock()

    def note(self, worker: int, missing: Collection[Link], now: float) -> None:
        """Record which peers a worker has not met, and print those of all workers when a line is due."""
        with self._lock:
            self._begun = min(self._begun, now)
            self._missing[worker] = missing
            if not any(self._missing.values()) or now < self._begun + WAITING_SECONDS * (self._lines + 1):
                return
            self._lines = int((now - self._begun) / WAITING_SECONDS)
            peers = {link.peer: f"{link}: {link.state(now)}" for links in self._missing.values() for link in links}
        # Outside of the lock, since whatever listens to notices may take long.
        listed = "; ".join(peers[peer] for peer in sorted(peers))
        seconds = self._lines * WAITING_SECONDS
        notify(f"process {self._process} has waited {seconds:g} s for its peers; {listed}")
