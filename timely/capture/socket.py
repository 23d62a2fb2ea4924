"""Captured events over a TCP connection to another program.

The reader listens; the writer connects, and retries until the reader is there, so the programs may start in any order.
Only loopback addresses are accepted: the connection is neither encrypted nor authenticated.

A writer's `flush` returns when the system has accepted all bytes. A slow reader makes it wait, and after `timeout`
seconds it raises `TransportError`. A connection that ends in the middle of an event is an error.
"""

from __future__ import annotations

import time as clock
from typing import TYPE_CHECKING

from timely.capture.codec import FRAME, PREFIX, body_length, check, decode, encode
from timely.capture.event import Event
from timely.config import bracketed, is_loopback
from timely.errors import BuildError, CaptureError, TransportError

if TYPE_CHECKING:
    import socket

Address = tuple[str, int]
READ_BYTES = 1 << 20


class EventSocketWriter:
    """A sink that sends events to a reader at `address`; it tries to connect for `timeout` seconds.

    >>> reader = EventSocketReader(("127.0.0.1", 0))
    >>> writer = EventSocketWriter(reader.listen())
    >>> _ = example(lambda scope: scope.to_stream(range(3)).capture_into(writer))
    >>> example(lambda scope: replay_into(scope, [reader]))
    [0, 1, 2]

    A program can also write events itself:

    >>> from timely.capture.event import Messages, Progress
    >>> reader = EventSocketReader(("127.0.0.1", 0))
    >>> writer = EventSocketWriter(reader.listen())
    >>> for event in (Messages((0,), [1, 2]), Progress((((0,), -1),))):
    ...     writer.push(event)
    >>> writer.flush()  # the reader may see it from here on
    >>> writer.close()
    >>> example(lambda scope: replay_into(scope, [reader]))
    [1, 2]
    """

    def __init__(self, address: Address, *, timeout: float = 30.0) -> None:
        self.address = _checked(address)
        if not self.address[1]:
            raise BuildError("a writer needs a port, such as that which `EventSocketReader.listen()` returns, not 0")
        self._pieces: list[bytes | memoryview] = [PREFIX]
        self._socket: socket.socket | None = _connected(self.address, timeout)
        self._socket.settimeout(timeout)
        self._broken = ""

    def push(self, event: Event) -> None:
        """Buffer an event until the next `flush`. Raises CaptureError once this was closed."""
        if self._socket is None and not self._broken:
            raise CaptureError(
                f"the connection to {_shown(self.address)} was closed: give each capture a sink of its own"
            )
        self._pieces += encode(event)

    def flush(self) -> None:
        """Send all events. Raises TransportError if the connection has broken, then and at every later flush."""
        if self._broken:
            raise TransportError(self._broken)
        pieces, self._pieces = self._pieces, []  # not kept where sending fails: a part of them may have left
        if self._socket is None or not pieces:
            return
        try:
            self._socket.sendall(b"".join(pieces))
        except OSError as error:
            self._socket.close()
            self._socket = None
            self._broken = f"events cannot be sent to {_shown(self.address)}: {error}"
            raise TransportError(self._broken) from error

    def close(self) -> None:
        """Flush, and end the connection."""
        if not self._broken:  # otherwise `flush` has raised the error already
            self.flush()
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class EventSocketReader:
    """A source that listens at `address` for one writer, from the call of `listen` or the first read.

    >>> reader = EventSocketReader(("127.0.0.1", 0))
    >>> writer = EventSocketWriter(reader.listen())
    >>> from timely.capture.event import Messages
    >>> writer.push(Messages((0,), [1, 2]))
    >>> writer.flush()
    >>> writer.close()
    >>> while not reader.exhausted:
    ...     event = reader.next_nowait()  # None while nothing is there yet
    ...     if event is not None:
    ...         print(event)
    Messages((0,), [1, 2])
    >>> reader.close()
    """

    def __init__(self, address: Address) -> None:
        self.address = _checked(address)
        self.exhausted = False
        self._listener: socket.socket | None = None
        self._socket: socket.socket | None = None
        self._received = bytearray()
        self._started = False
        self.offset = 0
        """The number of bytes that have been decoded."""

    def __str__(self) -> str:
        return f"the connection at {_shown(self.address)}"

    def listen(self) -> Address:
        """Listen, and return the address; port 0 becomes a free port. Raises TransportError if it cannot listen."""
        if self._listener is None:
            import socket  # here, because it takes milliseconds, and most programs capture nothing into sockets

            family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
            try:
                self._listener = socket.create_server(self.address, family=family)
            except OSError as error:
                raise TransportError(f"cannot listen at {_shown(self.address)}: {error}") from error
            self._listener.setblocking(False)
            self.address = self._listener.getsockname()[:2]
        return self.address

    def next_nowait(self) -> Event | None:
        """Return the next event, or None if none is available now."""
        if self.exhausted:
            return None
        self.listen()
        event = self._decoded()
        while event is None and self._receive():
            event = self._decoded()
        return event

    def close(self) -> None:
        """End the connection and stop reading."""
        self.exhausted = True
        for each in (self._socket, self._listener):
            if each is not None:
                each.close()

    def _receive(self) -> bool:
        """Read more bytes; return whether any have arrived."""
        try:
            if self._socket is None:
                assert self._listener is not None
                self._socket = self._listener.accept()[0]
                self._socket.setblocking(False)
                self._listener.close()  # so the system refuses a second writer; kept, so that `listen` opens no other
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return False
        except OSError as error:
            raise TransportError(f"{self} broke after {self.offset} bytes: {error}") from error
        if not data:
            if self._received or not self._started:
                raise CaptureError(f"{self} ended in the middle of an event, after {self.offset} bytes")
            self.close()
        self._received += data
        return bool(data)

    def _decoded(self) -> Event | None:
        received = self._received
        try:
            if not self._started:
                if not PREFIX.startswith(received[: len(PREFIX)]):
                    raise CaptureError("not a stream of captured events")
                if len(received) < len(PREFIX):
                    return None
                self._started = True
                self._consume(len(PREFIX))
            if len(received) < FRAME.size:
                return None
            frame = bytes(received[: FRAME.size])
            length = body_length(frame)
            if len(received) < FRAME.size + length:
                return None
            body = received[FRAME.size : FRAME.size + length]
            check(frame, body)
            event = decode(body)
            self._consume(FRAME.size + length)
            return event
        except CaptureError as error:
            raise CaptureError(f"{self}, byte {self.offset}: {error}") from error

    def _consume(self, length: int) -> None:
        del self._received[:length]
        self.offset += length


def _connected(address: Address, timeout: float) -> socket.socket:
    from timely.communication.endpoint import connected  # here for the same reason as the module that it imports

    deadline = clock.monotonic() + timeout
    while True:
        try:
            return connected(*address, max(0.1, deadline - clock.monotonic()))
        except OSError as error:
            if clock.monotonic() >= deadline:
                raise TransportError(f"nobody listens for events at {_shown(address)}: {error}") from error
            clock.sleep(0.05)


def _checked(address: object) -> Address:
    """Return an address of this machine; raise BuildError unless it is one, TransportError if of another machine."""
    match address:
        case (str(host), int(port)) if 0 <= port < 1 << 16:
            pass
        case _:
            raise BuildError(f"an address is (host, port), a text and an integer up to 65535, not {address!r}")
    if not is_loopback(host):
        raise TransportError(
            f"captured events are sent unprotected, so only between programs on one machine: {host} is not a loopback "
            "address; use 127.0.0.1 and a tunnel"
        )
    return host, port


def _shown(address: Address) -> str:
    host, port = address
    return f"{bracketed(host)}:{port}"
