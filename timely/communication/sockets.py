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

**Strangers.** Whoever can reach the socket can send bytes. Clients with other keys fail in the handshake (`Listener`).
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
from dataclasses import replace
from functools import partial
from math import ceil, inf
from typing import Any, cast

import zmq

from timely.closing import close_all
from timely.communication.allocator import Allocator, admit
from timely.communication.descriptors import reserve
from timely.communication.doorbell import Doorbell
from timely.communication.ends import SharedContext, bind_pull, connect_push
from timely.communication.link import Link
from timely.communication.meeting import Waiting
from timely.communication.message import Data, Failure, Message, ProgressUpdate
from timely.communication.rings import Rings
from timely.communication.thread import Mailbox, has_room_again
from timely.communication.traffic import Traffic
from timely.communication.watch import GRACE_SECONDS, LinkWatch, Listener
from timely.communication.wire import readable
from timely.config import Config
from timely.errors import PeerLost, TransportError

WATCH_SECONDS = 0.25
LINGER_MILLISECONDS = 2000
LINGER_WHEN_ENDED_MILLISECONDS = 500
"""The same for a process that was asked to end: so were its peers, and they may have ended unnoticed."""
SPIN_SECONDS = 250e-6
FRUITLESS_SPINS = 4
REASON_CHARACTERS = 1000
_POLLIN = int(zmq.POLLIN)


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
        self._early: list[tuple[int, Message]] = []
        """What has arrived during the meeting, for the first `receive`."""
        self._links: dict[int, Link] = {}
        self._rings = Rings()
        self._watcher: LinkWatch | None = None
        self._watch_at = 0.0
        """When the connections are checked next."""
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
        self._traffic = Traffic(config, index, self._pull, self._links, self._rings, waiting, self.refuse)
        self._meeting = self._traffic.meeting
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

    # Sending and receiving

    def send(self, peer: int, message: Message) -> None:
        self.messages_sent += 1
        mailbox = self._mailboxes.get(peer)
        if mailbox is not None:
            size = mailbox.put(self.index, message)
        else:
            if type(message) is Failure:
                self._is_over = True
            size = self._traffic.send(peer, message)
            if type(message) is ProgressUpdate:
                self.progress_bytes += size
        if type(message) is Data:
            self.data_bytes += size

    def receive(self) -> list[tuple[int, Message]]:
        arrived = self._gather()
        # What arrived during the meeting was sent before all else, and the order of a sender's messages is kept.
        if self._early:
            arrived, self._early = self._early + arrived, []
        self.messages_received += len(arrived)
        return arrived

    def _gather(self) -> list[tuple[int, Message]]:
        arrived = self._own.drain() if self._own.items else []
        self._traffic.take_in(arrived)
        try:
            messages = admit(self.index, arrived, self.farewells) if arrived else arrived
        except BaseException:
            self._is_over = True
            raise
        now = clock.monotonic()
        if now >= self._watch_at:
            self._watch(now)
        return messages

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
            return self._traffic.outstanding
        return self._traffic.outstanding + sum([mailbox.owed(self.index) for mailbox in self._mailboxes.values()])

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
