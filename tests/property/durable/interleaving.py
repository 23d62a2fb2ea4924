"""Clients of one store, each in a thread, of which a seed decides who runs next; and what they are held to.

At any time one thread runs. It passes the turn on between any two operations of the store, so a run is one interleaving
of the clients' operations, and the same seed gives the same one.
"""

from __future__ import annotations

from _thread import LockType, allocate_lock
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from threading import Thread, get_ident

import numpy as np

from differential import Updates
from differential.durable.manifest import Keep, Manifest
from differential.durable.shard import Shard
from differential.durable.writer import Writer
from tests.simulation.stores import Crash
from timely.errors import FencedError, StateError, StoreError

PATIENCE = 30.0
"""Seconds after which a client that neither ends nor passes the turn on has failed."""


class Turns:
    """Runs functions in threads, one at a time; a call passes the turn on.

    The client whose turn it is draws the next one, so a client that draws itself goes on without a switch of threads.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._waiting: dict[int, LockType] = {}
        self._numbers: dict[int, int] = {}
        self._errors: list[BaseException] = []

    def __call__(self) -> None:
        mine = self._numbers.get(get_ident())
        if mine is not None and (drawn := self._draw()) != mine:
            self._waiting[drawn].release()
            assert self._waiting[mine].acquire(timeout=PATIENCE), "no client passed the turn on to this one"

    def run(self, clients: Sequence[Callable[[], None]]) -> None:
        """Run all clients to their ends; raise what one of them raises."""
        all_ended = _taken()
        self._waiting = {number: _taken() for number in range(len(clients))}

        def body(number: int) -> None:
            self._waiting[number].acquire()
            self._numbers[get_ident()] = number
            try:
                clients[number]()
            except BaseException as error:
                self._errors.append(error)
            finally:
                del self._numbers[get_ident()], self._waiting[number]
                (self._waiting[self._draw()] if self._waiting else all_ended).release()

        threads = [Thread(target=body, args=(number,), daemon=True) for number in range(len(clients))]
        for thread in threads:
            thread.start()
        self._waiting[self._draw()].release()
        assert all_ended.acquire(timeout=PATIENCE), "a client neither ended nor passed the turn on"
        for thread in threads:
            thread.join(PATIENCE)
        for error in self._errors:
            raise error

    def _draw(self) -> int:
        return self._random.choice(list(self._waiting))


def _taken() -> LockType:
    lock = allocate_lock()
    lock.acquire()
    return lock


@dataclass
class Append:
    """An append that a client attempted: what, where, and between which moments."""

    number: int
    lower: int
    upper: int
    rows: Counter[tuple[int, int]]
    begun: int
    returned: int | None = None


@dataclass
class History:
    """What clients attempted, in the order of moments; a moment passes at each entry."""

    appends: list[Append] = field(default_factory=list)
    moment: int = 0

    def begin(self, lower: int, upper: int, rows: Counter[tuple[int, int]]) -> Append:
        self.moment += 1
        self.appends.append(Append(len(self.appends), lower, upper, rows, self.moment))
        return self.appends[-1]

    def end(self, append: Append) -> None:
        self.moment += 1
        append.returned = self.moment


def writing(shard: Shard, random: Random, history: History, turn: Callable[[], None], lives: int) -> None:
    """Claim, append and compact, in several incarnations: each ends by a crash, an error, or of itself."""
    for _ in range(lives):
        try:
            writer = Writer.claim(shard, "input", pause=lambda _: turn())
            writer.keep = Keep(random.choice([None, 0, 3]))
            writer.remove_garbage()
            for _ in range(random.randrange(1, 4)):
                append(writer, random, history)
                if random.random() < 0.5:
                    writer.compact()
        except (FencedError, StoreError, Crash):
            continue


def append(writer: Writer, random: Random, history: History) -> None:
    """Append up to three rows at one to three times; the offset names the append."""
    lower = writer.manifest.upper
    upper = lower + random.randrange(1, 4)
    rows = Counter((random.randrange(4), random.randrange(lower, upper)) for _ in range(random.randrange(4)))
    attempt = history.begin(lower, upper, rows)
    batches = [Updates.at((time,), (np.array([record]),), np.array([count])) for (record, time), count in rows.items()]
    writer.append(upper, batches, {"append": attempt.number})
    history.end(attempt)


def reading(shard: Shard, random: Random, history: History, committed: Callable[[], list[bytes]]) -> None:
    """Read as of some time; that must be what the appends that took effect up to it add up to."""
    for _ in range(3):
        try:
            manifest = shard.manifest()
            as_of = random.randrange(manifest.since, manifest.upper) if manifest.since < manifest.upper else None
            if as_of is None:
                continue
            found = shard.read(as_of)
        except (StoreError, Crash):
            continue
        except StateError as error:
            if not any(reason in str(error) for reason in ("compacted", "no durable collection")):
                raise
            continue
        assert found == contents(effective(committed(), history), as_of)


def effective(committed: list[bytes], history: History) -> list[Append]:
    """Return the appends that took effect, in order."""
    found = []
    last = -1
    for data in committed:
        number = Manifest.from_bytes(data, "").offsets.get("append", -1)
        if number != last:
            assert isinstance(number, int)
            found.append(history.appends[number])
            last = number
    return found


def contents(appends: list[Append], as_of: int) -> dict[tuple[int], int]:
    """Return what appends add up to as of a time."""
    total: Counter[tuple[int]] = Counter()
    for each in appends:
        for (record, time), count in each.rows.items():
            if time <= as_of:
                total[record,] += count
    return dict(total)


def check(committed: list[bytes], history: History, shard: Shard) -> None:
    """Raise AssertionError unless appends are linearizable, none that returned is lost, and none happened twice."""
    manifests = [Manifest.from_bytes(data, "") for data in committed]
    for one, next_ in pairwise(manifests):
        assert next_.version == one.version + 1
        assert next_.since >= one.since
        claimed = next_.fence == one.fence + 1
        assert claimed or (next_.fence, next_.owner) == (one.fence, one.owner), "a writer that was fenced off wrote"
        assert not claimed or (next_.parts, next_.upper, next_.offsets) == (one.parts, one.upper, one.offsets)
    done = effective(committed, history)
    numbers = [each.number for each in done]
    assert len(set(numbers)) == len(numbers), "an append took effect twice"
    lost = [each for each in history.appends if each.returned is not None and each.number not in numbers]
    assert lost == [], "appends returned, and did not take effect"
    upper = 0
    for each in done:
        assert each.lower == upper, "an append does not begin where the one before it ends"
        upper = each.upper
    for place, later in enumerate(done):
        for earlier in done[:place]:
            in_order = later.returned is None or earlier.begun < later.returned
            assert in_order, "an append took effect before one that had returned when it began"
    if manifests:
        assert manifests[-1].upper == upper
        if upper:
            assert shard.read() == contents(done, upper - 1)
        shard.verify()
