"""Workers of several processes: ZeroMQ sockets, and queues to the workers of one's own process.

Every worker binds one PULL socket, and connects one PUSH socket to every worker of another process. The worker's own
thread sends, receives and polls, so a message crosses no thread but ZeroMQ's, and there are no locks.

**Rings.** With `Config.rings`, small messages to a worker on the same machine go through shared memory (`inbox`). The
sockets carry everything else: hellos, acknowledgements, failures and large batches. They also show that a peer is lost.

**Meeting.** A worker sends nothing else to a peer until the peer has answered its hello (`meeting`).

**Flow control.** A worker keeps at most `queue_bytes` in flight, divided evenly among its peers (`link`), and queues
the rest locally; peers acknowledge what they take. So nothing blocks, messages keep their order, and memory is bounded
at both ends, provided that the worker respects `congested`.

**Loss.** If a connection breaks, and no farewell or failure arrives within `GRACE_SECONDS`, the peer's process is lost.
The operating system closes the connections of a process that has ended; `watch` detects those that are stopped or cut
off.

**Strangers.** Whoever can reach the socket can send bytes. Clients with other keys fail in the handshake (`listener`).
Frames are refused if they are malformed, of another generation, not from a peer to this worker, or not the peer's next
message. The worker refuses messages whose contents are impossible (`Allocator.refuse`). All refusals are counted. The
largest frame is bounded. ZeroMQ reads whatever arrives, because a heartbeat must not wait behind messages: what bounds
the data from peers is the window.

Reconnecting is left out: a broken connection may have lost messages, so it ends the run.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import ceil, inf
from typing import Any, cast

import zmq

from timely.closing import close_all
from timely.communication.allocator import Allocator, admit
from timely.communication.codec import MAX_FRAMES, Ack, Envelope, Frames, Hello, MessageEncoder, decode
from timely.communication.descriptors import reserve
from timely.communication.doorbell import Doorbell
from timely.communication.ends import SharedContext, bind_pull, connect_push
from timely.communication.limits import check_frames
from timely.communication.link import Link
from timely.communication.listener import Listener
from timely.communication.meeting import Meeting
from timely.communication.message import Data, Failure, Goodbye, Message, ProgressUpdate
from timely.communication.rings import Rings
from timely.communication.thread import Mailbox, has_room_again
from timely.communication.waiting import Waiting
from timely.communication.watch import GRACE_SECONDS, LinkWatch
from timely.communication.wire import read, readable, size_of
from timely.config import Config
from timely.errors import FrameError, PeerLost, TransportError

WATCH_SECONDS = 0.25
LINGER_MILLISECONDS = 2000
LINGER_WHEN_ENDED_MILLISECONDS = 500
"""The same for a process that was asked to end: so were its peers, and they may have ended unnoticed."""
SPIN_SECONDS = 250e-6
FRUITLESS_SPINS = 4
MESSAGES_AT_ONCE = 256
REASON_CHARACTERS = 1000
_POLLIN = int(zmq.POLLIN)
_NOBLOCK = int(zmq.NOBLOCK)


class SocketAllocator(Allocator):
    """A worker's end of the network between processes. See `Allocator`.

    Created in any thread, then used by one. While `is_ending()`, the watch does not report lost peers.
    """

    def __init__(
        self,
        config: Config,
        index: int,
        mailboxes: dict[int, Mailbox],
        doorbell: Doorbell,
        context: SharedContext,
        is_ending: Callable[[], bool],
        waiting: Waiting,
    ) -> None:
        super().__init__(index, config.peers, config.process, config.queue_bytes)
        self._config = config
        self._mailboxes = mailboxes
        self._own = mailboxes[index]
        self._doorbell = doorbell
        self._context = context
        self._encoder = MessageEncoder(index, config.generation)
        self._early: list[tuple[int, Message]] = []
        """What has arrived during the meeting, for the first `receive`."""
        self._links: dict[int, Link] = {}
        self._rings = Rings()
        self._watcher: LinkWatch | None = None
        self._outstanding = 0
        """The bytes for other processes, sent or queued, that are not acknowledged."""
        self._watch_at = 0.0
        """When the connections are checked next."""
        self._gathered = 0
        """The bytes that this look for messages has taken."""
        self._fruitless = 0
        """How many spins in succession have found nothing."""
        self._closed = False
        self._is_over = False
        """Whether this worker has sent or raised a failure, so that a loss needs no report."""
        self._is_ending = is_ending
        context.acquire()
        self._pull: zmq.Socket[bytes] = context.zmq.socket(zmq.PULL)
        self._listener = Listener(self._pull)
        try:
            bind_pull(self._pull, config, index)
            for peer in range(self.peers):
                if peer not in mailboxes:
                    push: zmq.Socket[bytes] = context.zmq.socket(zmq.PUSH)
                    self._links[peer] = Link(config, peer, push)
                    connect_push(push, config, peer)
            if config.rings:
                self._rings.provide(self._links.values())
            self._watcher = LinkWatch(self._links.values(), self._listener, doorbell.ring, self._describe_loss)
        except BaseException as error:
            if not isinstance(error, Exception):
                context.abandon()
            self.close()
            raise
        self._meeting = Meeting(config, index, self._links.values(), self._emit, waiting)
        self._polled: list[Any] = [(end, _POLLIN) for end in (self._pull, doorbell.fileno(), *self._rings.filenos())]

    # Meeting

    def connect(self) -> None:
        deadline = clock.monotonic() + self._config.rendezvous_seconds
        while True:
            self._early += self._gather()
            now = clock.monotonic()
            if self._meeting.advance(now):
                return
            if now > deadline:
                raise TransportError(self._explain_timeout(now))
            self._poll(0.01)

    def _explain_timeout(self, now: float) -> str:
        """Return which peers have not been met, and possible reasons."""
        reasons = "; ".join(f"{link}: {link.state(now)}" for link in self._meeting.missing())
        refused = f"; frames were refused, the last one because: {self.last_refusal}" if self._refused else ""
        count = self._listener.refused
        turned = f"; {count} connections with other keys or another protocol were turned away here" if count else ""
        seconds = self._config.rendezvous_seconds
        return f"process {self.process} waited {seconds:g} s for its peers; {reasons}{refused}{turned}"

    # Sending

    def send(self, peer: int, message: Message) -> None:
        self.messages_sent += 1
        link = self._links.get(peer)
        if link is None:
            size = self._mailboxes[peer].put(self.index, message)
            if type(message) is Data:
                self.data_bytes += size
            return
        overtakes = type(message) is Failure  # no earlier message matters any more
        frames = self._encoder.encode(message, peer, link.next_number)
        size = sum(map(size_of, frames))
        if size > self._config.frame_bytes or len(frames) > MAX_FRAMES:
            check_frames(message, frames, self._config.frame_bytes)
        # Only here: a message that `check_frames` refuses must leave no gap in the numbers.
        # A failure has no number of its own, because it may arrive before messages sent earlier that are queued.
        if not overtakes:
            link.next_number += 1
        if type(message) is Data:
            self.data_bytes += size
        elif type(message) is ProgressUpdate:
            self.progress_bytes += size
        self._outstanding += size
        if overtakes:
            self._is_over = True
            link.send_at_once(frames, size)
        elif link.send(link.next_number - 1, frames, size):
            return
        if type(message) is ProgressUpdate:
            os.sched_yield()  # progress is the last message of a step: ZeroMQ's thread, which never preempts, may run

    def _emit(self, link: Link, message: Hello | Ack) -> None:
        """Send a message between allocators: now, or not at all if the socket is full. It uses no window."""
        with suppress(zmq.Again):
            link.socket.send(self._encoder.encode(message, link.peer)[0], _NOBLOCK)

    # Receiving

    def receive(self) -> list[tuple[int, Message]]:
        arrived = self._gather()
        # What arrived during the meeting was sent before all else, and the order of a sender's messages is kept.
        if self._early:
            arrived, self._early = self._early + arrived, []
        self.messages_received += len(arrived)
        return arrived

    def _gather(self) -> list[tuple[int, Message]]:
        arrived = self._own.drain() if self._own.items else []
        # Bounded: a flood of messages must not keep the worker from its operators, nor fill the memory. A peer sends
        # more as soon as what is taken here is acknowledged.
        self._gathered = 0
        for _ in range(MESSAGES_AT_ONCE):
            if self._gathered > self._config.queue_bytes or not readable(self._pull):
                break
            self._accept(read(self._pull), arrived)
        for link in self._rings.links:
            self._take_from_ring(link, link.last_number + 1 + MESSAGES_AT_ONCE, arrived)
        try:
            messages = admit(self.index, arrived, self.farewells) if arrived else arrived
        except BaseException:
            self._is_over = True
            raise
        now = clock.monotonic()
        if now >= self._watch_at:
            self._watch(now)
        return messages

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
            self.refuse(str(error))
            return
        if isinstance(message, Ack):
            self._outstanding -= link.acknowledge(message)
            link.flush()
        elif isinstance(message, Hello):
            self._meeting.receive_hello(link, message)
        else:
            if type(message) is not Failure:
                link.last_number = envelope.number
            size = sum(map(size_of, frames))
            link.received += size
            self._gathered += size
            # The socket's own queue has no bound (`connect_push`), so no `Ack` is dropped while the connection stands.
            if link.received - link.reported >= link.quantum:
                self._emit(link, Ack(link.received))
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
            self._meeting.check(sender, message, link)
        if link is None or receiver != self.index:
            raise FrameError(f"sent by worker {sender} to worker {receiver}, but this is worker {self.index}")
        if isinstance(message, (Failure, Goodbye)) and message.worker != sender:
            raise FrameError(f"worker {sender} sent a message in the name of worker {message.worker}")
        if not isinstance(message, (Hello, Ack, Failure)):
            # For a message from the ring this does nothing, since it is the next one: so the recursion ends.
            self._take_from_ring(link, number, arrived)  # what it sent before
            # A connection loses and repeats nothing, so the messages of a peer come with consecutive numbers.
            if number != link.last_number + 1:
                raise FrameError(f"message {number} of worker {sender} arrived after message {link.last_number}")
        return link

    # Waiting

    def park(self, timeout: float | None) -> None:
        own, ring = self._own, self._doorbell.ring
        own.parked = True  # before the last look at `items`: see `Mailbox`
        try:
            has_work = own.items or self._early
            if not (has_work or has_room_again(self, self._mailboxes.values(), ring) or self._spin(timeout)):
                self._rings.set_asleep(True)  # before the last look at the rings: see `inbox`
                if not self._rings.is_ready():
                    self._wait(timeout)
        finally:
            own.parked = False
            self._rings.set_asleep(False)

    def _spin(self, timeout: float | None) -> bool:
        """Look for messages a few times before sleeping, if this has recently paid off; return whether there are any.

        Waking a sleeping worker costs about 40 microseconds more than finding it awake. If threads share the
        interpreter, or nothing came during several spins in a row, spinning would only take their time.
        """
        if self._fruitless >= FRUITLESS_SPINS or timeout == 0 or self._config.workers > 1:
            return False
        end = clock.perf_counter() + SPIN_SECONDS
        while True:
            if self._rings.is_ready() or readable(self._pull):
                self._fruitless = 0
                return True
            if clock.perf_counter() >= end:  # a yield may have taken longer than this, so the last look follows it
                break
            os.sched_yield()
        self._fruitless += 1
        return False

    def _wait(self, timeout: float | None) -> None:
        start = clock.monotonic()
        end = inf if timeout is None else start + timeout
        now = start
        while not self._poll(max(0.0, min(end - now, WATCH_SECONDS))):
            now = clock.monotonic()
            self._watch(now)
            if now >= end:
                return
        # The message came so soon that spinning for a little longer would have paid off.
        if clock.monotonic() - start < 2 * SPIN_SECONDS:
            self._fruitless = 0

    def _poll(self, seconds: float) -> bool:
        """Sleep until there is a message or a ring; return whether there is one."""
        # Rounded up: less than a millisecond would become 0, and the caller would poll without sleeping.
        ready = zmq.zmq_poll(self._polled, ceil(seconds * 1000))
        for end, _ in ready:
            if end == self._doorbell.fileno():
                self._doorbell.clear()
            elif end is not self._pull:
                self._rings.clear()
        return bool(ready)

    def _watch(self, now: float) -> None:
        """Check the connections; raise `PeerLost` if one broke and no farewell has come since."""
        self._watch_at = now + WATCH_SECONDS
        lost = [(cast(float, link.lost_at), link.peer) for link in self._links.values() if self._is_lost(link)]
        if lost:
            since, peer = min(lost)  # the first one: others may have ended because it did
            # What has arrived and is not read yet may be the farewell, or a failure that explains the loss.
            if now > since + GRACE_SECONDS and not readable(self._pull) and not self._rings.is_ready():
                self._is_over = True
                raise PeerLost(
                    f"{self._links[peer]} is gone without a farewell: it was killed or stopped, it crashed, or the "
                    "network failed"
                )
        # An acknowledgement flushes its link. A message that the socket itself did not accept needs this second chance.
        for link in self._links.values():
            if link.queue:
                link.flush()

    def _is_lost(self, link: Link) -> bool:
        return link.lost_at is not None and link.peer not in self.farewells

    def _describe_loss(self, link: Link) -> str | None:
        """Return what the watch prints about a loss that this worker has not raised; None if there is none."""
        if self._is_over or self._is_ending() or not self._is_lost(link):
            return None
        return f"timely: {link} is gone; worker {self.index} ends when the operator that it is running returns"

    def wake(self) -> None:
        self._doorbell.ring()

    def interrupt(self) -> None:
        self._own.put(self.index, Failure(self.index, "interrupted"))

    # Observing and closing

    def refuse(self, reason: str) -> None:
        super().refuse(reason[:REASON_CHARACTERS])  # it may quote the frame of a stranger, of any length

    @property
    def refused(self) -> int:
        return self._refused + self._listener.refused

    @property
    def backlog(self) -> int:
        if len(self._mailboxes) == 1:
            return self._outstanding
        return self._outstanding + sum([mailbox.owed(self.index) for mailbox in self._mailboxes.values()])

    @property
    def has_unsent(self) -> bool:
        return any(link.queue and link.lost_at is None for link in self._links.values())

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        linger = LINGER_WHEN_ENDED_MILLISECONDS if self._is_ending() else LINGER_MILLISECONDS
        links = [partial(link.close, linger) for link in self._links.values()]
        watcher = [] if self._watcher is None else [self._watcher.close]
        # Whatever one of these raises, an interrupt included, the others must run: a context waits for all its sockets.
        close_all(
            [*watcher, *links, self._rings.close, self._listener.close, self._doorbell.close, self._context.release]
        )


def socket_allocators(config: Config, is_ending: Callable[[], bool] = lambda: False) -> list[SocketAllocator]:
    """Return the allocators of this process's workers, which listen; `connect` each in the thread that uses it.

    `is_ending()` returns whether the process was asked to end, as its peers may have been.
    """
    links = config.workers * (config.peers - config.workers)
    config = replace(config, rings=reserve(links, config.workers, config.rings))
    local = range(config.first_worker, config.first_worker + config.workers)
    # A link has its socket and the two of its monitor, and so has a listener; the rest is to spare.
    context = SharedContext(16 + config.workers * (4 + 3 * config.peers), config.curve_dir)
    doorbells = [Doorbell() for _ in local]
    mailboxes = {index: Mailbox(config.peers, doorbell.ring) for index, doorbell in zip(local, doorbells)}
    waiting = Waiting(config.process)
    made: list[SocketAllocator] = []
    try:
        for index, doorbell in zip(local, doorbells):
            made.append(SocketAllocator(config, index, mailboxes, doorbell, context, is_ending, waiting))
    except BaseException as error:
        if not isinstance(error, Exception):
            context.abandon()
        for allocator in made:
            allocator.close()
        for doorbell in doorbells:
            doorbell.close()
        raise
    return made
