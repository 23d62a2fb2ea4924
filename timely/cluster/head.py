"""Process 0 in a rendezvous: it receives the other processes, and answers all of them together."""

from __future__ import annotations

import json
import os
import selectors
import socket
import time as clock
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from timely.cluster.lines import Declare, LineConnection, spread
from timely.cluster.place import ProcessPlace, RendezvousWaiting, addresses_of
from timely.cluster.ports import listener_at, reserved_ports
from timely.cluster.seal import KeyPairSeal, Seal
from timely.communication.descriptors import reserve_for
from timely.communication.notes import declare_fate
from timely.config import Config
from timely.errors import TransportError
from timely.observe.notices import numbered

GREETING = "timely"
"""The first word that process 0 sends. The others are the name of the run and a challenge."""
TURN_SECONDS = 0.25
GUESTS = 4096
"""How many connections process 0 keeps while it waits. Beyond it closes new ones, which are not its peers'."""
PAUSE_SECONDS = 0.05
"""The time between two attempts to accept a connection for which no descriptor is left."""


class Guest:
    """A connection to process 0, and what the process at its other end has introduced itself with, if it has."""

    def __init__(self, connection: socket.socket) -> None:
        self.lines = LineConnection(connection)
        self.challenge = os.urandom(16).hex()
        self.introduction: Mapping[str, Any] | None = None


