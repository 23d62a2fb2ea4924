"""Messages to and from the workers of other processes: what is done for each, by rings and sockets.

**Order.** The messages of a peer have consecutive numbers, whichever way they come. Those of a ring are taken first, as
they are most of them, and to look at the socket takes longer than to take a message out of a ring. The socket is looked
at when rings had nothing, and at least every second time.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable
from contextlib import suppress

import zmq

from timely.communication.codec import MAX_FRAMES, Ack, Envelope, Frames, Hello, MessageEncoder, decode
from timely.communication.link import Link
from timely.communication.meeting import Meeting, Waiting
from timely.communication.message import Failure, Goodbye, Message, ProgressUpdate
from timely.communication.rings import Rings
from timely.communication.wire import check_frames, read, readable, size_of
from timely.config import Config
from timely.errors import FrameError, TransportError

MESSAGES_AT_ONCE = 256
_NOBLOCK = int(zmq.NOBLOCK)


class Traffic:
    """The messages between one worker and those of other processes."""

    def __init__(
        self,
        config: Config,
        index: int,
        pull: zmq.Socket[bytes],
        links: dict[int, Link],
        rings: Rings,
        waiting: Waiting,
        refuse: Callable[[str], None],
    ) -> None:
        """Take the links to all peers; `refuse` counts a message that is refused, for a reason."""
        self._config = config
        self._index = index
        self._pull = pull
        self._links = links
        self._rings = rings
        self._refuse = refuse
        self._encoder = MessageEncoder(index, config.generation)
        self.meeting = Meeting(config, index, links.values(), self.emit, waiting)
        """The handshake with all peers."""
        self.outstanding = 0
        """The bytes for other processes, sent or queued, that are not acknowledged."""
        self._gathered = 0
        """The bytes that this look for messages has taken."""
        self._is_socket_due = False
        """Whether this look for messages includes the socket though a ring has some."""

    def send(self, peer: int, message: Message) -> int:
        """Send a message, or queue it until there is room; return its size in bytes."""
        link = self._links[peer]
        frames = self._encoder.encode(message, peer, link.next_number)
        size = sum([size_of(frame) for frame in frames])
        if size > self._config.frame_bytes or len(frames) > MAX_FRAMES:
            check_frames(message, frames, self._config.frame_bytes)
        self.outstanding += size
        if type(message) is Failure:
            # It overtakes queued messages, none of which matters any more, so it has no number of its own.
            link.send_at_once(frames, size)
            return size
        # Only here: a message that `check_frames` refuses must leave no gap in the numbers.
        link.next_number += 1
        if not link.send(link.next_number - 1, frames, size) and type(message) is ProgressUpdate:
            os.sched_yield()  # progress is the last message of a step: ZeroMQ's thread, which never preempts, may run
        return size

    def emit(self, link: Link, message: Hello | Ack) -> None:
        """Send a message between allocators: now, or not at all if the socket is full. It uses no window."""
        with suppress(zmq.Again):
            link.socket.send(self._encoder.encode(message, link.peer)[0], _NOBLOCK)

    def take_in(self, arrived: list[tuple[int, Message]]) -> None:
        """Append what has arrived, with its sender."""
        # Bounded: a flood of messages must not keep the worker from its operators, nor fill the memory. A peer sends
        # more as soon as what is taken here is acknowledged.
        self._gathered = 0
        for link in self._rings.links:
            self._take_from_ring(link, link.last_number + 1 + MESSAGES_AT_ONCE, arrived)
        if self._gathered and not self._is_socket_due:
            self._is_socket_due = True
            return
        self._is_socket_due = False
        for _ in range(MESSAGES_AT_ONCE):
            if self._gathered > self._config.queue_bytes or not readable(self._pull):
                break
            self._accept(read(self._pull), arrived)

    def _take_from_ring(self, link: Link, end: int, arrived: list[tuple[int, Message]]) -> None:
        """Take a peer's next messages from its ring: those before number `end`, and before any that is not there."""
        ring = link.ring
        while ring is not None and link.last_number + 1 < end and ring.is_ready(link.last_number + 1):
            try:
                frames = ring.take()
            except FrameError as error:
                raise TransportError(f"{link} sent {error}") from None
            self._accept(frames, arrived)

    def _accept(self, frames: Frames, arrived: list[tuple[int, Message]]) -> None:
        """Process one message, or refuse and count it."""
        try:
            envelope = decode(frames)
            message = envelope.message
            link = self._sender(envelope, arrived)
        except FrameError as error:
            self._refuse(str(error))
            return
        if isinstance(message, Ack):
            self.outstanding -= link.acknowledge(message)
            link.flush()
        elif isinstance(message, Hello):
            self.meeting.receive_hello(link, message)
        else:
            if type(message) is not Failure:
                link.last_number = envelope.number
            size = sum([size_of(frame) for frame in frames])
            link.received += size
            self._gathered += size
            # The socket's own queue has no bound (`connect_push`), so no `Ack` is dropped while the connection stands.
            if link.received - link.reported >= link.quantum:
                self.emit(link, Ack(link.received))
                link.reported = link.received
            arrived.append((envelope.sender, message))

    def _sender(self, envelope: Envelope, arrived: list[tuple[int, Message]]) -> Link:
        """Return the link to the sender; raise `FrameError` unless it is a peer that sends its next message to us."""
        generation, sender, receiver, number, message = envelope
        link = self._links.get(sender)
        if generation != self._config.generation:
            if isinstance(message, Hello) and link is not None:
                link.note_stranger(generation, clock.monotonic())
            raise FrameError(f"generation {generation!r}, this is {self._config.generation!r}")
        if isinstance(message, Hello):
            self.meeting.check(sender, message, link)
        if link is None or receiver != self._index:
            raise FrameError(f"sent by worker {sender} to worker {receiver}, but this is worker {self._index}")
        if isinstance(message, (Failure, Goodbye)) and message.worker != sender:
            raise FrameError(f"worker {sender} sent a message in the name of worker {message.worker}")
        if not isinstance(message, (Hello, Ack, Failure)):
            # For a message from the ring this does nothing, since it is the next one: so the recursion ends.
            self._take_from_ring(link, number, arrived)  # what it sent before
            # A connection loses and repeats nothing, so the messages of a peer come with consecutive numbers.
            if number != link.last_number + 1:
                raise FrameError(f"message {number} of worker {sender} arrived after message {link.last_number}")
        return link
