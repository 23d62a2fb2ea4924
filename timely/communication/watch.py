"""Looking after the connections of a worker while the worker is busy.

That a peer is alive is established between the I/O threads of ZeroMQ, which run without the interpreter: they ask
several times a timeout, and give a connection up that has been silent for half of it. So a worker may compute as long
as it likes; a process that is stopped, killed or cut off loses its connections.

One thread a worker waits for such events, notes them on the links, and wakes the worker for a loss, which it raises
when it next receives. When the worker does not come back to its sockets by then, because it is in a long operator, the
thread says so on standard error. It sleeps unless something happens to a connection.
"""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Callable, Iterable
from threading import Thread
from typing import cast

import zmq
from zmq.utils.monitor import recv_monitor_message

from timely.communication.door import Door
from timely.communication.doorbell import Doorbell
from timely.communication.link import Link

GRACE_SECONDS = 0.5
"""How long after its connection broke a peer's last words may still arrive."""

TELL_SECONDS = 1.25
"""After so long the thread tells what the worker should have."""

_INTERVALS_A_TIMEOUT = 8
_SILENCES_A_TIMEOUT = 2


def heartbeat(end: zmq.Socket[bytes], peer_timeout: float) -> None:
    """Have ZeroMQ give a connection up early enough that a peer is named within `peer_timeout` seconds."""
    end.heartbeat_ivl = int(1000 * peer_timeout / _INTERVALS_A_TIMEOUT)
    end.heartbeat_timeout = int(1000 * peer_timeout / _SILENCES_A_TIMEOUT)


class Watch:
    """The thread that looks after a worker's links and its door.

    `tell(link)` returns what to say of a lost peer, if anything.
    """

    def __init__(
        self, links: Iterable[Link], door: Door, wake: Callable[[], None], tell: Callable[[Link], str | None]
    ) -> None:
        self._links = tuple(links)
        self._watched: dict[zmq.Socket[bytes], Link | Door] = {link.monitor: link for link in self._links}
        self._watched[door.monitor] = door
        self._wake = wake
        self._tell = tell
        self._told: set[int] = set()
        self._ended = Doorbell()
        self._thread = Thread(target=self._run, name="timely watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, after it has noted all that happened until now."""
        self._ended.ring()
        self._thread.join()
        self._ended.close()
        self._note()

    def _run(self) -> None:
        try:
            self._watch()
        except zmq.ZMQError:
            if not any(monitor.closed for monitor in self._watched):
                raise
            # An interrupt has cut `close` short, and what is watched was closed without waiting for this thread.

    def _watch(self) -> None:
        poller = zmq.Poller()
        poller.register(self._ended, zmq.POLLIN)
        for monitor in self._watched:
            poller.register(monitor, zmq.POLLIN)
        while not any(end == self._ended.fileno() for end, _ in poller.poll(self._patience())):
            self._note()
            self._speak()

    def _patience(self) -> int | None:
        """Return how many milliseconds to wait at most."""
        lost = any(link.lost_at is not None and link.peer not in self._told for link in self._links)
        return int(1000 * GRACE_SECONDS / 2) if lost else None

    def _note(self) -> None:
        """Note what has happened to the connections."""
        for monitor, watched in self._watched.items():
            while cast(int, monitor.get(zmq.EVENTS)) & int(zmq.POLLIN):
                watched.observe(recv_monitor_message(monitor)["event"], clock.monotonic())

    def _speak(self) -> None:
        """Name peers that have been lost for a while."""
        now = clock.monotonic()
        for link in self._links:
            if link.peer in self._told or link.lost_at is None:
                continue
            if now > link.lost_at + GRACE_SECONDS:
                self._wake()
            if now > link.lost_at + TELL_SECONDS:
                self._told.add(link.peer)
                text = self._tell(link)
                if text:
                    print(text, file=sys.stderr)
