"""Questions and answers over a network, between processes that have the same keys.

Both ends have the CURVE key pair of one directory, as the processes of a cluster do. Everything is encrypted, and the
handshake refuses a client that does not prove that it has the pair. A client asks one question at a time, so it
receives only what it has asked for, and the server needs no queue for it.

An answer may come later. A question without an answer is kept, and asked again when `ring` is called. After PATIENCE
seconds it is answered with nothing, which shows the client that the server is running.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as directory:
...     path = make_keys(directory)
...     server = AnsweringSocket("tcp://127.0.0.1:*", directory, lambda question: [question.upper()])
...     client = AskingSocket(server.address, directory)
...     print(client.ask(b"hello", 30))
...     client.close()
...     server.close()
[b'HELLO']
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread

import zmq

from timely.communication.curve import Authenticator, load_keys, make_keys
from timely.communication.doorbell import Doorbell
from timely.communication.wire import HANDSHAKE_FAILED, next_event
from timely.errors import ConfigError

__all__ = ["AnsweringSocket", "AskingSocket", "make_keys"]

QUESTION_BYTES = 4_096
"""A question of more bytes closes its connection."""
PATIENCE = 5.0
"""After this many seconds, a question without an answer is answered with nothing."""
KEPT = 1_000
"""At most this many questions are kept; any further one is answered with nothing."""
HANDSHAKE_SECONDS = 10.0
REFUSALS = 3
"""A client gives up after this many handshakes that fail without a reason, or after one that is refused."""

Answer = Sequence[bytes] | None


class AnsweringSocket:
    """Answers questions in its own thread. `answer` returns the frames of an answer, or None if there is none yet."""

    def __init__(self, address: str, directory: str, answer: Callable[[bytes], Answer]) -> None:
        """Raises ConfigError if the keys in the directory, or the address, cannot be used."""
        public, secret = load_keys(directory)
        self._answer = answer
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._authenticator = Authenticator(self._context, public)
        self._bell = Doorbell()
        self._is_closed = False
        self._waiting: dict[bytes, tuple[bytes, float]] = {}
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.linger = 0
        self._socket.maxmsgsize = QUESTION_BYTES
        self._socket.handshake_ivl = int(1000 * HANDSHAKE_SECONDS)
        self._socket.curve_server = True
        self._socket.curve_publickey, self._socket.curve_secretkey = public, secret
        try:
            port = address.rpartition(":")[2]
            if port.isdecimal() and int(port) > 65_535:  # ZeroMQ takes its remainder by 65,536
                raise ConfigError("the highest port is 65535")
            self._socket.bind(address)
        except (zmq.ZMQError, ConfigError) as error:
            self._release()
            raise ConfigError(f"nothing can be published at {address!r:.200}: {error}") from None
        self.address = str(self._socket.get_string(zmq.LAST_ENDPOINT))
        self._thread = Thread(target=self._run, name="timely answers", daemon=True)
        self._thread.start()

    def ring(self) -> None:
        """Call `answer` again for the questions that are kept. Any thread may call this."""
        self._bell.ring()

    def close(self) -> None:
        """End the thread, and close the socket. Questions that are kept are not answered."""
        if not self._is_closed:
            # In this order: the thread looks at this once after each ring.
            self._is_closed = True
            self._bell.ring()
            self._thread.join()
            self._release()

    def _release(self) -> None:
        self._socket.close(0)
        self._authenticator.close()
        self._context.term()
        self._bell.close()

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._bell, zmq.POLLIN)
        poller.register(self._socket, zmq.POLLIN)
        while not self._is_closed:
            poller.poll(int(1000 * PATIENCE) if self._waiting else None)
            # Before the questions are looked at, so that a ring from now on ends the next poll.
            self._bell.clear()
            with suppress(zmq.Again):
                while True:
                    client, *frames = self._socket.recv_multipart(zmq.NOBLOCK)
                    if len(frames) == 1 and len(self._waiting) < KEPT:
                        self._waiting[client] = frames[0], clock.monotonic() + PATIENCE
                    else:
                        self._send(client, ())
            for client, (question, end) in tuple(self._waiting.items()):
                found = self._answer(question)
                if found is not None or clock.monotonic() >= end:
                    del self._waiting[client]
                    self._send(client, found or ())

    def _send(self, client: bytes, frames: Sequence[bytes]) -> None:
        # The empty frame is there because an answer may have no frames, but a message must have one.
        with suppress(zmq.ZMQError):  # the client is gone
            self._socket.send_multipart([client, b"", *frames], zmq.NOBLOCK)


class AskingSocket:
    """Asks questions. Only one thread may use it, except for `interrupt`."""

    def __init__(self, address: str, directory: str) -> None:
        """Raises ConfigError if the keys in the directory, or the address, cannot be used."""
        self._keys = load_keys(directory)
        self._address = address
        self._refused = 0
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._bell = Doorbell()
        self._is_closed = False
        try:
            self._connect()
        except zmq.ZMQError as error:
            self._bell.close()
            self._context.destroy(0)
            raise ConfigError(f"{address!r:.200} is not an address to ask: {error}") from None

    def ask(self, question: bytes, seconds: float) -> Answer:
        """Return the frames of the answer: no frames while there is no answer, None if the server does not reply.

        Waits at most `seconds`; returns None at once if `interrupt` is called. Raises ConfigError if the server refuses
        the keys.
        """
        with suppress(zmq.Again):  # a connection whose handshake failed may have been given up: the monitor knows
            self._socket.send(question, zmq.NOBLOCK)
        end = clock.monotonic() + seconds
        poller = zmq.Poller()
        for each in (self._socket, self._monitor, self._bell):
            poller.register(each, zmq.POLLIN)
        while not self._is_closed and (left := end - clock.monotonic()) > 0:
            ready = dict(poller.poll(int(1000 * left) + 1))
            if self._socket in ready:
                self._refused = 0
                return self._socket.recv_multipart()[1:]
            if self._monitor in ready:
                event = next_event(self._monitor)
                self._refused += 1
                if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH or self._refused >= REFUSALS:
                    raise ConfigError(f"{self._address} refuses the keys, or does not use them")
        self._disconnect()  # a late answer would be mistaken for the answer to the next question
        self._connect()
        return None

    def interrupt(self) -> None:
        """Make this and every later `ask` return None at once. Any thread may call this."""
        self._is_closed = True
        self._bell.ring()

    def close(self) -> None:
        """Close the socket. No thread may ask afterwards."""
        self._disconnect()
        self._context.destroy(0)
        self._bell.close()

    def _connect(self) -> None:
        public, secret = self._keys
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.handshake_ivl = int(1000 * HANDSHAKE_SECONDS)
        self._socket.curve_serverkey = public
        self._socket.curve_publickey, self._socket.curve_secretkey = public, secret
        self._monitor = self._socket.get_monitor_socket(HANDSHAKE_FAILED)
        self._socket.connect(self._address)

    def _disconnect(self) -> None:
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close(0)
