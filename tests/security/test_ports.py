"""An attacker that reaches the ports of a running cluster: with the keys, with some of them, or without keys."""

from __future__ import annotations

import errno
import os
import resource
import socket
import subprocess
import sys
import time as clock
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
import zmq
from zmq.utils import z85

from tests.unit.communication.networks import collect, connected, tcp_configs, until
from timely.capture.codec import PREFIX, encode
from timely.capture.event import Messages
from timely.capture.socket import EventSocketReader, EventSocketWriter
from timely.communication.allocator import Allocator
from timely.communication.codec import Hello, MessageEncoder, decode
from timely.communication.curve import load_keys, make_keys
from timely.communication.message import Data, Failure, ProgressUpdate
from timely.communication.sockets import socket_allocators
from timely.config import Config
from timely.errors import CaptureError, PeerFailed, PeerLost, TransportError

CHANGE = ProgressUpdate(0, ((0, (0,), 1),))
ROW = "a row that is nobody else's business"
GENERATION = "generation-of-this-run"
_GREETING = b"\xff" + bytes(8) + b"\x7f"
_READY = b"\x05READY"


@pytest.fixture
def keys(tmp_path: Path) -> str:
    make_keys(str(tmp_path))
    return str(tmp_path)


def message_of(generation: str) -> bytes:
    """Return a message that ends a run if it is accepted: that worker 1 has failed."""
    return bytes(MessageEncoder(1, generation).encode(Failure(1, "out of malice"), 0)[0])


def in_version_1(message: bytes) -> list[bytes]:
    return [b"\x01\x00" + bytes((len(message) + 1, 0)) + message]


def in_version_2(message: bytes) -> list[bytes]:
    return [_GREETING + b"\x01\x08", bytes(2) + bytes((0, len(message))) + message]


def in_version_3(mechanism: bytes) -> Callable[[bytes], list[bytes]]:
    """Return a way to send a message after a greeting that names a mechanism, as if that one were none."""
    ready = _READY + b"\x0bSocket-Type" + (4).to_bytes(4, "big") + b"PUSH"
    greeting = _GREETING + b"\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)
    return lambda message: [greeting, bytes((4, len(ready))) + ready, bytes((0, len(message))) + message]


PROTOCOLS = {
    "version 1": in_version_1,
    "version 2": in_version_2,
    "no mechanism": in_version_3(b"NULL"),
    "passwords": in_version_3(b"PLAIN"),
    "keys in name": in_version_3(b"CURVE"),
}


def port_of(config: Config) -> tuple[str, int]:
    return "127.0.0.1", int(config.endpoint(0).rpartition(":")[2])


@contextmanager
def sent(config: Config, pieces: Sequence[bytes]) -> Iterator[socket.socket]:
    """Send pieces to worker 0, each once the other side has answered the last one, or has not for a while.

    What follows the command READY waits for that of the other side, which otherwise takes it for part of the handshake.
    Yield the connection. If it were closed while an answer is under way, the system would drop what was sent.
    """
    with socket.create_connection(port_of(config), timeout=0.5) as stranger:
        with suppress(OSError):
            answers = b""
            for piece in pieces:
                stranger.sendall(piece)
                with suppress(TimeoutError):
                    answers += stranger.recv(4096)
                stranger.settimeout(10 if _READY in piece else 0.5)
                while _READY in piece and _READY not in answers and (answer := stranger.recv(4096)):
                    answers += answer
        stranger.settimeout(0.5)
        yield stranger


def send(config: Config, pieces: Sequence[bytes]) -> None:
    """Send pieces to worker 0, and read what it answers until there is nothing more for a while."""
    with sent(config, pieces) as stranger, suppress(OSError):
        while stranger.recv(4096):
            pass


def still_talk(first: Allocator, second: Allocator) -> None:
    """Assert that two workers are undisturbed: each receives exactly what the other sends."""
    second.send(0, CHANGE)
    first.send(1, CHANGE)
    assert collect(first, 1) == [(1, CHANGE)]
    assert collect(second, 1) == [(0, CHANGE)]


def listen(allocator: Allocator, seconds: float) -> None:
    """Receive nothing for a while; any message is an error."""
    end = clock.monotonic() + seconds
    while clock.monotonic() < end:
        assert allocator.receive() == []
        allocator.park(0.05)


