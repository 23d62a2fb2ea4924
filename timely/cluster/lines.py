"""Lines over the connections of a rendezvous, which stay open so that their end reports that of a process.

Between the rendezvous and the first dataflow a program may read files for minutes. A process that ends in that time has
not greeted any worker, so for the workers it would merely be late. But its connection to process 0 ends. Process 0
records this as its fate, for its own workers (`timely.communication.notes`), and passes it on to the other processes.
If process 0 itself ends, all find out by their own connections.

Nothing is ever sent to process 0 then, so one thread sleeps in each process and costs nothing.
"""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from ipaddress import ip_address
from threading import Thread

from timely.cluster.seal import KeyPairSeal
from timely.communication.notes import declare_fate
from timely.errors import TransportError

LONGEST_LINE = 1 << 17
"""A line is longer only if something else is at the other end: the addresses of 1024 processes take 50 kB."""
SEND_SECONDS = 5.0


class LineConnection:
    """A connection that carries lines.

    >>> ours, theirs = map(LineConnection, socket.socketpair())
    >>> ours.send(b"one"), ours.send(b"two"), theirs.receive(), ours.close()
    (None, None, [b'one', b'two'], None)
    >>> theirs.receive()
    Traceback (most recent call last):
        ...
    EOFError
    >>> theirs.close()
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._read = b""
        connection.settimeout(SEND_SECONDS)

    def send(self, line: bytes) -> None:
        """Send a line, which must not have an end of line in it; raise `OSError` if the other end does not take it."""
        self.connection.sendall(line + b"\n")

    def receive(self) -> list[bytes]:
        """Return the lines that have arrived, after waiting until something has or, at most, for `SEND_SECONDS`.

        Raises EOFError if the other end is closed, and TransportError if a line is too long.
        """
        try:
            data = self.connection.recv(1 << 16)
        except TimeoutError:
            return []
        except OSError:
            raise EOFError from None
        if not data:
            raise EOFError
        *complete, self._read = (self._read + data).split(b"\n")
        if len(self._read) > LONGEST_LINE:
            raise TransportError("it is longer than any line")
        return complete

    @property
    def here(self) -> str:
        """The address of this end."""
        return _plain(self.connection.getsockname()[0])

    @property
    def there(self) -> str:
        """The address of the other end."""
        return _plain(self.connection.getpeername()[0])

    def close(self) -> None:
        self.connection.close()


def _plain(host: str) -> str:
    """Return an address as people write it: that of a connection by IPv4, even if the socket permits IPv6 as well."""
    address = ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


GONE = "has ended before it met the others"


Declare = Callable[[int, str], object]
"""What is called with a process that has ended, and with the text that reports it."""


def spread(
    guests: Mapping[int, LineConnection], seal: KeyPairSeal, generation: str, declare: Declare = declare_fate
) -> None:
    """Watch the connections to all other processes from now on, in a thread, and pass on which have ended."""
    arguments = dict(guests), seal, generation, declare
    Thread(target=_spread, args=arguments, name="timely lifelines", daemon=True).start()


def _spread(guests: dict[int, LineConnection], seal: KeyPairSeal, generation: str, declare: Declare) -> None:
    with selectors.DefaultSelector() as selector:
        for process, lines in guests.items():
            selector.register(lines.connection, selectors.EVENT_READ, process)
        while guests:
            for key, _ in selector.select():
                process = key.data
                with suppress(EOFError, TransportError):
                    guests[process].receive()
                    continue
                # Before it is closed, after which it has no descriptor by which to find it.
                selector.unregister(guests[process].connection)
                guests.pop(process).close()
                declare(process, GONE)
                news = seal.sealed(json.dumps({"generation": generation, "gone": process}).encode())
                for lines in guests.values():
                    # It has most likely ended, too, which its own connection reports next.
                    with suppress(OSError):
                        lines.send(news)


def follow(lines: LineConnection, seal: KeyPairSeal, generation: str, declare: Declare = declare_fate) -> None:
    """Take in, in a thread, what process 0 passes on from now on."""
    Thread(target=_follow, args=(lines, seal, generation, declare), name="timely lifeline", daemon=True).start()


def _follow(lines: LineConnection, seal: KeyPairSeal, generation: str, declare: Declare) -> None:
    with suppress(EOFError, TransportError, ValueError, KeyError):
        while True:
            for line in lines.receive():
                news = json.loads(seal.opened(line))
                if news["generation"] == generation:
                    declare(news["gone"], GONE)
    lines.close()
    declare(0, GONE)
