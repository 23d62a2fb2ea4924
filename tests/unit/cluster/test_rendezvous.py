"""Processes learn where all are, whoever else connects; who does not come, or ends, is named."""

from __future__ import annotations

import json
import os
import resource
import socket
import time as clock
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from typing import Any

import pytest
import zmq

from tests.unit.communication.networks import free_ports, together
from timely.cluster.lines import GONE, KeyPairSeal, LineConnection
from timely.cluster.place import ProcessPlace
from timely.cluster.rendezvous import Head, Member, placed_at
from timely.config import Config
from timely.errors import ConfigError, PeerFailed, TransportError

KEYS = zmq.curve_keypair()
Fates = SimpleQueue[tuple[int, str]]


class Meeting:
    """A rendezvous of threads of this process. What `places` yields may be changed before it is used."""

    def __init__(self, processes: int, seconds: float = 20.0, returns: bool = False) -> None:
        self.config = Config(rendezvous_seconds=seconds)
        self.run = os.urandom(4).hex()
        ports = tuple(free_ports(2))
        self.places = [
            ProcessPlace(each, processes, "127.0.0.1", self.run, ports, returns) for each in range(processes)
        ]
        self.found: dict[int, tuple[Any, ...]] = {}
        self.fates: list[Fates] = [SimpleQueue() for _ in range(processes)]

    def attend(self, process: int, keys: tuple[bytes, bytes] = KEYS, workers: int = 1) -> None:
        place, config = self.places[process], Config(workers=workers, rendezvous_seconds=self.config.rendezvous_seconds)
        deadline = clock.monotonic() + config.rendezvous_seconds

        def declare(*fate: Any) -> None:
            self.fates[process].put(fate)

        if process == 0:
            self.found[0] = Head(place, config, KeyPairSeal(*keys), keys, declare).host(deadline)
        else:
            self.found[process] = Member(place, config, KeyPairSeal(*keys), keys, declare).attend(deadline)[:2]

    def connect(self) -> LineConnection:
        """Return a connection to process 0, as soon as that listens."""
        end = clock.monotonic() + 10
        while True:
            try:
                return LineConnection(socket.create_connection(("127.0.0.1", self.places[0].ports[0]), 5))
            except OSError:
                assert clock.monotonic() < end, "process 0 does not listen after 10 s"
                clock.sleep(0.01)

    def introduction(self, process: int, lines: LineConnection, **changes: Any) -> bytes:
        """Return how a process introduces itself on a connection, without the seal."""
        _, run, challenge = lines.receive()[0].decode().split(" ")
        introduction = {
            "run": run,
            "challenge": challenge,
            "nonce": "0",
            "process": process,
            "workers": 1,
            "port": 2000,
        }
        introduction |= {"processes": len(self.places), "machine": "m", "here": "127.0.0.1", "head": "127.0.0.1"}
        return json.dumps(introduction | changes).encode()


@pytest.mark.parametrize("processes", [2, 5])
def test_all_learn_the_same_addresses_and_the_same_generation(processes: int) -> None:
    meeting = Meeting(processes)
    errors = together([lambda each=each: meeting.attend(each) for each in reversed(range(processes))])
    assert errors == [None] * processes
    (addresses, generation), *others = (meeting.found[each] for each in range(processes))
    assert others == [(addresses, generation)] * (processes - 1)
    assert len(set(addresses)) == processes
    assert len(generation) == 16


def test_strangers_are_counted_and_do_not_keep_processes_apart() -> None:
    meeting = Meeting(2)

    def disturb() -> None:
        for line in (b"", b"GET / HTTP/1.1", os.urandom(50).replace(b"\n", b""), b"x" * (1 << 18)):
            lines = meeting.connect()
            with suppress(OSError, EOFError):  # process 0 closes the connection, perhaps before all was sent
                lines.send(line)
                for _ in range(20):
                    lines.receive()
            lines.close()
        silent.append(meeting.connect())
        meeting.attend(1)

    silent: list[LineConnection] = []
    assert together([lambda: meeting.attend(0), disturb]) == [None, None]
    assert meeting.found[0] == meeting.found[1]
    silent[0].close()


def test_process_0_waits_on_when_strangers_have_taken_all_descriptors() -> None:
    meeting = Meeting(2)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    def take_all() -> None:
        with ExitStack() as taken:
            taken.callback(meeting.connect().close)
            stranger = taken.enter_context(socket.socket())
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
            with suppress(OSError):
                while True:
                    taken.callback(os.close, os.dup(0))
            stranger.connect(("127.0.0.1", meeting.places[0].ports[0]))
            clock.sleep(0.5)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        meeting.attend(1)

    try:
        assert together([lambda: meeting.attend(0), take_all]) == [None, None]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert meeting.found[0] == meeting.found[1]


