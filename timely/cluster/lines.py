"""Lines over the connections of a rendezvous, which stay open so that their end reports that of a process.

Between the rendezvous and the first dataflow a program may read files for minutes. A process that ends in that time has
not greeted any worker, so for the workers it would merely be late. But its connection to process 0 ends. Process 0
records this as its fate, for its own workers (`timely.communication.notes`), and passes it on to the other processes.
If process 0 itself ends, all find out by their own connections.

Nothing is ever sent to process 0 then, so one thread sleeps in each process and costs nothing.

**Seals** are how processes that meet over a network recognise each other before they have the keys of their run. A
sealed text is one line. Only a holder of the same seal can make one, and `opened` refuses everything else. Two kinds:

- `Munge` asks the service by which the nodes of a Slurm cluster recognise their users. It encrypts, and decrypts for
  processes of the same user alone, so keys may be handed out under this seal.
- `KeyPairSeal` computes a code from keys that all processes already have. What is sealed can be read by anyone.

>>> public, secret = b"p" * 40, b"s" * 40
>>> seal = KeyPairSeal(public, secret)
>>> seal.opened(seal.sealed(b"process 1 is at 10.0.0.2"))
b'process 1 is at 10.0.0.2'
>>> KeyPairSeal(public, b"t" * 40).opened(seal.sealed(b"process 1 is at 10.0.0.2"))
Traceback (most recent call last):
    ...
timely.errors.TransportError: it was sealed with other keys
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import selectors
import socket
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from ipaddress import ip_address
from threading import Thread

from timely.communication.notes import declare_fate
from timely.errors import ConfigError, TransportError

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


_TAG = hashlib.sha256().digest_size
_SECONDS = 20.0
"""How long the service may take for one seal."""


class KeyPairSeal:
    """A seal by a pair of keys that all processes have."""

    keeps_secrets = False

    def __init__(self, public: bytes, secret: bytes) -> None:
        self._key = hashlib.blake2b(public + secret, digest_size=32, person=b"timely seal").digest()

    def sealed(self, text: bytes) -> bytes:
        tag = hmac.digest(self._key, text, "sha256")
        return base64.b64encode(tag + text)

    def opened(self, line: bytes) -> bytes:
        try:
            decoded = base64.b64decode(line, validate=True)
        except binascii.Error:
            raise TransportError("it is not a sealed text") from None
        tag, text = decoded[:_TAG], decoded[_TAG:]
        if not hmac.compare_digest(tag, hmac.digest(self._key, text, "sha256")):
            raise TransportError("it was sealed with other keys")
        return text


class Munge:
    """A seal by the service munged, which has to run on the machines of all processes."""

    keeps_secrets = True

    def sealed(self, text: bytes) -> bytes:
        done = _run(["munge", f"--restrict-uid={os.getuid()}"], text)
        if done.returncode != 0:
            raise ConfigError(
                f"munge cannot seal a message ({_reason(done)}); start munged on this machine, or make keys with "
                "'timely keys DIR', where all machines can read them, and pass --curve DIR"
            )
        return done.stdout.strip()

    def opened(self, line: bytes) -> bytes:
        done = _run(["unmunge", "--numeric", "--keys=UID"], line)
        if done.returncode != 0:
            raise TransportError(f"munge refuses it: {_reason(done)}")
        # The text may have an empty line of its own; the first one ends the head.
        head, _, text = done.stdout.partition(b"\n\n")
        user = head.partition(b":")[2].strip().decode()
        if user != str(os.getuid()):
            raise TransportError(f"it was sealed by user {user}, and this process belongs to user {os.getuid()}")
        return text


Seal = KeyPairSeal | Munge
"""Makes sealed lines and opens those of its kind.

`sealed` returns a line, without its end, that `opened` turns back into the text; `opened` raises `TransportError` if it
was not sealed by a process of this run. If a seal `keeps_secrets`, only those who can open a sealed text can read it.
"""


def _run(command: list[str], text: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, input=text, capture_output=True, timeout=_SECONDS)
    except FileNotFoundError:
        raise ConfigError(
            f"there is no command {command[0]!r} on this machine, by which the processes of a Slurm job recognise each "
            "other; make keys with 'timely keys DIR', where all machines can read them, and pass --curve DIR"
        ) from None
    except subprocess.TimeoutExpired:
        raise TransportError(f"{command[0]} has not answered for {_SECONDS:g} s") from None


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"status {done.returncode}"
