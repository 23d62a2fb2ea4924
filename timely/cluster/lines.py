"""Lines over a connection, for two processes that exchange only a few."""

from __future__ import annotations

import socket
from ipaddress import ip_address

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
