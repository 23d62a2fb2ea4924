"""File descriptors for the connections of a process, which grow faster than anything else with the number of workers.

A connection to a worker of another process takes five: its own, the one that comes back, one to wake whoever waits for
the socket, and two of what watches it. W workers of N processes make W W (N - 1) connections a process. ZeroMQ ends a
process that runs out of descriptors without a word, so they are counted first, and the system is asked for as many.

>>> needed(links=12, workers=4)
368
"""

from __future__ import annotations

import resource

from timely.errors import TransportError

A_LINK = 5
A_WORKER = 13
OF_THE_PROGRAM = 256


def needed(links: int, workers: int) -> int:
    """Return how many descriptors a process may need whose workers have so many connections in all."""
    return A_LINK * links + A_WORKER * workers + OF_THE_PROGRAM


def reserve(links: int, workers: int) -> None:
    """Raise this process's bound on descriptors to what it needs; `TransportError` where the system forbids it."""
    wanted = needed(links, workers)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):
        raise TransportError(
            f"{links} connections to workers of other processes need up to {wanted} file descriptors, but a process "
            f"may open {hard}; allow more ('ulimit -Hn', or LimitNOFILE of a service), or run fewer workers a process: "
            "connections grow with the square of that"
        ) from None
