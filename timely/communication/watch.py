"""Watching the connections of a worker while the worker is busy.

ZeroMQ's I/O threads, which run without the interpreter, establish that a peer is alive: they send several heartbeats
per timeout, and give up a connection that has been silent for half of it. So a worker may compute for as long as it
likes, whereas a process that is stopped, killed or cut off loses its connections.

One thread per worker waits for such events and records them on the links. For a loss it wakes the worker, which raises
an error when it next receives. If the worker does not return to its sockets in time, because it is in a long operator
call, the thread prints the loss on standard error. It sleeps unless something happens to a connection.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable
from threading import Thread
from typing import cast

import zmq

from timely.communication.doorbell import Doorbell
from timely.communication.link import Link
from timely.communication.wire import HANDSHAKE_FAILED, next_event
from timely.observe.notices import print_error

GRACE_SECONDS = 0.5
"""How long the last messages of a peer may still arrive after its connection broke."""

REPORT_SECONDS = 1.25
"""How long after the break the thread reports a loss that the worker has not raised."""

_INTERVALS_A_TIMEOUT = 8
_SILENCES_A_TIMEOUT = 2


def heartbeat(end: zmq.Socket[bytes], peer_timeout: float) -> None:
    """Let ZeroMQ give up a silent connection early enough that its peer is named within `peer_timeout` seconds."""
    end.heartbeat_ivl = int(1000 * peer_timeout / _INTERVALS_A_TIMEOUT)
    end.heartbeat_timeout = int(1000 * peer_timeout / _SILENCES_A_TIMEOUT)


class Listener:
    """The socket that a worker listens at, and the number of handshakes that failed at it.

    A client with other keys, or another protocol, fails in ZeroMQ's handshake, so none of its messages arrive. The
    `LinkWatch` counts such attempts here, and the worker reads the count.
    """

    __slots__ = ("monitor", "refused", "socket")

    def __init__(self, pull: zmq.Socket[bytes]) -> None:
        self.socket = pull
        self.monitor = pull.get_monitor_socket(HANDSHAKE_FAILED)
        self.refused = 0

    def observe(self, event: int, now: float) -> None:
        self.refused += 1

    def close(self) -> None:
        """Stop listening. Must be called after the watch has ended."""
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(0)


class LinkWatch:
    """The thread that watches a worker's links and its listener.

    `describe_loss(link)` returns what to print about a lost peer, or None.
    """

    def __init__(
        self,
        links: Iterable[Link],
        listener: Listener,
        wake: Callable[[], None],
        describe_loss: Callable[[Link], str | None],
    ) -> None:
        self._links = tuple(links)
        self._watched: dict[zmq.Socket[bytes], Link | Listener] = {link.monitor: link for link in self._links}
        self._watched[listener.monitor] = listener
        self._wake = wake
        self._describe_loss = describe_loss
        self._reported: set[int] = set()
        self._ended = Doorbell()
        self._thread = Thread(target=self._run, name="timely watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, then record all events up to now."""
        self._ended.ring()
        self._thread.join()
        # The thread has ended, so this one may read the monitors: one thread at a time may use a socket of ZeroMQ.
        self._ended.close()
        self._record_events()

    def _run(self) -> None:
        try:
            self._watch()
        except zmq.ZMQError:
            if not any(monitor.closed for monitor in self._watched):
                raise
            # An interrupt has cut `close` short, and the monitors were closed without waiting for this thread.

    def _watch(self) -> None:
        poller = zmq.Poller()
        poller.register(self._ended, zmq.POLLIN)
        for monitor in self._watched:
            poller.register(monitor, zmq.POLLIN)
        while not any(end == self._ended.fileno() for end, _ in poller.poll(self._poll_milliseconds())):
            self._record_events()
            self._report_losses()

    def _poll_milliseconds(self) -> int | None:
        """Return how many milliseconds to wait for events; None while there is no loss to report."""
        lost = any(link.lost_at is not None and link.peer not in self._reported for link in self._links)
        return int(1000 * GRACE_SECONDS / 2) if lost else None

    def _record_events(self) -> None:
        for monitor, watched in self._watched.items():
            while cast(int, monitor.get(zmq.EVENTS)) & int(zmq.POLLIN):
                watched.observe(next_event(monitor), clock.monotonic())

    def _report_losses(self) -> None:
        """Wake the worker for peers that have been lost for a while, and finally print them."""
        now = clock.monotonic()
        for link in self._links:
            if link.peer in self._reported or link.lost_at is None:
                continue
            if now > link.lost_at + GRACE_SECONDS:
                self._wake()
            if now > link.lost_at + REPORT_SECONDS:
                self._reported.add(link.peer)
                text = self._describe_loss(link)
                if text:
                    print_error(text)
