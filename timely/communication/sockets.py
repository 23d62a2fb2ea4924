"""Workers of several processes: ZeroMQ sockets, and queues to the workers of one's own process.

Every worker binds one PULL socket, and connects one PUSH socket to every worker of another process. The worker's own
thread sends, receives and polls, so a message crosses no thread but ZeroMQ's; there are no locks.

**Meeting.** Nothing else is said to a peer before it has answered (`meeting`).

**Room.** A worker keeps at most `queue_bytes` in flight, evenly divided over its peers (`link`), and holds the rest in
local queues; peers acknowledge what they take. So nothing blocks, the order is kept, and memory is bounded at both ends
as far as the worker heeds `congested`.

**Loss.** When a connection breaks and no farewell or failure arrives within `GRACE_SECONDS`, the peer's process is
lost. The system closes the connections of a process that has ended; `watch` finds those that are stopped or cut off.

**Strangers.** Whoever can reach the socket can send bytes. Those with other keys fail in the handshake (`door`). Frames
that are malformed, of another generation, not from a peer to this worker, or not the next one of that peer are refused;
so is, by the worker, what a peer cannot mean (`Allocator.refuse`). All of it is counted. The largest frame is bounded.
ZeroMQ takes in whatever arrives, for a heartbeat must not wait behind messages: it is the window that bounds what peers
send.

It leaves out reconnecting: a broken connection may have swallowed messages, so it ends the run.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import ceil, inf
from typing import Any, cast

import zmq

from timely.closing import close_all
from timely.communication.allocator import Statistics, admit
from timely.communication.codec import MAX_FRAMES, Ack, Encoder, Envelope, Frames, Hello, decode
from timely.communication.descriptors import reserve
from timely.communication.door import Door
from timely.communication.doorbell import Doorbell
from timely.communication.ends import SharedContext, bind_pull, connect_push
from timely.communication.link import Link
from timely.communication.meeting import Meeting
from timely.communication.message import Data, Failure, Goodbye, Message, Progress, Shape
from timely.communication.thread import Mailbox
from timely.communication.waiting import Waiting
from timely.communication.watch import GRACE_SECONDS, Watch
from timely.communication.wire import read, readable, size_of
from timely.config import Config
from timely.errors import DataError, FrameError, PeerLost, TransportError

WATCH_SECONDS = 0.25
LINGER_MILLISECONDS = 2000
LINGER_WHEN_ENDED_MILLISECONDS = 500
"""The same for a process that was asked to end: its peers were too, and may be gone without its having noticed."""
SPIN_SECONDS = 250e-6
FRUITLESS_SPINS = 4
MESSAGES_AT_ONCE = 256
REASON_CHARACTERS = 1000
_POLLIN = int(zmq.POLLIN)
_NOBLOCK = int(zmq.NOBLOCK)


class SocketAllocator:
    """A worker's end of the network between processes. See `Allocator`.

    Made in any thread, then used by one. While `is_ending()` the watch does not speak of peers that are gone.
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
        self.index = index
        self.peers = config.peers
        self.process = config.process
        self.farewells: dict[int, Goodbye] = {}
        self._config = config
        self._mailboxes = mailboxes
        self._own = mailboxes[index]
        self._doorbell = doorbell
        self._context = context
        self._encoder = Encoder(index, config.generation)
        self._early: list[tuple[int, Message]] = []
        self._links: dict[int, Link] = {}
        self._watcher: Watch | None = None
        self._outstanding = 0
        self._watch_at = 0.0
        self._fruitless = 0
        self.last_refusal = ""
        self._messages_sent = self._messages_received = self._data_bytes = self._progress_bytes = self._refused = 0
        self._closed = False
        self._ends = False
        self._is_ending = is_ending
        context.acquire()
        self._pull: zmq.Socket[bytes] = context.zmq.socket(zmq.PULL)
        self._door = Door(self._pull)
        try:
            bind_pull(self._pull, config, index)
            for peer in range(self.peers):
                if peer not in mailboxes:
                    push: zmq.Socket[bytes] = context.zmq.socket(zmq.PUSH)
                    self._links[peer] = Link(config, peer, push)
                    connect_push(push, config, peer)
            self._watcher = Watch(self._links.values(), self._door, doorbell.ring, self._unheard)
        except BaseException:
            self.close()
            raise
        self._meeting = Meeting(config, index, self._links.values(), self._emit, waiting)
        self._polled: list[Any] = [(self._pull, _POLLIN), (doorbell.fileno(), _POLLIN)]

    # Meeting

    def connect(self) -> None:
        deadline = clock.monotonic() + self._config.rendezvous_seconds
        while True:
            self._early += self._gather()
            now = clock.monotonic()
            if self._meeting.go_on(now):
                return
            if now > deadline:
                raise TransportError(self._alone())
            self._poll(0.01)

    def _alone(self) -> str:
        """Return who has not been met, and what may be the reason."""
        reasons = "; ".join(f"{link}: {link.state}" for link in self._meeting.missing())
        refused = f"; frames were refused, the last one because: {self.last_refusal}" if self._refused else ""
        count = self._door.refused
        turned = f"; {count} connections with other keys or another protocol were turned away here" if count else ""
        seconds = self._config.rendezvous_seconds
        return f"process {self.process} waited {seconds:g} s for its peers; {reasons}{refused}{turned}"

    # Sending

    def send(self, peer: int, message: Message) -> None:
        self._messages_sent += 1
        link = self._links.get(peer)
        if link is None:
            self._count(message, self._mailboxes[peer].put(self.index, message))
            return
        overtakes = type(message) is Failure  # nothing before it matters any more
        frames = self._encoder.encode(message, peer, link.next_number)
        size = sum(map(size_of, frames))
        if size > self._config.frame_bytes or len(frames) > MAX_FRAMES:
            self._check_frames(message, frames)
        if not overtakes:
            link.next_number += 1
        self._count(message, size)
        self._outstanding += size
        if overtakes:
            self._ends = True
            link.send_at_once(frames, size)
        else:
            link.send(frames, size)
        if type(message) is Progress:
            os.sched_yield()  # the last that a step says: ZeroMQ's thread, which does not interrupt, may run now

    def _count(self, message: Message, size: int) -> None:
        if type(message) is Data:
            self._data_bytes += size
        elif type(message) is Progress:
            self._progress_bytes += size

    def _check_frames(self, message: Message, frames: Frames) -> None:
        if len(frames) > MAX_FRAMES:
            raise DataError(
                f"a batch of {len(frames) - 1} buffers cannot go to another process: a column is one buffer, of text "
                f"or bytes two, and at most {MAX_FRAMES - 1} go together; send fewer columns"
            )
        largest = max(map(size_of, frames))
        if largest > self._config.frame_bytes:
            advice = "send smaller batches, or set" if isinstance(message, Data) else "set"
            raise DataError(
                f"{_named(message)} of {largest} bytes cannot go to another process: frames are bounded to "
                f"{self._config.frame_bytes} bytes; {advice} TIMELY_FRAME_BYTES for all processes"
            )

    def _emit(self, link: Link, message: Hello | Ack) -> None:
        """Send what is between allocators only: at once, or not at all when that is impossible; it takes no room."""
        with suppress(zmq.Again):
            link.socket.send(self._encoder.encode(message, link.peer)[0], _NOBLOCK)

    # Receiving

    def receive(self) -> list[tuple[int, Message]]:
        arrived = self._gather()
        if self._early:
            arrived, self._early = self._early + arrived, []
        self._messages_received += len(arrived)
        return arrived

    def _gather(self) -> list[tuple[int, Message]]:
        arrived = self._own.drain() if self._own.items else []
        for _ in range(MESSAGES_AT_ONCE):
            if not readable(self._pull):
                break
            self._accept(read(self._pull), arrived)
        try:
            messages = admit(self.index, arrived, self.farewells) if arrived else arrived
        except BaseException:
            self._ends = True
            raise
        now = clock.monotonic()
        if now >= self._watch_at:
            self._watch(now)
        return messages

    def _accept(self, frames: Frames, arrived: list[tuple[int, Message]]) -> None:
        """Take in one message, or refuse and count it."""
        try:
            envelope = decode(frames)
            message = envelope.message
            link = self._sender(envelope)
        except FrameError as error:
            self.refuse(str(error))
            return
        if isinstance(message, Ack):
            self._outstanding -= link.heed(message)
            link.flush()
        elif isinstance(message, Hello):
            self._meeting.greet(link, message)
        else:
            if type(message) is not Failure:
                link.last_number = envelope.number
            link.received += sum(map(size_of, frames))
            if link.received - link.said >= link.quantum:
                self._emit(link, Ack(link.received))
                link.said = link.received
            arrived.append((envelope.sender, message))

    def _sender(self, envelope: Envelope) -> Link:
        """Return the link to the sender; raise `FrameError` unless it is a peer that speaks for itself, to us."""
        generation, sender, receiver, number, message = envelope
        link = self._links.get(sender)
        if generation != self._config.generation:
            if isinstance(message, Hello) and link is not None:
                link.note_stranger(generation, clock.monotonic())
            raise FrameError(f"generation {generation!r}, this is {self._config.generation!r}")
        if isinstance(message, Hello):
            self._meeting.check(sender, message, link)
        if link is None or receiver != self.index:
            raise FrameError(f"from worker {sender} to worker {receiver}, this is worker {self.index}")
        if isinstance(message, (Failure, Goodbye)) and message.worker != sender:
            raise FrameError(f"worker {sender} speaks for worker {message.worker}")
        if not isinstance(message, (Hello, Ack, Failure)) and number != link.last_number + 1:
            raise FrameError(f"message {number} of worker {sender} after message {link.last_number}")
        return link

    # Waiting

    def park(self, timeout: float | None) -> None:
        own = self._own
        own.parked = True
        try:
            if not (own.items or self._early or self._room_came() or self._spin(timeout)):
                self._wait(timeout)
        finally:
            own.parked = False

    def _room_came(self) -> bool:
        """Ask to be woken when workers of this process take what is queued for them; return whether they did so."""
        if not self.congested:
            return False
        for mailbox in self._mailboxes.values():
            mailbox.waiting[self.index] = self._doorbell.ring
        return not self.congested

    def _spin(self, timeout: float | None) -> bool:
        """Look for messages a few times before sleeping, if that paid lately; return whether there are any.

        Being woken costs about 40 microseconds more than not having slept. Where threads share the interpreter, or
        nothing came within the spin several times in a row, it would only take their time.
        """
        if self._fruitless >= FRUITLESS_SPINS or timeout == 0 or self._config.workers > 1:
            return False
        end = clock.perf_counter() + SPIN_SECONDS
        while clock.perf_counter() < end:
            if readable(self._pull):
                self._fruitless = 0
                return True
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
        if clock.monotonic() - start < 2 * SPIN_SECONDS:
            self._fruitless = 0

    def _poll(self, seconds: float) -> bool:
        """Sleep until there is a message or a ring; return whether there is."""
        ready = zmq.zmq_poll(self._polled, ceil(seconds * 1000))
        for end, _ in ready:
            if end is not self._pull:
                self._doorbell.hush()
        return bool(ready)

    def _watch(self, now: float) -> None:
        """Look after the connections; raise `PeerLost` when one broke without a farewell and none came since.

        What has arrived and is not read yet may be that farewell, or a failure that tells more.
        """
        self._watch_at = now + WATCH_SECONDS
        lost = [(cast(float, link.lost_at), link.peer) for link in self._links.values() if self._is_lost(link)]
        if lost:
            since, peer = min(lost)  # the others may have left because this one did
            if now > since + GRACE_SECONDS and not readable(self._pull):
                self._ends = True
                raise PeerLost(
                    f"{self._links[peer]} is gone without a farewell: it was killed or stopped, it crashed, or the "
                    "network between is down"
                )
        for link in self._links.values():
            if link.queue:
                link.flush()

    def _is_lost(self, link: Link) -> bool:
        return link.lost_at is not None and link.peer not in self.farewells

    def _unheard(self, link: Link) -> str | None:
        """Return what the watch is to say when this worker has not yet raised what it has to."""
        if self._ends or self._is_ending() or not self._is_lost(link):
            return None
        return f"timely: {link} is gone; worker {self.index} ends when it comes back from the operator it is in"

    def wake(self) -> None:
        self._doorbell.ring()

    def interrupt(self) -> None:
        self._own.put(self.index, Failure(self.index, "interrupted"))

    # Looking at it, and leaving

    def refuse(self, reason: str) -> None:
        self._refused += 1
        self.last_refusal = reason[:REASON_CHARACTERS]  # a stranger's frame may be what it quotes

    @property
    def backlog(self) -> int:
        if len(self._mailboxes) == 1:
            return self._outstanding
        return self._outstanding + sum([mailbox.owed(self.index) for mailbox in self._mailboxes.values()])

    @property
    def congested(self) -> bool:
        return self.backlog > self._config.queue_bytes

    @property
    def holds_back(self) -> bool:
        return any(link.queue and link.lost_at is None for link in self._links.values())

    def statistics(self) -> Statistics:
        return Statistics(
            self._messages_sent,
            self._messages_received,
            self._data_bytes,
            self._progress_bytes,
            self._refused + self._door.refused,
            self.backlog,
        )

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        linger = LINGER_WHEN_ENDED_MILLISECONDS if self._is_ending() else LINGER_MILLISECONDS
        links = [partial(link.close, linger) for link in self._links.values()]
        watcher = [] if self._watcher is None else [self._watcher.close]
        # An interrupt that comes meanwhile must not leave open what the end of the context waits for.
        close_all([*watcher, *links, self._door.close, self._doorbell.close, self._context.release])


