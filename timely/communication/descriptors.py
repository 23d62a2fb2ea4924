"""The file descriptors that the connections of a process need: they grow fastest with the number of workers.

A connection to a worker of another process takes five descriptors: its own, that of the connection back, one that wakes
the thread waiting for the socket, and two for the monitor of the connection. With W workers in each of N processes,
every process has W W (N - 1) connections. ZeroMQ aborts a process that runs out of descriptors without an error, so
`reserve` counts them first and raises the limit. With rings, each connection needs three more: one for the memory that
its messages go to, one for that which they come from, since a mapping keeps its file open, and one for the bell at its
other end. Each worker needs three more for its memory and its own bell.

>>> needed(links=12, workers=4)
368
"""

from __future__ import annotations

import resource
from contextlib import suppress

from timely.errors import TransportError

A_LINK = 5
A_WORKER = 13
A_RING = 3
AN_INBOX = 3
OF_THE_PROGRAM = 256


def needed(links: int, workers: int, rings: bool = False) -> int:
    """Return the number of descriptors that a process with this many connections and workers may need."""
    return A_LINK * links + A_WORKER * workers + rings * (A_RING * links + AN_INBOX * workers) + OF_THE_PROGRAM


def reserve(links: int, workers: int, rings: bool) -> bool:
    """Raise this process's limit on descriptors to what it needs; do without rings if the system forbids it with them.

    Returns whether there are rings. Raises `TransportError` if the system forbids it without them, too.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for has_rings in (True, False) if rings else (False,):
        wanted = needed(links, workers, has_rings)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return has_rings
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return has_rings
    raise TransportError(
        f"{links} connections to workers of other processes need up to {wanted} file descriptors, but a process "
        f"may open {hard}; allow more ('ulimit -Hn', or LimitNOFILE of a service), or run fewer workers per "
        "process: the number of connections grows with its square"
    )


def reserve_for(connections: int) -> None:
    """Raise this process's limit on descriptors for this many other connections, as far as the system permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OF_THE_PROGRAM
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if resource.RLIM_INFINITY != soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
