"""How workers meet before they say anything else: each says `Hello` to each peer until that has answered.

A worker has met a peer when it has been answered and its own connection stands. Hence no message is sent into a socket
that a former run has not closed yet. Whoever has met a peer need not listen for that peer to be done with meeting too:
an answer is answered once.

What would keep workers apart for ever is an error: peers of another run, those started with other numbers, those that
do not come. Whoever turns a peer away says hello to it before, so that the peer finds the same reason, and does not
wait.

A peer that is gone before both have met is named, too. Under `timely run` the launcher knows (`notes.fate_of`). Without
it, a peer is known by its hellos: one that has sent some is gone when there has been no connection to it, and no hello
from it, for `SILENCE_SECONDS`. One that never sent a hello looks like one that is late, and a connection that
breaks without a hello may be what an earlier run has left.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Collection

from timely.communication.codec import Hello
from timely.communication.link import Link
from timely.communication.notes import fate_of
from timely.communication.waiting import Waiting
from timely.config import Config
from timely.errors import TransportError

HELLO_SECONDS = 0.25
"""How often to say it again."""

STRANGER_SECONDS = 2.0
"""How long a peer may be of another run: what is left of that one ends by then."""


SILENCE_SECONDS = 1.5
"""How long a peer that has sent a hello may be silent and without a connection."""


class Meeting:
    """A worker's way to meet the peers at the other ends of its links."""

    def __init__(
        self, config: Config, worker: int, links: Collection[Link], say: Callable[[Link, Hello], None], waiting: Waiting
    ) -> None:
        self._config = config
        self._worker = worker
        self._links = links
        self._say = say
        self._waiting = waiting
        self._fates_at = 0.0

    def go_on(self, now: float) -> bool:
        """Say hello where it is due; return whether all have met.

        Raise `TransportError` for peers of another run, and for those that are gone.
        """
        missing = self.missing()
        for link in missing:
            if link.stranger is not None:
                self._bear(link, *link.stranger, now)
            if link.heard_at is not None and now > link.last_sign(link.heard_at) + SILENCE_SECONDS:
                raise TransportError(f"{link} is gone before all have met: it was killed or stopped, or it crashed")
        if now >= self._fates_at:
            self._fates_at = now + HELLO_SECONDS
            self._look_up_fates(missing)
        self._waiting.note(self._worker, missing, now)
        for link in missing:
            if link.connected and now >= link.hello_at:
                link.hello_at = now + HELLO_SECONDS
                self._hello(link, answer=False)
        return not missing

    def _look_up_fates(self, missing: Collection[Link]) -> None:
        """Raise `TransportError` for a peer that will not come, as far as the launcher knows."""
        for link in missing:
            fate = fate_of(link.process)
            if fate:
                raise TransportError(f"{link} {fate}")

    def _bear(self, link: Link, generation: str, first: float, last: float, now: float) -> None:
        """Raise `TransportError` for a peer of another run that has gone on saying hello.

        One that stopped was left of an earlier run, and the peer may yet come. The other end counts from a moment of
        its own, and must have heard enough by the time this one leaves; hence half as long.
        """
        if now > first + STRANGER_SECONDS and last - first > STRANGER_SECONDS / 2:
            raise TransportError(
                f"{link} belongs to another run: its generation is {generation!r}, here it is "
                f"{self._config.generation!r}; end what is left of earlier runs, and start all processes with the "
                "same TIMELY_GENERATION"
            )

    def missing(self) -> list[Link]:
        """Return the links to those who have not been met."""
        return [link for link in self._links if not link.met]

    def greet(self, link: Link, hello: Hello) -> None:
        """Take in a peer's hello, and answer it unless it answers one that was answered."""
        link.quantum, link.pid, link.heard_at = hello.quantum, hello.pid, clock.monotonic()
        if link.answered and hello.answer:
            return
        # The way to the peer is proven now, so this one arrives.
        link.answered = link.answered or hello.answer
        self._hello(link, answer=True)

    def _hello(self, link: Link, *, answer: bool) -> None:
        config = self._config
        self._say(
            link, Hello(config.processes, config.workers, link.own_quantum, answer, os.getpid(), config.accumulation)
        )

    def check(self, sender: int, hello: Hello, link: Link | None) -> None:
        """Tell the sender, and raise `TransportError`, unless it was started like this process."""
        try:
            self._compare(sender, hello)
        except TransportError:
            if link is not None and not hello.answer:
                link.pid = hello.pid
                self._hello(link, answer=True)
            raise

    def _compare(self, sender: int, hello: Hello) -> None:
        config = self._config
        if (hello.processes, hello.workers) != (config.processes, config.workers):
            raise TransportError(
                f"process {sender // max(hello.workers, 1)} was started for {hello.processes} processes of "
                f"{hello.workers} workers, process {config.process} for {config.processes} of {config.workers}; "
                "start all of them with the same numbers"
            )
        if hello.accumulation != config.accumulation:
            raise TransportError(
                f"process {config.process_of(sender)} adds up progress by {hello.accumulation!r}, "
                f"process {config.process} by {config.accumulation!r}; "
                "start all of them with the same TIMELY_ACCUMULATION"
            )