@dataclass(eq=False)
class Head:
    """Receives the processes of a run. `keys` are those of the run, which are handed out if the seal keeps secrets."""

    place: ProcessPlace
    config: Config
    seal: Seal
    keys: tuple[bytes, bytes]
    declare: Declare = declare_fate

    def __post_init__(self) -> None:
        self._disagreement = ""
        self._refused = 0
        self._last_refusal = ""
        self._guests: dict[socket.socket, Guest] = {}
        self._selector = selectors.DefaultSelector()

    def host(self, deadline: float) -> tuple[tuple[str, ...], str]:
        """Return the addresses of all processes, and the generation, when all are connected and have been answered."""
        waiting = RendezvousWaiting(self.place)
        port = reserved_ports(self.config.workers)
        reserve_for(GUESTS)
        with _listening(self.place.ports) as listener, self._selector:
            self._selector.register(listener, selectors.EVENT_READ)
            try:
                while missing := self._missing():
                    self._turn(listener)
                    self._check(deadline, missing)
                    waiting.note(numbered("process", missing))
                return self._answer_all(port)
            except BaseException as error:
                self._close_all(str(error) if isinstance(error, TransportError) else "process 0 has failed")
                raise

    def _missing(self) -> list[int]:
        come = {guest.introduction["process"] for guest in self._guests.values() if guest.introduction is not None}
        return [process for process in range(1, self.place.processes) if process not in come]

    def _check(self, deadline: float, missing: list[int]) -> None:
        if self._disagreement:
            raise TransportError(self._disagreement)
        if clock.monotonic() < deadline:
            return
        refused = f"; {self._refused} connections were refused, the last because {self._last_refusal}"
        raise TransportError(
            f"process 0 waited {self.config.rendezvous_seconds:g} s for {numbered('process', missing)}, which did not "
            f"connect{refused if self._refused else ''}; find out what ended them or is delaying them, or "
            "allow more time (TIMELY_RENDEZVOUS_SECONDS)"
        )

    def _turn(self, listener: socket.socket) -> None:
        """Wait for connections and lines, and act on them."""
        for key, _ in self._selector.select(TURN_SECONDS):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if connection is listener:
                self._greet(listener)
            elif connection in self._guests:  # unless a process that was started again has replaced it in this turn
                self._listen_to(connection)

    def _greet(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError as error:  # no descriptor is left, so the connection waits until another one is closed
            if self._last_refusal != error.strerror:
                self._note_refusal(error.strerror)
            clock.sleep(PAUSE_SECONDS)
            return
        if len(self._guests) >= GUESTS:
            connection.close()
            self._note_refusal(f"there were {GUESTS} others")
            return
        guest = self._guests[connection] = Guest(connection)
        self._selector.register(connection, selectors.EVENT_READ)
        with suppress(OSError):
            guest.lines.send(f"{GREETING} {self.place.run} {guest.challenge}".encode())

    def _listen_to(self, connection: socket.socket) -> None:
        guest = self._guests[connection]
        try:
            for line in guest.lines.receive():
                self._introduce(guest, line)
        except EOFError:
            self._lose(connection, guest)
        except (TransportError, ValueError, KeyError, TypeError) as error:
            self._note_refusal(error)
            self._close(connection)

    def _note_refusal(self, why: object) -> None:
        self._refused += 1
        self._last_refusal = f"{why}"[:200]

    def _introduce(self, guest: Guest, line: bytes) -> None:
        """Record who is at the other end of a connection."""
        introduction = json.loads(self.seal.opened(line))
        if (introduction["run"], introduction["challenge"]) != (self.place.run, guest.challenge):
            raise TransportError("its answer is to another process's challenge")
        process, ours = introduction["process"], (self.place.processes, self.config.workers)
        if (theirs := (introduction["processes"], introduction["workers"])) != ours:
            guest.introduction = introduction
            self._disagreement = (
                f"process {process} was started for {theirs[0]} processes of {theirs[1]} workers, process 0 for "
                f"{ours[0]} of {ours[1]}; start all of them with the same numbers"
            )
            return
        if not 0 < process < ours[0]:
            raise TransportError(f"there is no process {process} of {ours[0]}")
        # A copy, because closing a connection removes it.
        for connection, other in list(self._guests.items()):
            if other.introduction is not None and other.introduction["process"] == process:
                self._close(connection)  # the process was started again
        guest.introduction = introduction

    def _lose(self, connection: socket.socket, guest: Guest) -> None:
        """Close a connection that has ended.

        Raises `TransportError` if it was that of a process which the system does not start again.
        """
        self._close(connection)
        # A connection without an introduction may be anybody's.
        if guest.introduction is not None and not self.place.returns:
            who = f"process {guest.introduction['process']} on {guest.introduction['machine']}"
            raise TransportError(f"{who} has ended before all processes were connected: it was killed or it failed")

    def _close(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._guests[connection]
        connection.close()

    def _answer_all(self, port: int) -> tuple[tuple[str, ...], str]:
        """Send the addresses, the generation and, if the seal permits it, the keys to all."""
        come: dict[int, Guest] = {}
        for connection, guest in list(self._guests.items()):
            if guest.introduction is None:
                self._close(connection)
            else:
                come[guest.introduction["process"]] = guest
        # Sorted, they are those of processes 1, 2, ...: none is missing.
        introductions = [guest.introduction for _, guest in sorted(come.items()) if guest.introduction is not None]
        addresses = addresses_of(introductions, port)
        generation = os.urandom(8).hex()
        answer: dict[str, Any] = {"addresses": addresses, "generation": generation}
        if self.seal.keeps_secrets:
            answer["keys"] = [key.decode() for key in self.keys]
        for guest in come.values():
            self._answer(guest, answer)
        # They stay open, though the rendezvous is over: the end of one is that of its process.
        lines = {process: guest.lines for process, guest in come.items()}
        spread(lines, KeyPairSeal(*self.keys), generation, self.declare)
        return addresses, generation

    def _answer(self, guest: Guest, answer: Mapping[str, Any]) -> None:
        assert guest.introduction is not None
        with suppress(OSError):  # it has ended in this moment, which the end of its lifeline reports
            guest.lines.send(self.seal.sealed(json.dumps({**answer, "nonce": guest.introduction["nonce"]}).encode()))

    def _close_all(self, why: str) -> None:
        """Close all connections, after sending the reason to the processes that are connected, if possible."""
        for connection, guest in list(self._guests.items()):
            if guest.introduction is not None:
                with suppress(Exception):  # the error that this one is about must not be replaced by another
                    self._answer(guest, {"error": why})
            self._close(connection)


def _listening(ports: tuple[int, ...]) -> socket.socket:
    """Return a socket that listens at the first of some ports that is free."""
    for port in ports:
        with suppress(OSError):
            return listener_at(port)
    raise TransportError(
        f"process 0 cannot listen at any of the ports {', '.join(map(str, ports))}: other programs use all of them"
    )
