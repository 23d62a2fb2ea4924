"""The way to one worker of another process, and what is known of it.

Bytes are counted in all, by both ends: `sent` and `acknowledged` here, `received` and `said` (what the peer was told
about it) for the other direction. Messages are numbered, so that one that comes again, or that nobody sent, is told
from the next one. At most `window` bytes are on their way; what there is no room for waits in `queue`. A link is of the
worker's thread; only what the `Watch` writes is written by another.
"""

from __future__ import annotations

from collections import deque
from math import inf

import zmq

from timely.communication.codec import Ack, Frames
from timely.communication.wire import transmit
from timely.config import Config


class Link:
    """The way to one worker of another process."""

    __slots__ = (
        "acknowledged",
        "answered",
        "broke_at",
        "connected",
        "endpoint",
        "heard_at",
        "hello_at",
        "last_number",
        "lost_at",
        "monitor",
        "next_number",
        "own_quantum",
        "peer",
        "pid",
        "process",
        "quantum",
        "queue",
        "received",
        "said",
        "sent",
        "socket",
        "stranger",
        "trouble",
        "window",
    )

    def __init__(self, config: Config, peer: int, push: zmq.Socket[bytes]) -> None:
        """Lead to worker `peer`, with whom `push` is connected next."""
        self.peer = peer
        self.process = config.process_of(peer)
        self.endpoint = config.endpoint(peer)
        self.window = max(1, config.queue_bytes // (config.peers - config.workers))
        self.own_quantum = max(1, self.window // 4)
        """The peer says what it has taken when it has taken so much more."""
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
        """The same, the other way round."""
        self.answered = False
        self.hello_at = 0.0
        self.heard_at: float | None = None
        """When the last hello of the peer arrived."""
        self.stranger: tuple[str, float, float] | None = None
        """The generation of a peer of another run, and when it said hello first and last."""
        # Written by the watch.
        self.connected = False
        self.broke_at = -inf
        self.lost_at: float | None = None
        self.trouble = ""

    def __str__(self) -> str:
        pid = "" if self.pid is None else f", pid {self.pid}"
        return f"process {self.process} (worker {self.peer} at {self.endpoint}{pid})"

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

    def last_sign(self, heard_at: float) -> float:
        """Return when the peer, whose last hello arrived at that moment, last showed that it is there."""
        return inf if self.connected else max(heard_at, self.broke_at)

    def note_stranger(self, generation: str, now: float) -> None:
        """Take in that somebody of another run said hello in the peer's name."""
        first = now
        if self.stranger is not None and self.stranger[0] == generation:
            first = self.stranger[1]
        self.stranger = generation, first, now

    def heed(self, ack: Ack) -> int:
        """Take in what the peer says it has taken; return how many bytes are new."""
        new = max(0, min(ack.taken, self.sent) - self.acknowledged)
        self.acknowledged += new
        return new

    def send(self, frames: Frames, size: int) -> None:
        """Send the frames of a message of so many bytes, or queue them until there is room."""
        if self.queue or not self._has_room(size) or not self.send_at_once(frames, size):
            self.queue.append((frames, size))

    def send_at_once(self, frames: Frames, size: int) -> bool:
        """Send the frames of a message before all that is queued; return whether ZeroMQ took them."""
        taken = transmit(self.socket, frames)
        if taken:
            self.sent += size
        return taken

    def flush(self) -> None:
        """Send what is queued, as far as there is room."""
        while self.queue:
            frames, size = self.queue[0]
            if not self._has_room(size) or not self.send_at_once(frames, size):
                return
            self.queue.popleft()

    def _has_room(self, size: int) -> bool:
        # The peer may have taken less than a quantum without saying so; then nothing else would ever make room.
        return self.flying < self.own_quantum or self.flying + size <= self.window

    def observe(self, event: int, now: float) -> None:
        """Take in something that happened to the connection."""
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self.connected = True
        elif event == zmq.EVENT_DISCONNECTED:
            if self.met and self.lost_at is None:
                self.lost_at = now
            self.connected = False
            self.broke_at = now
        else:
            self.trouble = "somebody else listens there, or the keys differ"

    def close(self, linger: int) -> None:
        """Close the connection after what was sent has left, or so many milliseconds, if somebody is there to take it.

        Whoever has said hello is, be the way there still in the making. Only after the watch has ended.
        """
        self.socket.disable_monitor()
        self.monitor.close(0)
        awaited = self.pid is not None and self.lost_at is None
        self.socket.close(linger if self.connected or awaited else 0)
