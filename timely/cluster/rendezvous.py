"""Rendezvous: how processes that a cluster's system has started learn each other's addresses, and keys.

Each process knows its index, how many there are, and where process 0 is. Process 0 listens (`head`). Every other
process connects and introduces itself (`Member`): its index, its ports, and the addresses of both ends of the
connection. So nobody has to know by which names or on which network the machines reach each other. When all are
connected, process 0 answers each with the addresses of all, the generation of this attempt and, under a seal that
keeps secrets, new keys. Under any other seal all processes have the keys.

All lines are sealed (`seal`). Each end includes what the other has chosen at random for this connection, so a recorded
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
import socket
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from timely.cluster.head import GREETING, Head
from timely.cluster.lines import Declare, LineConnection, follow
from timely.cluster.place import ProcessPlace, RendezvousWaiting, settled
from timely.cluster.ports import reserved_ports
from timely.cluster.seal import KeyPairSeal, Munge, Seal
from timely.communication.curve import load_keys, make_keys, write_keys
from timely.communication.endpoint import connected
from timely.communication.notes import declare_fate
from timely.config import Config
from timely.errors import ConfigError, PeerFailed, TransportError
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
