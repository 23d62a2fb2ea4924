"""Rendezvous: how processes that a cluster's system has started learn each other's addresses, and keys.

Each process knows its index, how many there are, and where process 0 is. Process 0 listens (`Head`). Every other
process connects and introduces itself (`Member`): its index, its ports, and the addresses of both ends of the
connection. So nobody has to know by which names or on which network the machines reach each other. When all are
connected, process 0 answers each with the addresses of all, the generation of this attempt and, under a seal that
keeps secrets, new keys. Under any other seal all processes have the keys.

All lines are sealed (`Seal`). Each end includes what the other has chosen at random for this connection, so a recorded
line has no effect. Connections that send anything else are closed and counted.

**Missing processes.** While they wait, processes print every four seconds for which. A process that ends while others
wait is named at once, unless the system starts it again in its place. The connections stay open after the answer, and
the end of one is the news that its process has ended (`lines`). Workers that have not met this process then report
that instead of waiting for it.

A rendezvous of N processes takes N - 1 connections with one line in each direction, and process 0 opens and makes
N - 1 seals.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import time as clock
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from timely.cluster.lines import Declare, KeyPairSeal, LineConnection, Munge, Seal, follow, spread
from timely.cluster.place import ProcessPlace, RendezvousWaiting, addresses_of, listener_at, reserved_ports, settled
from timely.communication.curve import load_keys, make_keys, write_keys
from timely.communication.descriptors import reserve_for
from timely.communication.endpoint import connected
from timely.communication.notes import declare_fate
from timely.config import Config
from timely.errors import ConfigError, PeerFailed, TransportError
from timely.observe.notices import numbered
from timely.run.directory import run_directory


@contextmanager
def placed_at(place: ProcessPlace, config: Config) -> Iterator[Config]:
    """Yield the configuration of the process at a place, once all processes are connected.

    If `config` names no directory of keys, process 0 makes keys and hands them out under a seal of munge. They are in a
    private directory of this process until the context ends.
    """
    if place.process >= place.processes:
        raise ConfigError(
            f"this is process {place.process} of {place.processes}, which are counted from 0: the system has started "
            "more than it states; start all of them again with one number"
        )
    if place.processes == 1:
        yield replace(config, processes=1, process=0, addresses=())
        return
    keys = None if config.curve_dir is None else load_keys(config.curve_dir)
    seal: Seal = Munge() if keys is None else KeyPairSeal(*keys)
    deadline = clock.monotonic() + config.rendezvous_seconds
    with run_directory(config.workers) as directory:
        curve_dir = config.curve_dir or str(directory)
        if place.process == 0:
            if keys is None:
                make_keys(curve_dir)
            addresses, generation = Head(place, config, seal, load_keys(curve_dir)).host(deadline)
        else:
            addresses, generation, handed_out = Member(place, config, seal, keys).attend(deadline)
            if keys is None:
                write_keys(curve_dir, *handed_out)
        yield settled(config, place, addresses, generation, curve_dir)


RETRY_SECONDS = 0.1
CONNECT_SECONDS = 3.0


@dataclass(eq=False)
class Member:
    """Attends the rendezvous of a run. `keys` are those of the run, unless process 0 hands them out."""

    place: ProcessPlace
    config: Config
    seal: Seal
    keys: tuple[bytes, bytes] | None
    declare: Declare = declare_fate

    def __post_init__(self) -> None:
        self._waiting = RendezvousWaiting(self.place)
        self._trouble = "nobody answers there"

    def attend(self, deadline: float) -> tuple[tuple[str, ...], str, tuple[bytes, bytes]]:
        """Return the addresses of all processes, the generation and the keys, when all are connected."""
        port = reserved_ports(self.config.workers)
        while True:
            lines, challenge = self._find(deadline)
            try:
                answer = self._ask(lines, challenge, port, deadline)
            except (EOFError, OSError):
                lines.close()
                if self.place.returns:
                    clock.sleep(RETRY_SECONDS)
                    continue
                raise TransportError(
                    f"process 0 on {self.place.head} has ended before all were connected: it was killed or it failed"
                ) from None
            except BaseException:
                lines.close()
                raise
            if "error" in answer:
                lines.close()
                raise PeerFailed(answer["error"])
            public, secret = self.keys or [key.encode() for key in answer["keys"]]
            follow(lines, KeyPairSeal(public, secret), answer["generation"], self.declare)
            return tuple(answer["addresses"]), answer["generation"], (public, secret)

    def _find(self, deadline: float) -> tuple[LineConnection, str]:
        """Return a connection to process 0 of this run, and what it asks."""
        place = self.place
        while True:
            for port in place.ports:
                if found := self._greeted(port):
                    return found
            if clock.monotonic() > deadline:
                raise TransportError(
                    f"process {place.process} waited {self.config.rendezvous_seconds:g} s for process 0 on "
                    f"{place.head}: {self._trouble}; find out what ended it or is delaying it, or allow more time "
                    "(TIMELY_RENDEZVOUS_SECONDS)"
                )
            self._waiting.note(f"process 0 on {place.head}: {self._trouble}")
            clock.sleep(RETRY_SECONDS)

    def _greeted(self, port: int) -> tuple[LineConnection, str] | None:
        """Return the connection to a port and the challenge, if process 0 of this run listens there."""
        try:
            connection = connected(self.place.head, port, CONNECT_SECONDS)
        except OSError as error:
            self._trouble = error.strerror or str(error)
            return None
        lines = LineConnection(connection)
        try:
            # IndexError: nothing, or not a whole line, has come within the time that `receive` waits.
            word, run, challenge = lines.receive()[0].decode().split(" ")
        except (EOFError, TransportError, ValueError, IndexError):
            lines.close()
            self._trouble = f"another program listens at port {port}"
            return None
        if (word, run) != (GREETING, self.place.run):
            lines.close()
            self._trouble = f"another run uses port {port}"
            return None
        return lines, challenge

    def _ask(self, lines: LineConnection, challenge: str, port: int, deadline: float) -> dict[str, Any]:
        """Introduce this process; return the answer of process 0. Raises EOFError if that has ended."""
        nonce = os.urandom(16).hex()
        introduction = {
            "run": self.place.run,
            "challenge": challenge,
            "nonce": nonce,
            "process": self.place.process,
            "processes": self.place.processes,
            "workers": self.config.workers,
            "port": port,
            "machine": socket.gethostname(),
            "here": lines.here,
            "head": lines.there,
        }
        lines.send(self.seal.sealed(json.dumps(introduction).encode()))
        while clock.monotonic() < deadline + CONNECT_SECONDS:  # process 0 gives up first, and names who is missing
            for line in lines.receive():
                answer: dict[str, Any] = json.loads(self.seal.opened(line))
                # Another one is a copy of what was sent to somebody else.
                if answer["nonce"] == nonce:
                    return answer
            self._waiting.note("the others, of which process 0 names those that are missing")
        raise TransportError(f"process 0 on {self.place.head} has not answered process {self.place.process}")


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
