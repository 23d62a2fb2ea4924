"""The key pair by which the processes of a cluster recognise each other over a network.

All of them share one CURVE key pair, in a file that only its owner can read. A client without the public key cannot
begin the handshake, whose first message is encrypted to that key. A client without the secret key is refused at the end
of the handshake: a CURVE server admits every client that knows its public key, unless the process answers ZeroMQ's
request about the client's own key (RFC 27, ZAP). By then the client has proved that it has the secret half of its key.
All processes of a cluster share one pair, so a client with any other public key is not a member (`Authenticator`).
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import zmq
from zmq.utils import z85

from timely.communication.doorbell import Doorbell
from timely.errors import ConfigError

KEY_FILE = "cluster.key"
_KEY_CHARACTERS = 40
ENDPOINT = "inproc://zeromq.zap.01"
"""The address to which ZeroMQ sends its requests, in each context."""

_VERSION = b"1.0"
_CREDENTIALS = 6
"""The number of frames of a request before the credentials, which for CURVE are the client's public key."""


def make_keys(directory: str) -> Path:
    """Write a new key pair into `directory`, creating it if necessary; return the file. Never overwrites a file."""
    return write_keys(directory, *new_keys())


def new_keys() -> tuple[bytes, bytes]:
    """Return a new key pair: the public key, and the secret one."""
    return zmq.curve_keypair()


def write_keys(directory: str, public: bytes, secret: bytes) -> Path:
    """Write a key pair into `directory`, creating it if necessary; return the file. Never overwrites a file."""
    if not directory:
        raise ConfigError("the directory for the keys has an empty name; '.' is the current directory")
    path = Path(directory) / KEY_FILE
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if not path.parent.is_dir():
            raise ConfigError(f"cannot write {path}: {path.parent} is not a directory") from None
        raise ConfigError(f"{path} exists; remove it first if no cluster uses it") from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(public + b"\n" + secret + b"\n")
    return path


def load_keys(directory: str) -> tuple[bytes, bytes]:
    """Return the (public, secret) keys in `directory`; raise `ConfigError` if they are missing, damaged or exposed.

    The directory of credentials that systemd makes for a service is private, whatever the modes of files in it. They
    show the access list by which systemd lets the service's user read them.
    """
    path = Path(directory) / KEY_FILE
    try:
        mode = path.stat().st_mode
        halves = path.read_bytes().split()
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}; make it with 'timely keys {directory}' and copy it to all machines"
        ) from None
    if mode & 0o077 and directory != os.environ.get("CREDENTIALS_DIRECTORY"):
        raise ConfigError(f"{path} can be read by others; run 'chmod 600 {path}' or, better, make new keys")
    if len(halves) != 2 or any(len(half) != _KEY_CHARACTERS for half in halves):
        raise ConfigError(f"{path} does not hold two keys of {_KEY_CHARACTERS} characters")
    public, secret = halves
    try:
        are_pair = zmq.curve_public(secret) == public
    except zmq.ZMQError:
        are_pair = False  # not a key at all
    if not are_pair:
        raise ConfigError(f"{path} is damaged: its keys are not a pair; remove it and make new keys for all machines")
    return public, secret


class Authenticator:
    """Answers for the servers of a context from its creation until it is closed.

    Its thread answers requests while processes meet, and sleeps afterwards.

    >>> with zmq.Context() as context:
    ...     Authenticator(context, zmq.curve_keypair()[0]).close()
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], public: bytes) -> None:
        self._member = z85.decode(public)
        self._ended = Doorbell()
        self._socket = context.socket(zmq.REP)
        self._socket.bind(ENDPOINT)
        self._thread = Thread(target=self._run, name="timely authenticator", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering. Must be called before the context is terminated."""
        self._ended.ring()
        self._thread.join()
        self._ended.close()
        self._socket.close(0)

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._ended, zmq.POLLIN)
        poller.register(self._socket, zmq.POLLIN)
        while not any(end == self._ended.fileno() for end, _ in poller.poll()):
            self._socket.send_multipart(self._answer(self._socket.recv_multipart()))

    def _answer(self, request: list[bytes]) -> list[bytes]:
        is_member = request[_CREDENTIALS:] == [self._member]
        status, text = (b"200", b"OK") if is_member else (b"400", b"not a member of this cluster")
        return [_VERSION, request[1], status, text, b"", b""]