def test_a_process_with_other_keys_is_refused_and_the_one_that_waits_says_so() -> None:
    meeting = Meeting(2, seconds=1.0)
    first, second = together([lambda: meeting.attend(0), lambda: meeting.attend(1, zmq.curve_keypair())])
    assert isinstance(first, TransportError)
    assert "process 0 waited 1 s for process 1, which did not connect; 1 connections were refused" in str(first)
    assert "sealed with other keys" in str(first)
    assert isinstance(second, TransportError)


def test_an_introduction_that_was_recorded_is_refused() -> None:
    """The line of a former connection answers another challenge."""
    meeting = Meeting(3, seconds=1.5)

    def replay() -> None:
        former = meeting.connect()
        line = KeyPairSeal(*KEYS).sealed(meeting.introduction(2, former, challenge="of another connection"))
        former.send(line)
        with pytest.raises(EOFError):
            former.receive()
        former.close()

    first, _, third = together([lambda: meeting.attend(0), lambda: meeting.attend(1), replay])
    assert third is None
    assert "for process 2, which did not connect" in str(first)
    assert "its answer is to another process's challenge" in str(first)


def test_processes_with_different_numbers_are_named_at_both_ends() -> None:
    meeting = Meeting(2)
    first, second = together([lambda: meeting.attend(0), lambda: meeting.attend(1, workers=2)])
    text = "process 1 was started for 2 processes of 2 workers, process 0 for 2 of 1"
    assert isinstance(first, TransportError)
    assert isinstance(second, PeerFailed)
    assert text in str(first)
    assert text in str(second)


def test_a_process_that_ends_while_others_wait_is_named_by_all_at_once() -> None:
    meeting = Meeting(4)  # the fourth does not come

    def come_and_go() -> None:
        lines = meeting.connect()
        lines.send(KeyPairSeal(*KEYS).sealed(meeting.introduction(2, lines)))
        clock.sleep(0.3)
        lines.close()

    begun = clock.monotonic()
    first, second, _ = together([lambda: meeting.attend(0), lambda: meeting.attend(1), come_and_go])
    assert clock.monotonic() < begun + 10
    assert "process 2 on m has ended before all processes were connected" in str(first)
    assert "process 2 on m has ended" in str(second)


def test_a_process_that_the_system_starts_again_is_awaited() -> None:
    meeting = Meeting(3, returns=True)

    def come_and_return() -> None:
        lines = meeting.connect()
        lines.send(KeyPairSeal(*KEYS).sealed(meeting.introduction(2, lines)))
        clock.sleep(0.1)
        lines.close()
        meeting.attend(2)

    def come_late() -> None:
        clock.sleep(0.6)
        meeting.attend(1)

    assert together([lambda: meeting.attend(0), come_and_return, come_late]) == [None] * 3
    assert meeting.found[0] == meeting.found[1] == meeting.found[2]


def test_the_end_of_a_process_is_passed_on_to_all_others() -> None:
    meeting = Meeting(3)

    def come_and_end() -> None:
        lines = meeting.connect()
        lines.send(KeyPairSeal(*KEYS).sealed(meeting.introduction(2, lines)))
        while not lines.receive():
            pass
        lines.close()

    assert together([lambda: meeting.attend(0), lambda: meeting.attend(1), come_and_end]) == [None] * 3
    assert meeting.fates[0].get(timeout=10) == (2, GONE)
    assert meeting.fates[1].get(timeout=10) == (2, GONE)


def test_who_finds_nobody_names_process_0(capsys: pytest.CaptureFixture[str]) -> None:
    meeting = Meeting(2, seconds=0.3)
    with pytest.raises(
        TransportError, match=r"process 1 waited 0\.3 s for process 0 on 127\.0\.0\.1: Connection refused"
    ):
        meeting.attend(1)


def test_another_run_at_the_port_is_passed_by() -> None:
    """Process 0 finds its first port taken and listens at the second; the other process looks at both."""
    meeting = Meeting(2)
    with socket.create_server(("127.0.0.1", meeting.places[0].ports[0])) as other:

        def greet() -> None:
            connection, _ = other.accept()
            connection.sendall(b"timely 17.0 0123\n")
            connection.close()

        assert together([lambda: meeting.attend(0), lambda: meeting.attend(1), greet]) == [None] * 3
    assert meeting.found[0] == meeting.found[1]


@pytest.mark.parametrize("processes", [1, 3])
def test_a_process_beyond_those_of_its_run_is_refused_at_once(processes: int) -> None:
    place = ProcessPlace(3, processes, "127.0.0.1", "run", (free_ports(1)[0],))
    with (
        pytest.raises(ConfigError, match=f"process 3 of {processes}.*start all of them again"),
        placed_at(place, Config()),
    ):
        pass