# With keys


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_older_protocol_and_no_other_mechanism_gets_past_the_keys(protocol: str, keys: str) -> None:
    settings = tcp_configs(curve_dir=keys)
    with connected(settings) as (first, second):
        send(settings[0], PROTOCOLS[protocol](message_of("test")))
        listen(first, 0.3)
        still_talk(first, second)


@pytest.mark.parametrize("protocol", ["version 1", "version 2", "no mechanism"])
def test_without_keys_a_peer_that_knows_the_generation_can_take_part(protocol: str) -> None:
    settings = tcp_configs()
    pieces = PROTOCOLS[protocol](message_of("test"))
    failed = pytest.raises(PeerFailed, match="out of malice")
    with connected(settings) as (first, _), sent(settings[0], pieces), failed:
        listen(first, 30)


@pytest.mark.parametrize("has_secret", [False, True])
def test_the_public_key_without_the_secret_one_lets_nobody_in(has_secret: bool, keys: str) -> None:
    settings = tcp_configs(curve_dir=keys)
    public, secret = load_keys(keys)
    with connected(settings) as (first, second), zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.linger = 0
        push.curve_publickey, push.curve_secretkey = (public, secret) if has_secret else zmq.curve_keypair()
        push.curve_serverkey = public
        push.connect(settings[0].endpoint(0))
        with suppress(zmq.Again):  # the connection was refused before
            push.send(message_of("test"), zmq.NOBLOCK)
        if has_secret:
            with pytest.raises(PeerFailed, match="out of malice"):
                listen(first, 30)
        else:
            until(lambda: first.refused > 0, [first, second])
            listen(first, 0.3)
            still_talk(first, second)


