"""The place of a process in a run: what its environment states, and what it and its peers make of that.

**Ports** are those at which the workers of this process will listen, and one at which process 0 can be found. A port
that was free a moment ago may be taken when a worker binds it, if many processes of a machine look for ports at the
same time. So `reserved_ports` keeps a socket bound to each of its ports until the process ends. These sockets do not
listen, and permit another socket of the same user to bind and listen there. But a process that looks for a free port in
the same way finds this one taken. The ports lie below those that systems give to outgoing connections.

>>> first = reserved_ports(2)
>>> FIRST <= first < LAST, reserved_ports(2) not in (first, first + 1)
(True, True)
"""

from __future__ import annotations

import hashlib
import random
import socket
import time as clock
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

from timely.config import Config, bracketed, is_loopback
from timely.errors import ConfigError, TransportError
from timely.observe.notices import notify, numbered

WAITING_SECONDS = 4.0
"""The time until the first line about which processes are missing, and between two lines."""
LOOK_SECONDS = 2.0
"""The time between two looks for processes that have ended, where the system permits to look."""


class ProcessPlace(NamedTuple):
    """What the environment states about a process. `run` is the same for all processes of a run, and for no other.

    Process 0 is on the machine `head` and listens at the first free one of `ports`. If `returns`, the system starts
    processes again that end while others wait for them. `ended` returns the processes that are known to have ended,
    although they may never have connected to process 0.
    """

    process: int
    processes: int
    head: str
    run: str
    ports: tuple[int, ...]
    returns: bool = False
    ended: Callable[[], Sequence[int]] = tuple


def number(environ: Mapping[str, str], *names: str, of: str) -> int:
    """Return the number in the first of some environment variables that is set; raise `ConfigError` if none has one.

    >>> number({"SLURM_PROCID": "3"}, "SLURM_PROCID", of="a task that srun has started")
    3
    >>> number({}, "SLURM_PROCID", of="a task that srun has started")
    Traceback (most recent call last):
        ...
    timely.errors.ConfigError: SLURM_PROCID is not set, so this process is not a task that srun has started
    """
    for name in names:
        text = environ.get(name, "")
        if text.isascii() and text.isdigit():
            return int(text)
        if text:
            raise ConfigError(f"{name}={text!r:.80} in the environment: must be a number")
    raise ConfigError(f"{' or '.join(names)} is not set, so this process is not {of}")


def addresses_of(introductions: Sequence[Mapping[str, Any]], head_port: int) -> tuple[str, ...]:
    """Return the addresses of all processes, given how the processes from 1 on have introduced themselves.

    Each names the addresses of both ends of its connection to process 0: `here` and `head`. A process on the machine of
    process 0 may have reached it by a loopback address. Then it has the address by which other machines reach process
    0.

    >>> near, far = {"here": "127.0.0.1", "head": "127.0.0.1"}, {"here": "10.0.0.2", "head": "10.0.0.1"}
    >>> addresses_of([near | {"port": 20001}, far | {"port": 20000}], 20000)
    ('tcp://10.0.0.1:20000', 'tcp://10.0.0.1:20001', 'tcp://10.0.0.2:20000')
    """
    heads = [each["head"] for each in introductions]
    # There is at least one: a run of one process has no rendezvous.
    head = next((each for each in heads if not is_loopback(each)), heads[0])
    places = [(head, head_port)]
    places += [(head if is_loopback(each["here"]) else each["here"], each["port"]) for each in introductions]
    return tuple(f"tcp://{bracketed(host)}:{port}" for host, port in places)


def settled(config: Config, place: ProcessPlace, addresses: Sequence[str], generation: str, curve_dir: str) -> Config:
    """Return the configuration of a process that has learnt where all are."""
    try:
        return replace(
            config,
            processes=place.processes,
            process=place.process,
            addresses=tuple(addresses),
            generation=generation,
            curve_dir=curve_dir,
        )
    except ConfigError as error:
        raise TransportError(f"the processes cannot run together: {error}") from None


class RendezvousWaiting:
    """Prints for whom a process waits, every few seconds, and looks for processes that will not come."""

    def __init__(self, place: ProcessPlace) -> None:
        self._place = place
        self._begun = clock.monotonic()
        self._lines = 0
        self._looked = self._begun

    def note(self, whom: str) -> None:
        """Print whom the process waits for, if a line is due; raise `TransportError` if a process has ended."""
        now = clock.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            if ended := self._place.ended():
                raise TransportError(
                    f"{numbered('process', ended)} ended before all processes were connected: killed, or failed with "
                    "an error of its own"
                )
        waited = int((now - self._begun) / WAITING_SECONDS)
        if waited > self._lines:
            self._lines = waited
            seconds = waited * WAITING_SECONDS
            process = self._place.process
            notify(f"process {process} has waited {seconds:g} s for {whom}")


FIRST, LAST = 20_000, 32_768
_ATTEMPTS = 200


def reserved_ports(count: int) -> int:
    """Return the first of `count` consecutive ports that no other process of this machine uses."""
    choice = random.Random()  # not seeded: processes that start together must not try the same ports
    for _ in range(_ATTEMPTS):
        first = choice.randrange(FIRST, LAST - count)
        with ExitStack() as opened:
            taken = []
            try:
                for port in range(first, first + count):
                    taken.append(opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM)))
                    taken[-1].bind(("", port))
            except OSError:
                continue
            opened.pop_all()
            for each in taken:
                # Only now, because a socket that permits sharing when it is bound would share the port of another one.
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                each.detach()  # the system closes it when this process ends
            return first
    raise TransportError(f"there are no {count} consecutive free ports from {FIRST} to {LAST - 1} on this machine")


def listener_at(port: int) -> socket.socket:
    """Return a socket that listens at a port for connections from everywhere, by IPv4 and, if possible, by IPv6.

    Raises `OSError` if the port is in use.
    """
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    return socket.create_server(("", port), family=family, backlog=1024, dualstack_ipv6=dual)


def agreed_ports(run: str, count: int = 8) -> tuple[int, ...]:
    """Return ports at one of which process 0 of a run listens. All processes of the run find the same ones.

    >>> agreed_ports("17.0", 3) == agreed_ports("17.0", 3) != agreed_ports("18.0", 3)
    True
    """
    digests = (hashlib.blake2b(f"{run} {number}".encode(), digest_size=4).digest() for number in range(count))
    return tuple(FIRST + int.from_bytes(digest, "big") % (LAST - FIRST) for digest in digests)
