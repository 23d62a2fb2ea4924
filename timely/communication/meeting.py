"""Meeting: the handshake between workers. Each sends `Hello` to each peer until the peer has answered.

A worker has met a peer when the peer has answered and the worker's own connection to it stands. So no message goes into
a socket that an earlier run has not closed yet. After meeting a peer, a worker need not wait until the peer has met all
of its own peers: every answer is answered once, which completes the meeting at the other end.

What would keep workers apart forever is an error: peers of another run, peers that were started with other numbers, and
peers that do not come. A worker that refuses a peer first sends it a hello, so that the peer finds the same reason and
does not wait.

A peer that ends before both have met is reported as well. Under `timely run` the launcher knows about it
(`notes.fate_of`). Without a launcher, hellos are the evidence: a peer that has sent one is gone if there has been no
connection to it, and no hello from it, for `SILENCE_SECONDS`. A peer whose system has accepted a connection, but which
sends nothing on it, is stopped: ZeroMQ's thread would answer at once, whatever the peer computes. A peer that has never
sent a hello may merely be late, and a connection that breaks without a hello may have been to an earlier run.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf
from threading import Lock

from timely.communication.codec import Hello
from timely.communication.link import Link
from timely.communication.notes import fate_of
from timely.config import Config
from timely.errors import TransportError
from timely.observe.notices import notify

HELLO_SECONDS = 0.25
"""The interval between two hellos to a peer."""

STRANGER_SECONDS = 2.0
"""How long a process of another run may answer in place of a peer: leftovers of an earlier run have ended by then."""

SILENCE_SECONDS = 1.5
"""How long a peer that has sent a hello may be silent and disconnected."""

ACCEPTED_OF_TIMEOUT = 0.8
"""For which part of `Config.peer_timeout` a peer that has accepted a connection may be silent on it."""

WAITING_SECONDS = 4.0
"""The time until the first line, and between two lines."""


class Waiting:
    """Which workers of a process wait for which peers, and when to print it next.

    All workers of a process share one, so it prints one line, however many of them wait.
    """

    def __init__(self, process: int) -> None:
        self._process = process
        self._missing: dict[int, Collection[Link]] = {}
        self._begun = inf
        self._lines = 0
        self._lock = Lock()

    def note(self, worker: int, missing: Collection[Link], now: float) -> None:
        """Record which peers a worker has not met, and print those of all workers when a line is due."""
        with self._lock:
            self._begun = min(self._begun, now)
            self._missing[worker] = missing
            if not any(self._missing.values()) or now < self._begun + WAITING_SECONDS * (self._lines + 1):
                return
            self._lines = int((now - self._begun) / WAITING_SECONDS)
            peers = {link.peer: f"{link}: {link.state(now)}" for links in self._missing.values() for link in links}
        # Outside of the lock, since whatever listens to notices may take long.
        listed = "; ".join(peers[peer] for peer in sorted(peers))
        seconds = self._lines * WAITING_SECONDS
        notify(f"process {self._process} has waited {seconds:g} s for its peers; {listed}")


@dataclass(eq=False)
class Meeting:
    """One worker's side of the handshake with the peers at the other ends of its links."""

    config: Config
    worker: int
    links: Collection[Link]
    send: Callable[[Link, Hello], None]
    waiting: Waiting
    _fates_at: float = 0.0

    def advance(self, now: float) -> bool:
        """Send the hellos that are due; return whether all peers have been met.

        Raises `TransportError` for peers of another run and for peers that are gone.
        """
        missing = self.missing()
        for link in missing:
            if link.stranger is not None:
                self._check_stranger(link, *link.stranger, now)
            greeted_at = link.greeted_at
            if greeted_at is not None and now > link.last_sign_of_life(greeted_at) + SILENCE_SECONDS:
                raise TransportError(f"{link} is gone before all have met: it was killed or stopped, or it crashed")
            accepted_at = link.accepted_at
            if accepted_at is not None and now > accepted_at + ACCEPTED_OF_TIMEOUT * self.config.peer_timeout:
                raise TransportError(f"{link}: {link.state(now)}")
        if now >= self._fates_at:
            self._fates_at = now + HELLO_SECONDS
            # A peer that, as the launcher knows, will not come.
            for link in missing:
                if fate := fate_of(link.process, self.config.generation):
                    raise TransportError(f"{link} {fate}")
        self.waiting.note(self.worker, missing, now)
        for link in missing:
            if link.connected and now >= link.hello_due_at:
                link.hello_due_at = now + HELLO_SECONDS
                self._send_hello(link, answer=False)
        return not missing

    def _check_stranger(self, link: Link, generation: str, first: float, last: float, now: float) -> None:
        """Raise `TransportError` if a process of another run keeps sending hellos in place of a peer.

        If its hellos stop, it was a leftover of an earlier run, and the peer may still come. The other end starts
        counting at another moment, and must have received enough hellos by the time this end gives up; hence hellos
        over half of the time suffice.
        """
        if now > first + STRANGER_SECONDS and last - first > STRANGER_SECONDS / 2:
            raise TransportError(
                f"{link} belongs to another run: its generation is {generation!r}, here it is "
                f"{self.config.generation!r}; end processes left over from earlier runs, and start all processes with "
                "the same TIMELY_GENERATION"
            )

    def missing(self) -> list[Link]:
        return [link for link in self.links if not link.met]

    def receive_hello(self, link: Link, hello: Hello) -> None:
        """Record a peer's hello, and answer it unless the peer's answer was answered before."""
        link.quantum, link.pid, link.greeted_at = hello.quantum, hello.pid, clock.monotonic()
        link.accept(hello.offer)
        if link.answered and hello.answer:
            return
        # An answer proves that hellos reach the peer, so the answer to it arrives. Other hellos are repeated until
        # they are answered.
        link.answered = link.answered or hello.answer
        self._send_hello(link, answer=True)

    def _send_hello(self, link: Link, *, answer: bool) -> None:
        config = self.config
        numbers = config.processes, config.workers, link.own_quantum
        self.send(link, Hello(*numbers, answer, os.getpid(), config.accumulation, link.offer))

    def check(self, sender: int, hello: Hello, link: Link | None) -> None:
        """Raise `TransportError` unless the sender was started like this process, and let the sender know."""
        try:
            self._compare(sender, hello)
        except TransportError:
            # The sender of an answer has had a hello from here, by which it finds the same reason.
            if link is not None and not hello.answer:
                link.pid = hello.pid
                self._send_hello(link, answer=True)
            raise

    def _compare(self, sender: int, hello: Hello) -> None:
        config = self.config
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
