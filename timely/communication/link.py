"""The connection to one worker of another process, with its flow control.

Both ends count bytes in total, since the start. For what this worker sends:

    acknowledged ≤ sent ≤ acknowledged + window    (a single large message may exceed the window)

For what it receives: `reported` is the part of `received` that the peer knows about. A message for which the window has
no room waits in `queue`, so the order is kept. Messages are numbered, so that a repeated or forged message is
distinguished from the next one.

A message of up to `MESSAGE_BYTES` to a worker on the same machine goes through a ring in shared memory (`inbox`), if
there is room in it. All others go by the socket. The numbers keep their common order: the receiver takes a message from
the ring only when its number is the next one, and before it takes a later one from the socket.

A link belongs to its worker's thread. The `LinkWatch` writes only the attributes marked as such.
"""

from __future__ import annotations

from collections import deque
from math import inf

import zmq

from timely.communication.codec import Ack, Frames
from timely.communication.inbox import RingOutlet
from timely.communication.ring import MESSAGE_BYTES, RingReader
from timely.communication.wire import HANDSHAKE_FAILED, transmit
from timely.config import Config

SILENT_SECONDS = 0.5
"""How long a connection that the peer's system has accepted may be silent before that is what is reported about it."""


class Link:
    """The connection to one worker of another process."""

    __slots__ = (
        "accepted_at",
        "acknowledged",
        "answered",
        "broke_at",
        "connected",
        "endpoint",
        "greeted_at",
        "hello_due_at",
        "last_number",
        "lost_at",
        "monitor",
        "next_number",
        "offer",
        "outlet",
        "own_quantum",
        "peer",
        "pid",
        "process",
        "quantum",
        "queue",
        "received",
        "reported",
        "ring",
        "sent",
        "socket",
        "stranger",
        "trouble",
        "window",
    )

    def __init__(self, config: Config, peer: int, push: zmq.Socket[bytes]) -> None:
        """Prepare the connection to worker `peer`; the caller connects `push` next."""
        # Who the peer is.
        self.peer = peer
        self.process = config.process_of(peer)
        self.endpoint = config.endpoint(peer)
        self.pid: int | None = None
        """The number of its process, once it has sent a hello."""

        # To the peer.
        self.socket = push
        self.outlet: RingOutlet | None = None
        """The ring in the peer's memory, once the peer has offered it."""
        self.next_number = 1
        """The number of the next message."""
        self.queue: deque[tuple[int, Frames, int]] = deque()
        """The messages that have numbers, but no room yet: (number, frames, bytes)."""
        self.window = max(1, config.queue_bytes // (config.peers - config.workers))
        self.own_quantum = max(1, self.window // 4)
        """The peer acknowledges what it has taken each time it has taken this many more bytes."""
        self.sent = self.acknowledged = 0

        # From the peer, whose messages arrive at the socket of this worker or in the ring.
        self.ring: RingReader | None = None
        """The ring in this worker's memory that the peer writes to."""
        self.offer = ""
        """What the peer needs to open this ring, for the hello."""
        self.last_number = 0
        """The number of the last message received; hellos, acknowledgements and failures have none."""
        self.received = self.reported = 0
        self.quantum = 1
        """This worker acknowledges what it has received each time it has received this many more bytes."""

        # Meeting the peer (`Meeting`).
        self.answered = False
        """Whether the peer has answered a hello of this worker."""
        self.hello_due_at = 0.0
        """When the next hello of this worker is due."""
        self.greeted_at: float | None = None
        """When the peer's last hello arrived."""
        self.stranger: tuple[str, float, float] | None = None
        """The generation of a process of another run at the peer's address, and when its first and last hello came."""

        # Of the watch, in its own thread. It writes all but `monitor`, and the worker only reads these.
        self.monitor = push.get_monitor_socket(
            zmq.EVENT_CONNECTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | HANDSHAKE_FAILED
        )
        """Where ZeroMQ reports the events of the connection (`observe`)."""
        self.connected = False
        self.accepted_at: float | None = None
        """When the peer's system accepted the connection, until the peer itself has answered on it."""
        self.broke_at = -inf
        """When the connection broke last."""
        self.lost_at: float | None = None
        """When it broke for the first time after both had met, which is a loss."""
        self.trouble = ""
        """Why the last handshake failed, for people."""

    def __str__(self) -> str:
        pid = "" if self.pid is None else f", pid {self.pid}"
        return f"process {self.process} (worker {self.peer} at {self.endpoint}{pid})"

    @property
    def met(self) -> bool:
        """Whether the peer has answered and the connection to it stands."""
        return self.answered and self.connected

    @property
    def unacknowledged(self) -> int:
        return self.sent - self.acknowledged

    def state(self, now: float) -> str:
        """Return why the peer has not been met yet, for people."""
        if self.connected:
            return "it does not answer"
        accepted_at = self.accepted_at
        # Each new attempt at a peer with other keys is accepted for a moment, too: until it fails as the last one did.
        if accepted_at is not None and not (self.trouble and now < accepted_at + SILENT_SECONDS):
            return "it accepts connections but is silent: it is stopped, or another program listens there"
        return self.trouble or "nobody listens there"

    def last_sign_of_life(self, greeted_at: float) -> float:
        """Return when the peer, whose last hello arrived at `greeted_at`, was last known to exist."""
        return inf if self.connected else max(greeted_at, self.broke_at)

    def note_stranger(self, generation: str, now: float) -> None:
        """Record that a process of another run sent a hello in the peer's name."""
        first = now
        if self.stranger is not None and self.stranger[0] == generation:
            first = self.stranger[1]
        self.stranger = generation, first, now

    def acknowledge(self, ack: Ack) -> int:
        """Record what the peer has taken; return how many bytes of it were not acknowledged before."""
        # Totals make this idempotent: a repeated acknowledgement frees no room, and none frees more than was sent.
        new = max(0, min(ack.taken, self.sent) - self.acknowledged)
        self.acknowledged += new
        return new

    def accept(self, offer: str) -> None:
        """Send messages through the ring that the peer offers, if this process provides rings and can open it."""
        if offer and self.ring is not None and self.outlet is None:
            self.outlet = RingOutlet.open(offer)

    def send(self, number: int, frames: Frames, size: int) -> bool:
        """Send the frames of a message of `size` bytes, or queue them until there is room.

        Return whether it went through the ring.
        """
        # Whatever is queued goes first: the order of messages between two workers is part of the contract.
        if not self.queue and self._has_room(size):
            if self._send_by_ring(number, frames, size):
                return True
            if self.send_at_once(frames, size):
                return False
        self.queue.append((number, frames, size))
        return False

    def _send_by_ring(self, number: int, frames: Frames, size: int) -> bool:
        """Send the frames of a small message through the ring; return False if there is none, or no room in it."""
        outlet = self.outlet
        if outlet is None or size > MESSAGE_BYTES or not outlet.put(number, frames):
            return False
        self.sent += size
        return True

    @property
    def is_ring_ready(self) -> bool:
        """Whether the next message of the peer lies in the ring."""
        return self.ring is not None and self.ring.is_ready(self.last_number + 1)

    def send_at_once(self, frames: Frames, size: int) -> bool:
        """Send the frames of a message by the socket, ahead of the queue; return whether ZeroMQ accepted them."""
        taken = transmit(self.socket, frames)
        if taken:
            self.sent += size
        return taken

    def flush(self) -> None:
        """Send what is queued as far as there is room."""
        while self.queue:
            number, frames, size = self.queue[0]
            if not self._has_room(size):
                return
            if not (self._send_by_ring(number, frames, size) or self.send_at_once(frames, size)):
                return
            self.queue.popleft()

    def _has_room(self, size: int) -> bool:
        # The peer may have taken everything, up to a quantum, without acknowledging it. If messages had to wait in that
        # state, no acknowledgement would ever come; hence a message of any size may leave when less is in flight.
        return self.unacknowledged < self.own_quantum or self.unacknowledged + size <= self.window

    def observe(self, event: int, now: float) -> None:
        """Record an event of the connection. Called by the watch."""
        self.accepted_at = now if event == zmq.EVENT_CONNECTED else None
        # Not when the connection is made: the peer's system accepts it even while the peer is stopped.
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self.connected = True
        elif event == zmq.EVENT_DISCONNECTED:
            # Before both have met, a connection that breaks may be one to an earlier run, and is not a loss.
            if self.met and self.lost_at is None:  # looked at before `connected` changes, on which `met` depends
                self.lost_at = now
            self.connected = False
            self.broke_at = now
        elif event != zmq.EVENT_CONNECTED:
            self.trouble = "another program listens there, or the keys differ"

    def close(self, linger: int) -> None:
        """Close the connection, after waiting up to `linger` milliseconds for messages that anyone may still take.

        A peer that has sent a hello may take them even if the connection to it is not established yet. Must be called
        after the watch has ended.
        """
        self.socket.disable_monitor()
        self.monitor.close(0)
        awaited = self.pid is not None and self.lost_at is None
        self.socket.close(linger if self.connected or awaited else 0)
        if self.outlet is not None:
            self.outlet.close()
