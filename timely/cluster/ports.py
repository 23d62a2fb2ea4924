"""Ports that the workers of this process will listen at, and a port at which process 0 can be found.

A port that was free a moment ago may be taken when a worker binds it, if many processes of a machine look for ports at
the same time. So `reserved_ports` keeps a socket bound to each of its ports until the process ends. These sockets do
not listen, and permit another socket of the same user to bind and listen there. But a process that looks for a free
port in the same way finds this one taken.

The ports lie below those that systems give to outgoing connections.

>>> first = reserved_ports(2)
>>> FIRST <= first < LAST, reserved_ports(2) not in (first, first + 1)
(True, True)
"""

from __future__ import annotations

import hashlib
import random
import socket
from contextlib import ExitStack

from timely.errors import TransportError

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