class Between:
    """Stands between worker 1 and worker 0: passes all bytes on, and keeps them."""

    def __init__(self, config: Config) -> None:
        self.seen = bytearray()
        self.sent = bytearray()
        """What worker 1 has sent."""
        self.spoils = False
        self._target = port_of(config)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.endpoint = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepting = Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join(10)
        assert not self._accepting.is_alive(), "the listener goes on accepting though it was shut down"
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                self._sockets.append(client)
                server = socket.create_connection(self._target)
                self._sockets.append(server)
                Thread(target=self._pass_on, args=(client, server, True), daemon=True).start()
                Thread(target=self._pass_on, args=(server, client, False), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_sent: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self.seen += data
                if is_sent:
                    self.sent += data
                if is_sent and self.spoils:
                    data = data[:-1] + bytes((data[-1] ^ 1,))
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def between(curve_dir: str | None) -> Iterator[tuple[Allocator, Allocator, Between, Config]]:
    """Yield two workers, and the attacker between them."""
    config, other = tcp_configs(curve_dir=curve_dir, generation=GENERATION)
    middle = Between(config)
    try:
        with connected([config, replace(other, addresses=(middle.endpoint, other.addresses[1]))]) as (first, second):
            yield first, second, middle, config
    finally:
        middle.close()


@pytest.mark.parametrize("protected", [True, False])
def test_an_eavesdropper_sees_neither_rows_nor_keys_nor_the_generation(protected: bool, keys: str) -> None:
    with between(keys if protected else None) as (first, second, middle, _):
        second.send(0, Data(0, 0, (0,), [ROW]))
        assert collect(first, 1) == [(1, Data(0, 0, (0,), [ROW]))]
        seen = bytes(middle.seen)
    assert (ROW.encode() in seen) is not protected
    assert (GENERATION.encode() in seen) is not protected
    for key in load_keys(keys):
        assert key not in seen
        assert z85.decode(key) not in seen


def test_a_recorded_connection_cannot_be_replayed(keys: str) -> None:
    with between(keys) as (first, second, middle, config):
        still_talk(first, second)
        recorded = bytes(middle.sent)
        assert len(recorded) > 200
        send(config, [recorded])
        send(config, [recorded[:64], recorded[64:]])
        listen(first, 0.3)
        still_talk(first, second)


@pytest.mark.lengthy
def test_a_byte_changed_in_transit_ends_the_run_and_is_not_accepted(keys: str) -> None:
    with between(keys) as (first, second, middle, _):
        middle.spoils = True
        second.send(0, CHANGE)
        with pytest.raises(PeerLost, match="is gone without a farewell"):
            listen(second, 30)
        assert first.receive() == []


# With keys or without


ATTACK = """
import socket, sys
held = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[2]))]
print(len(held), flush=True)
sys.stdin.read()
"""


def is_full() -> bool:
    """Return whether this process can open no more files."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno == errno.EMFILE
    return False


@pytest.mark.lengthy
@pytest.mark.parametrize("protected", [True, False])
def test_peers_still_communicate_when_connections_fill_the_table_of_descriptors(protected: bool, keys: str) -> None:
    settings = tcp_configs(curve_dir=keys if protected else None)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = 20
    with connected(settings) as (first, second):
        highest = room + max(map(int, os.listdir("/proc/self/fd")))
        attack = [sys.executable, "-c", ATTACK, str(port_of(settings[0])[1]), str(highest)]
        with subprocess.Popen(attack, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest, limits[1]))
            try:
                until(is_full, [first, second])
                for _ in range(100):
                    still_talk(first, second)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
                stranger.kill()
        still_talk(first, second)


@pytest.mark.parametrize("protected", [True, False])
def test_connections_that_never_finish_a_greeting_do_not_block_the_others(protected: bool, keys: str) -> None:
    settings = tcp_configs(curve_dir=keys if protected else None)
    with connected(settings) as (first, second):
        strangers = [socket.create_connection(port_of(settings[0])) for _ in range(100)]
        try:
            for place, byte in enumerate(_GREETING):
                for stranger in strangers[place::10]:
                    stranger.sendall(bytes((byte,)))
                still_talk(first, second)
        finally:
            for stranger in strangers:
                stranger.close()


# Without keys


def test_a_flood_of_hellos_of_another_run_is_refused_and_counted() -> None:
    settings = tcp_configs()
    count = 5000
    with connected(settings) as (first, second), zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.linger = 0
        push.sndhwm = 0
        push.connect(settings[0].endpoint(0))
        for sender in range(count):
            hello = Hello(2, 1, 1, False, sender, "process")
            push.send(MessageEncoder(sender % 3, f"guess {sender}").encode(hello, 0)[0])
        until(lambda: first.refused == count, [first, second])
        still_talk(first, second)


def test_frames_of_a_stranger_take_memory_until_the_worker_reads_them() -> None:
    settings = tcp_configs(queue_bytes=1 << 16)
    frame, count = bytes(1 << 20), 64
    with connected(settings) as (first, second), zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.linger = 0
        push.sndhwm = 1
        push.sndtimeo = 30_000
        push.connect(settings[0].endpoint(0))
        for _ in range(count):  # more than the system's buffers hold: the process takes them in
            push.send(frame)
        still_talk(first, second)
        until(lambda: first.refused >= count - 1, [first, second])


def test_a_listener_in_place_of_a_peer_learns_the_generation() -> None:
    config = tcp_configs(generation=GENERATION, rendezvous_seconds=1.0)[0]
    with zmq.Context() as context, context.socket(zmq.PULL) as squatter:
        squatter.linger = 0
        squatter.bind(config.endpoint(1))
        (allocator,) = socket_allocators(config)
        try:
            with pytest.raises(TransportError, match="does not answer"):
                allocator.connect()
            assert squatter.poll(30_000), "worker 0 has sent no hello within 30 s"
            assert decode([squatter.recv()]).generation == GENERATION
        finally:
            allocator.close()


# Sockets of captured events


def test_the_first_to_connect_is_the_writer_and_others_are_refused() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    address = reader.listen()
    with socket.create_connection(address) as stranger:
        end = clock.monotonic() + 30
        while reader._socket is None:
            assert reader.next_nowait() is None
            assert clock.monotonic() < end, "nobody was let in within 30 s"
        with pytest.raises(TransportError, match="nobody listens"):
            EventSocketWriter(address, timeout=0.2)
        stranger.sendall(b"\x80\x04\x95")  # as a pickle begins
        with pytest.raises(CaptureError, match="not a stream of captured events"):
            read(reader, end)
    reader.close()


def read(reader: EventSocketReader, end: float) -> None:
    """Read until there is an error."""
    while clock.monotonic() < end:
        assert reader.next_nowait() is None


def test_a_writer_that_sends_a_byte_at_a_time_and_stops_blocks_nobody() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    with socket.create_connection(reader.listen()) as stranger:
        for byte in PREFIX + b"".join(map(bytes, encode(Messages((0,), [ROW]))))[:-1]:
            stranger.sendall(bytes((byte,)))
            assert reader.next_nowait() is None
        assert not reader.exhausted
    reader.close()
