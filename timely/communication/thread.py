"""Workers of one process: one queue each, and batches passed by reference.

Each worker owns a `Mailbox`, a queue to which all its peers append. Appending to a deque is atomic, so no locks are
needed, and the appends of one sender keep their order. Sending costs about a microsecond, and wakes the receiver only
if it sleeps.

The backlog needs no lock either: for each pair, only the sender counts what it sent, and only the receiver what it
took.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from threading import TIMEOUT_MAX, Lock

from timely.communication.allocator import Allocator, admit
from timely.communication.message import Data, Failure, Message, weight


class Bell:
    """Wakes one sleeping thread. If it is rung first, the thread does not sleep. Signal handlers may ring it.

    It is a lock that is held while nobody has rung. `threading.Event` would not do: it takes an inner lock, which a
    signal handler that interrupts the sleeper must not wait for.
    """

    __slots__ = ("_silent",)

    def __init__(self) -> None:
        self._silent = Lock()
        self._silent.acquire()

    def ring(self) -> None:
        try:
            self._silent.release()
        except RuntimeError:
            return  # rung already

    def wait(self, timeout: float | None) -> None:
        """Wait until the bell is rung, or was since the last `wait`, or until `timeout` seconds have passed."""
        self._silent.acquire(timeout=-1 if timeout is None else min(max(timeout, 0.0), TIMEOUT_MAX))


class Mailbox:
    """What the workers of this process have sent to one of them.

    Invariant: no wake-up is lost. The owner sets `parked` before it looks at `items` for the last time, and senders
    read `parked` after they have appended. So either the owner sees the item, or the sender sees that it must wake the
    owner. `waiting`, the senders that sleep until there is room, works in the same way in the other direction.
    """

    __slots__ = ("items", "parked", "ring", "sent", "taken", "waiting")

    def __init__(self, peers: int, ring: Callable[[], None]) -> None:
        self.items: deque[tuple[int, Message, int]] = deque()
        self.sent = [0] * peers
        self.taken = [0] * peers
        self.parked = False
        self.waiting: dict[int, Callable[[], None]] = {}
        self.ring = ring

    def put(self, sender: int, message: Message) -> int:
        """Append a message; return its weight."""
        size = weight(message)
        # Counted first: otherwise the owner may take the item before, and `owed` is negative for a moment.
        self.sent[sender] += size
        self.items.append((sender, message, size))
        if self.parked:
            self.ring()
        return size

    def drain(self) -> list[tuple[int, Message]]:
        """Remove and return what is there."""
        items, taken, arrived = self.items, self.taken, []
        # Peers may append meanwhile; only what was there at the start is taken, so this ends.
        for _ in range(len(items)):
            sender, message, size = items.popleft()
            taken[sender] += size
            arrived.append((sender, message))
        # After `taken` was updated, so a sender that registers too late for this finds the room itself. Only the owner
        # removes entries, so `popitem` finds one.
        while self.waiting:
            self.waiting.popitem()[1]()
        return arrived

    def owed(self, sender: int) -> int:
        """Return the bytes from `sender` that the owner has not taken yet."""
        return self.sent[sender] - self.taken[sender]


def has_room_again(sender: Allocator, mailboxes: Iterable[Mailbox], ring: Callable[[], None]) -> bool:
    """Have `ring` called when workers of this process take what is queued for them; return whether they just did."""
    if not sender.congested:
        return False
    # Registered before the second look at the backlog, so that no mailbox becomes empty unnoticed in between.
    for mailbox in mailboxes:
        mailbox.waiting[sender.index] = ring
    return not sender.congested


class ThreadAllocator(Allocator):
    """A worker's end of the queues inside one process. See `Allocator`."""

    def __init__(self, index: int, mailboxes: Sequence[Mailbox], bell: Bell, queue_bytes: int) -> None:
        super().__init__(index, len(mailboxes), 0, queue_bytes)
        self._mailboxes = mailboxes
        self._own = mailboxes[index]
        self._bell = bell
        if self.peers == 1:
            self.incoming = self._own.items

    def connect(self) -> None:
        """Return at once: the queues exist."""

    def send(self, peer: int, message: Message) -> None:
        size = self._mailboxes[peer].put(self.index, message)
        self.messages_sent += 1
        if type(message) is Data:
            self.data_bytes += size

    def receive(self) -> list[tuple[int, Message]]:
        if not self._own.items:
            return []
        arrived = self._own.drain()
        self.messages_received += len(arrived)
        return admit(self.index, arrived, self.farewells)

    def park(self, timeout: float | None) -> None:
        own = self._own
        own.parked = True  # before the last look at `items`: see `Mailbox`
        if not own.items and not has_room_again(self, self._mailboxes, self._bell.ring):
            self._bell.wait(timeout)
        own.parked = False  # an interrupt skips this: then senders ring in vain until the next `park`

    def wake(self) -> None:
        self._bell.ring()

    def interrupt(self) -> None:
        self._own.put(self.index, Failure(self.index, "interrupted"))

    @property
    def backlog(self) -> int:
        return sum([mailbox.owed(self.index) for mailbox in self._mailboxes])

    def close(self) -> None:
        """Do nothing: the queues live as long as the last allocator."""


def thread_allocators(peers: int, queue_bytes: int = 64 << 20) -> list[ThreadAllocator]:
    """Return the allocators of `peers` workers that share a process.

    >>> from timely.communication.message import ProgressUpdate
    >>> first, second = thread_allocators(2)
    >>> first.send(1, ProgressUpdate(0, ((3, (0,), 1),)))
    >>> second.receive()
    [(0, ProgressUpdate(dataflow=0, changes=((3, (0,), 1),)))]
    """
    bells = [Bell() for _ in range(peers)]
    mailboxes = [Mailbox(peers, bell.ring) for bell in bells]
    return [ThreadAllocator(index, mailboxes, bell, queue_bytes) for index, bell in enumerate(bells)]