def _named(message: Message) -> str:
    """Return what is too large for a frame. Workers describe a dataflow to each other only where theirs differ."""
    if isinstance(message, Data):
        return "a column"
    if isinstance(message, Shape):
        return f"the description of dataflow {message.dataflow}, which another worker built in another way,"
    return f"a message of kind {type(message).__name__}"


def socket_allocators(config: Config, is_ending: Callable[[], bool] = lambda: False) -> list[SocketAllocator]:
    """Return the allocators of this process's workers, listening; `connect` each in the thread that will use it.

    `is_ending()` is whether the process was asked to end, as its peers may have been.
    """
    reserve(config.workers * (config.peers - config.workers), config.workers)
    local = range(config.first_worker, config.first_worker + config.workers)
    context = SharedContext(16 + config.workers * (4 + 3 * config.peers), config.curve_dir)
    doorbells = [Doorbell() for _ in local]
    mailboxes = {index: Mailbox(config.peers, doorbell.ring) for index, doorbell in zip(local, doorbells)}
    waiting = Waiting(config.process)
    made: list[SocketAllocator] = []
    try:
        for index, doorbell in zip(local, doorbells):
            made.append(SocketAllocator(config, index, mailboxes, doorbell, context, is_ending, waiting))
    except BaseException:
        for allocator in made:
            allocator.close()
        for doorbell in doorbells:
            doorbell.close()
        raise
    return made
