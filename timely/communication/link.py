"""The way to one worker of another process, and what is known of it.

Bytes are counted in all, by both ends: `sent` and `acknowledged` here, `received` and `said` (what the peer was told
about it) for the other direction. Messages are numbered, so that one that comes again, or that nobody sent, is told
from the next one. A link belongs to the worker's thread; only what the `Watch` writes is written by another.
"""

from __future__ import annotations

from collections import deque

import zmq

from timely.communication.codec import Ack, Frames


class Link:
    """The way to one worker of another process."""

    __slots__ = (
        "acknowledged",
        "answered",
        "connected",
        "hello_at",
        "last_number",
        "lost_at",
        "monitor",
        "next_number",
        "peer",
        "pid",
        "quantum",
        "queue",
        "received",
        "said",
        "sent",
        "socket",
        "stranger",
        "trouble",
    )

    def __init__(self, peer: int, push: zmq.Socket[bytes]) -> None:
        self.peer = peer
        self.pid: int | None = None
        self.socket = push
        self.monitor = push.get_monitor_socket(
            zmq.EVENT_DISCONNECTED
            | zmq.EVENT_HANDSHAKE_SUCCEEDED
            | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
            | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
            | zmq.EVENT_HANDSHAKE_FAILED_AUTH
        )
        self.queue: deque[tuple[Frames, int]] = deque()
        self.sent = self.acknowledged = 0
        self.received = self.said = 0
        self.next_number = 1
        self.last_number = 0
        self.quantum = 1
        self.answered = False
        self.hello_at = 0.0
        self.stranger: tuple[str, float] | None = None
        # Written by the watch.
        self.connected = False
        self.lost_at: float | None = None
        self.trouble = ""

    @property
    def met(self) -> bool:
        """Whether each has heard the other."""
        return self.answered and self.connected

    @property
    def flying(self) -> int:
        """Bytes sent and not acknowledged."""
        return self.sent - self.acknowledged

    @property
    def state(self) -> str:
        """What is missing before the peers have met, for people."""
        if not self.connected:
            return self.trouble or "nobody listens there"
        return "it does not answer"

    def heed(self, ack: Ack) -> int:
        """Take in what the peer says it has taken; return how many bytes are new."""
        new = max(0, min(ack.taken, self.sent) - self.acknowledged)
        self.acknowledged += new
        return new

    def observe(self, event: int, now: float) -> None:
        """Take in something that happened to the connection."""
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self.connected = True
        elif event == zmq.EVENT_DISCONNECTED:
            if self.met and self.lost_at is None:
                self.lost_at = now
            self.connected = False
        else:
            self.trouble = "somebody else listens there, or the keys differ"

    def close(self, linger: int) -> None:
        """Close the connection after what was sent has left, or so many milliseconds, if somebody is there to take it.

        Only after the watch has ended.
        """
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(linger if self.connected else 0)
