"""What this worker has sent to operators and they have not taken yet: how memory is kept bounded.

**What is counted.** For each receiving worker p, `owed(p)` is how many bytes of batches are on their way to, or queued
at, an input that spreads them over the workers, or whose operator takes them one by one. A receiver reports from time
to time what its operators have taken (`Taken`). The *share* of a worker is the bound divided by the number of workers.
A worker is *congested* if it owes some p more than its share; so all workers together send no worker more than the
bound.

**Who waits.** While a worker is congested its sources do not run, and its inputs report it (`is_congested`). An
operator leaves its next message in the queue as long as both are true of some p: it is owed more than its share; and
more than a quarter of a share of that is at inputs *behind* the operator in the topological order of its dataflow.
Operators that promised to drain their inputs (`drains`) turn what they take into state. They do not wait to take, but
do when they have much to emit (`Operator.must_wait`).

**Nothing waits for ever.** Of all inputs of a dataflow at which something is queued, on any worker, consider the last
in topological order. Everything that is owed is at inputs before its operator or at its own, except what has been
taken and not reported: that is at most an eighth of a share, or there is an older message at the same input. So the
operator does not wait. A feedback leads to an
earlier input, which no operator of the loop is before; so a loop always completes its round, and what circulates in it
is not bounded.

**The bound.** `owed(p)` exceeds the share by at most what one batch of a source or input becomes, and for each counted
channel by a quarter of the share and what its operator emits for one batch, or for small messages that become one
(`joined`). Not counted: what operators keep, what one
activation of an operator emits, and what circulates in loops.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from timely.communication.message import Taken
from timely.errors import FrameError

_SMALL = 1 << 12
"""How many bytes of messages become one batch for an operator that does not drain its input."""


class Outstanding:
    """A worker's bytes sent and not taken, by receiver, and what it has taken and not reported, by sender."""

    __slots__ = ("_owed", "_send", "_takings", "_unreported", "allowance", "over", "quantum", "share")

    def __init__(self, peers: int, queue_bytes: int, send: Callable[[int, Taken], None]) -> None:
        self.share = max(1, queue_bytes // peers)
        self.allowance = self.share // 4
        self.quantum = self.share // 8
        """After taking this many bytes from a worker, this worker reports it."""
        self.over: set[int] = set()
        """The workers that are owed more than their share."""
        self._owed = [0] * peers
        self._unreported = [0] * peers
        self._takings: list[dict[tuple[int, int], int]] = [{} for _ in range(peers)]
        self._send = send

    def joined(self, drains: bool) -> int:
        """Return how many bytes of messages an operator takes as one batch.

        They are few for one that does not drain its input: it may emit many times as much before it waits again.
        """
        return self.quantum if drains else min(self.quantum, _SMALL)

    def add(self, peer: int, size: int) -> None:
        """Owe a worker more."""
        owed = self._owed[peer] + size
        self._owed[peer] = owed
        if owed > self.share:
            self.over.add(peer)

    def subtract(self, peer: int, size: int) -> None:
        """Owe a worker less."""
        owed = self._owed[peer] - size
        self._owed[peer] = owed
        if owed <= self.share and self.over:
            self.over.discard(peer)

    def take(self, sender: int, dataflow: int, channel: int, size: int) -> None:
        """Note that a message of another worker was taken here, and report it to that worker if it is time."""
        takings = self._takings[sender]
        takings[dataflow, channel] = takings.get((dataflow, channel), 0) + 1
        unreported = self._unreported[sender] + size
        if unreported <= self.quantum:
            self._unreported[sender] = unreported
            return
        self._unreported[sender] = 0
        self._takings[sender] = {}
        self._send(sender, Taken(tuple((*place, messages) for place, messages in takings.items())))


class Ledger:
    """One channel's part of what is outstanding: what is owed there, and whose messages are queued here.

    Both ends count a message alike, but a peer's are settled by their number, so that no difference could add up. The
    sender takes these to be the oldest. So one that is taken before an older one is reported after it.
    """

    __slots__ = (
        "_ahead",
        "_arrived",
        "_channel",
        "_dataflow",
        "_me",
        "_oldest",
        "_outstanding",
        "_queued",
        "_sent",
        "owed",
        "sender",
    )

    def __init__(self, outstanding: Outstanding, me: int, peers: int, dataflow: int, channel: int) -> None:
        self._outstanding = outstanding
        self._me = me
        self._dataflow = dataflow
        self._channel = channel
        self._queued: deque[tuple[int, int, int]] = deque()
        """The sender, size and number of each message in the queue; those of one sender are numbered as they arrive."""
        self._arrived = [0] * peers
        """How many messages of each worker have arrived here."""
        self._oldest = [0] * peers
        """The number of the oldest message of each worker that has not been taken."""
        self._ahead: dict[tuple[int, int], int] = {}
        """The sizes of messages taken before an older one of the same sender, by sender and number."""
        self._sent: dict[int, deque[int]] = {}
        self.owed = [0] * peers
        self.sender = me
        """The worker that sent the message taken last."""

    def send(self, peer: int, size: int) -> None:
        """Note that a message goes to this channel on another worker."""
        self._sent.setdefault(peer, deque()).append(size)
        self._add(peer, size)

    def queue(self, sender: int, size: int) -> None:
        """Note that a message was put into the queue here."""
        number = self._arrived[sender]
        self._arrived[sender] = number + 1
        self._queued.append((sender, size, number))
        if sender == self._me:
            self._add(sender, size)

    def take(self) -> None:
        """Note that the first message was taken from the queue."""
        sender, size, number = self._queued.popleft()
        self.sender = sender
        if sender == self._me:
            self._subtract(sender, size)
        elif number == self._oldest[sender]:
            self._report(sender, size)
            # Also those that follow it, as far as they were taken before.
            while self._ahead and (size := self._ahead.pop((sender, self._oldest[sender]), -1)) >= 0:
                self._report(sender, size)
        else:
            self._ahead[sender, number] = size

    def sizes(self) -> Iterator[int]:
        """Yield the bytes of the messages in the queue."""
        return (size for _, size, _ in self._queued)

    def sort(self, order: list[int]) -> None:
        """Note that the queue has another order: `order` has the places that its messages had before."""
        queued = list(self._queued)
        self._queued = deque([queued[place] for place in order])

    def settle(self, peer: int, messages: int) -> None:
        """Settle the number of messages that another worker has taken; raise `FrameError` if it was sent fewer."""
        sent = self._sent.get(peer, deque())
        if messages > len(sent):
            raise FrameError(
                f"worker {peer} took {messages} messages of channel {self._channel} of dataflow {self._dataflow}, and "
                f"has {len(sent)}"
            )
        # The peer may have taken others than the oldest (`sort`). Then what is owed is not exact until it takes these.
        self._subtract(peer, sum([sent.popleft() for _ in range(messages)]))

    def close(self) -> None:
        """Take what is queued and owe nothing: the dataflow was dropped."""
        while self._queued:
            self.take()  # peers owe what was not reported to them as taken
        for peer, size in enumerate(self.owed):
            self._subtract(peer, size)
        self._sent.clear()

    def _report(self, sender: int, size: int) -> None:
        """Report to another worker that its oldest message was taken."""
        self._oldest[sender] += 1
        self._outstanding.take(sender, self._dataflow, self._channel, size)

    def _add(self, peer: int, size: int) -> None:
        self.owed[peer] += size
        self._outstanding.add(peer, size)

    def _subtract(self, peer: int, size: int) -> None:
        self.owed[peer] -= size
        self._outstanding.subtract(peer, size)
