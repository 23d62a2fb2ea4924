"""A process other than 0 in a rendezvous: it finds process 0, introduces itself, and waits for the answer."""

from __future__ import annotations

import json
import os
import socket
import time as clock
from dataclasses import dataclass
from typing import Any

from timely.cluster.head import GREETING
from timely.cluster.lifeline import Declare, follow
from timely.cluster.lines import LineConnection
from timely.cluster.place import ProcessPlace, RendezvousWaiting
from timely.cluster.ports import reserved_ports
from timely.cluster.seal import KeyPairSeal, Seal
from timely.communication.endpoint import connected
from timely.communication.notes import declare_fate
from timely.config import Config
from timely.errors import PeerFailed, TransportError

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
