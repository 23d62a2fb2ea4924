"""Admitting only clients that have the secret key of the cluster.

A CURVE server admits every client that knows its public key, unless the process answers ZeroMQ's request about the
client's own key (RFC 27, ZAP). By then the client has proved that it has the secret half of its key. All processes of a
cluster share one pair, so a client with any other public key is not a member.

One thread per process answers these requests while processes meet, and sleeps afterwards.
"""

from __future__ import annotations

from threading import Thread

import zmq
from zmq.utils import z85

from timely.communication.doorbell import Doorbell

ENDPOINT = "inproc://zeromq.zap.01"
"""The address to which ZeroMQ sends its requests, in each context."""

_VERSION = b"1.0"
_CREDENTIALS = 6
"""The number of frames of a request before the credentials, which for CURVE are the client's public key."""


class Authenticator:
    """Answers for the servers of a context from its creation until it is closed.

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
