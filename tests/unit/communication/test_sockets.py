"""Sockets between processes: how peers meet, which messages are refused, and what happens when a peer is lost."""

from __future__ import annotations

import itertools
import os
import random
import socket
import subprocess
import sys
import time as clock
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread, Timer
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import numpy as np
import pytest
import zmq

from tests.unit.communication.networks import (
    collect,
    configs,
    connected,
    free_ports,
    ipc_configs,
    tcp_configs,
    together,
    until,
)
from timely.communication import sockets, traffic
from timely.communication.allocator import Allocator, broadcast
from timely.communication.codec import MAX_FRAMES, Ack, Hello, MessageEncoder, decode
from timely.communication.curve import make_keys
from timely.communication.doorbell import Doorbell
from timely.communication.ends import SharedContext, bind_pull, connect_push
from timely.communication.link import Link
from timely.communication.meeting import ACCEPTED_OF_TIMEOUT, SILENCE_SECONDS
from timely.communication.message import Data, Failure, Goodbye, ProgressUpdate, Shape
from timely.communication.notes import REPORT_VARIABLE, Notes
from timely.communication.sockets import SocketAllocator, socket_allocators
from timely.communication.thread import Mailbox
from timely.communication.watch import GRACE_SECONDS
from timely.communication.wire import aligned
from timely.config import Config
from timely.data.container import Columns
from timely.errors import ConfigError, DataError, PeerFailed, PeerLost, TransportError

CHANGE = ProgressUpdate(0, ((1, (0,), 1),))


def pour(endpoint: str, messages: list[list[bytes]]) -> None:
    """Send frames to a socket as a stranger would."""
    with zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.connect(endpoint)
        for message in messages:
            push.send_multipart(message)
        push.linger = 5000


Made = TypeVar("Made")


def noted(made: list[Made], one: Made) -> Made:
    made.append(one)
    return one


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[SocketAllocator]:
    """The allocator of a process whose peer has not arrived yet."""
    (made,) = socket_allocators(ipc_configs(tmp_path)[0])
    yield made
    made.close()


# Meeting


def test_an_address_in_use_is_named_with_what_to_do() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        config = configs([f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{free_ports(1)[0]}"])[0]
        with pytest.raises(
            TransportError, match=rf"process 0 cannot listen at tcp://127\.0\.0\.1:{port}.*in use.*earlier"
        ):
            socket_allocators(config)


def test_an_ipc_path_in_use_is_not_taken_over(tmp_path: Path) -> None:
    config = ipc_configs(tmp_path)[0]
    (first,) = socket_allocators(config)
    try:
        with pytest.raises(TransportError, match="in use"):
            socket_allocators(config)
    finally:
        first.close()


def test_if_one_worker_cannot_listen_the_sockets_of_the_others_are_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[SharedContext] = []
    bells: list[Doorbell] = []
    monkeypatch.setattr(sockets, "SharedContext", lambda *given: noted(made, SharedContext(*given)))
    monkeypatch.setattr(sockets, "Doorbell", lambda: noted(bells, Doorbell()))
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"{tmp_path}/0.1")
        other.listen()
        with pytest.raises(TransportError, match="in use"):
            socket_allocators(ipc_configs(tmp_path, workers=3)[0])
    assert [context.zmq.closed for context in made] == [True]
    assert [bell.fileno() for bell in bells] == [-1] * 3


@pytest.mark.timeout(30)
@pytest.mark.parametrize("at", ["inside", "between"])
def test_an_interrupt_while_sockets_are_made_does_not_wait_for_one_that_nobody_knows(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[SharedContext] = []
    unknown: list[Any] = []
    monkeypatch.setattr(sockets, "SharedContext", lambda *given: noted(made, SharedContext(*given)))

    def interrupted(*_: object) -> None:
        unknown.append(zmq.backend.Socket(made[0].zmq, zmq.PUSH))
        raise KeyboardInterrupt

    if at == "inside":
        monkeypatch.setattr(sockets, "LinkWatch", interrupted)
    else:
        inner = sockets.SocketAllocator
        several = iter([inner, interrupted])
        monkeypatch.setattr(sockets, "SocketAllocator", lambda *given: next(several)(*given))
    with pytest.raises(KeyboardInterrupt):
        socket_allocators(ipc_configs(tmp_path, workers=2)[0])
    unknown[0].close(0)
    made[0].zmq.term()


def test_a_process_has_room_for_its_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(sockets, "reserve", lambda links, workers, rings: bool(asked.append((links, workers))))
    for allocator in socket_allocators(ipc_configs(tmp_path, processes=4, workers=4)[2]):
        allocator.close()
    assert asked == [(48, 4)]


def test_a_path_left_over_by_a_killed_process_is_reused(tmp_path: Path) -> None:
    config = ipc_configs(tmp_path)[0]
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{tmp_path}/0.0")
    (allocator,) = socket_allocators(config)
    allocator.close()


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ConfigError, match="timely keys"):
        configs(["tcp://192.0.2.1:2101", "tcp://192.0.2.2:2101"])


def test_an_address_that_is_not_ours_cannot_be_listened_at(tmp_path: Path) -> None:
    make_keys(str(tmp_path))
    config = configs(["tcp://192.0.2.1:2101", "tcp://192.0.2.2:2101"], curve_dir=str(tmp_path))[0]
    with pytest.raises(TransportError, match="not an address of this machine"):
        socket_allocators(config)


def test_a_peer_that_does_not_arrive_is_named(tmp_path: Path) -> None:
    config = ipc_configs(tmp_path, processes=3, rendezvous_seconds=0.3)[0]
    (allocator,) = socket_allocators(config)
    try:
        with pytest.raises(TransportError, match=r"waited 0\.3 s.*process 1 .*nobody listens there; process 2"):
            allocator.connect()
    finally:
        allocator.close()


class Sleeps(list[int]):
    """The milliseconds of each sleep of a worker; time advances only in sleeps, and the sleep at `ring` ends early."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, lasts: Callable[[int], float], ring: int | None = None) -> None:
        super().__init__()
        self.now = 100.0
        self.lasts = lasts
        self.ring = ring
        monkeypatch.setattr(zmq, "zmq_poll", self.sleep)
        monkeypatch.setattr(sockets, "clock", SimpleNamespace(monotonic=lambda: self.now))

    def sleep(self, _: object, milliseconds: int) -> list[object]:
        self.append(milliseconds)
        self.now += self.lasts(milliseconds)
        return [(-1, 1)] if len(self) == self.ring else []


def test_a_worker_that_waits_in_vain_sleeps_and_reports_what_was_refused_meanwhile(
    alone: SocketAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeps = Sleeps(monkeypatch, lambda _: 0.25)
    with pytest.raises(TransportError, match=r"nobody listens there$"):
        alone.connect()
    assert sleeps == [10] * 121
    alone.refuse("it is noise")
    for now in (101.0, 102.0):
        alone._listener.observe(zmq.EVENT_HANDSHAKE_FAILED_AUTH, now)
    with pytest.raises(TransportError, match=r"because: it is noise; 2 connections .* turned away here$"):
        alone.connect()


@pytest.mark.lengthy
def test_peers_of_another_generation_are_named_and_do_not_meet(tmp_path: Path) -> None:
    first, second = ipc_configs(tmp_path)
    allocators = socket_allocators(first) + socket_allocators(replace(second, generation="other"))
    errors = together([allocator.connect for allocator in allocators])
    for allocator in allocators:
        allocator.close()
    assert all(isinstance(error, TransportError) for error in errors)
    assert "its generation is 'other', here it is 'test'" in str(errors[0])


def test_a_peer_of_another_generation_that_falls_silent_may_be_followed_by_the_right_one(
    alone: SocketAllocator,
) -> None:
    link, meeting = link_of(alone), alone._meeting
    for now in (100.0, 100.9):
        link.note_stranger("older", now)
        assert not meeting.advance(now + 60)
    for now in (101.25, 102.25):
        link.note_stranger("newer", now)
        assert not meeting.advance(160)
    link.note_stranger("newer", 102.5)
    assert not meeting.advance(103.25)
    with pytest.raises(TransportError, match="its generation is 'newer', here it is 'test'"):
        meeting.advance(103.5)


def test_a_hello_is_sent_four_times_a_second_once_the_peer_listens(
    alone: SocketAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Hello] = []
    link, meeting = link_of(alone), alone._meeting
    monkeypatch.setattr(meeting, "send", lambda _, hello: sent.append(hello))
    for listens, now, times in ((False, 99.0, 0), (True, 100.0, 1), (True, 100.125, 1), (True, 100.25, 2)):
        link.connected = listens
        assert not meeting.advance(now)
        assert len(sent) == times
    assert not any(hello.answer for hello in sent)
    link.connected = False


def test_a_peer_that_has_sent_a_hello_and_is_silent_and_disconnected_is_gone(alone: SocketAllocator) -> None:
    link, meeting = link_of(alone), alone._meeting
    assert not meeting.advance(50.0)  # one that never arrived may be late
    link.greeted_at = 100.0
    assert not meeting.advance(100.0 + SILENCE_SECONDS)
    link.connected = True
    assert not meeting.advance(120.0)  # it has met us, and sends nothing until we have met it
    link.connected, link.broke_at = False, 130.0
    assert not meeting.advance(130.0 + SILENCE_SECONDS)
    with pytest.raises(TransportError, match=r"^process 1 \(worker 1 at ipc:.*\) is gone before all have met"):
        meeting.advance(130.1 + SILENCE_SECONDS)


@pytest.mark.lengthy
def test_a_peer_that_breaks_off_between_its_hello_and_its_answer_is_named_long_before_the_rendezvous_ends(
    tmp_path: Path,
) -> None:
    first, second = ipc_configs(tmp_path, rendezvous_seconds=50.0)
    (allocator,) = socket_allocators(first)
    with zmq.Context() as context:
        listens = context.socket(zmq.PULL)
        listens.bind(second.endpoint(1))
        hello = MessageEncoder(1, "test").encode(Hello(2, 1, 1, False, 77, "process"), 0)
        pour(first.endpoint(0), [[bytes(frame) for frame in hello]])
        leaving = Timer(0.5, listens.close, (0,))
        leaving.start()
        begun = clock.monotonic()
        with pytest.raises(TransportError, match=r"process 1 \(worker 1 at ipc:.*, pid 77\) is gone"):
            allocator.connect()
        leaving.join()
        assert clock.monotonic() - begun < 25
    allocator.close()


def test_a_peer_that_accepts_connections_and_is_silent_is_named_long_before_the_rendezvous_ends() -> None:
    first, second = tcp_configs(rendezvous_seconds=50.0, peer_timeout=1.0)
    (allocator,) = socket_allocators(first)
    port = int(second.endpoint(1).rpartition(":")[2])
    # The system accepts connections to a process that listens, whether the process runs or is stopped.
    with closing(allocator), socket.create_server(("127.0.0.1", port)):
        begun = clock.monotonic()
        with pytest.raises(TransportError, match=r"^process 1 .*: it accepts connections but is silent: it is stopped"):
            allocator.connect()
    assert ACCEPTED_OF_TIMEOUT <= clock.monotonic() - begun < 10.0


def test_a_peer_with_other_keys_is_not_called_silent_while_the_next_attempt_is_under_way(
    alone: SocketAllocator,
) -> None:
    link, other = link_of(alone), "another program listens there, or the keys differ"
    silent = "it accepts connections but is silent: it is stopped, or another program listens there"
    assert link.state(99.0) == "nobody listens there"
    link.observe(zmq.EVENT_CONNECTED, 100.0)
    assert link.state(100.0) == silent
    for event in (zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, zmq.EVENT_DISCONNECTED, zmq.EVENT_CONNECTED):
        link.observe(event, 100.0)
        assert link.state(100.0) == link.state(100.4) == other
    assert link.state(100.6) == silent


def test_a_connection_that_breaks_without_a_hello_may_be_an_earlier_runs(tmp_path: Path) -> None:
    first, second = ipc_configs(tmp_path)
    (allocator,) = socket_allocators(first)
    with zmq.Context() as context:
        listens = context.socket(zmq.PULL)
        listens.bind(second.endpoint(1))
        link = link_of(allocator)
        end = clock.monotonic() + 30
        while not link.connected:
            assert clock.monotonic() < end, "there is no connection after 30 s"
            clock.sleep(0.01)
        listens.close(0)
        while link.connected:
            assert clock.monotonic() < end, "the connection has not broken after 30 s"
            clock.sleep(0.01)
    assert not allocator._meeting.advance(clock.monotonic() + 60)
    (other,) = socket_allocators(second)
    assert together([allocator.connect, other.connect]) == [None, None]
    allocator.close()
    other.close()


def test_the_launchers_report_of_a_missing_peer_ends_the_meeting(
    alone: SocketAllocator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = Notes(tmp_path)
    monkeypatch.setenv(REPORT_VARIABLE, str(notes.report(0)))
    assert not alone._meeting.advance(100.0)
    notes.write_fate(1, "is stopped")
    assert not alone._meeting.advance(100.1)  # it looks four times a second
    with pytest.raises(TransportError, match=r"^process 1 \(worker 1 at ipc:.*\) is stopped$"):
        alone._meeting.advance(100.3)
    notes.write_fate(1, "")
    assert not alone._meeting.advance(101.0)


def test_a_leftover_of_another_generation_does_not_disturb_a_meeting(tmp_path: Path) -> None:
    settings = ipc_configs(tmp_path)
    hello = MessageEncoder(1, "older").encode(Hello(2, 1, 1, False, 1, "process"), 0)
    (first,) = socket_allocators(settings[0])
    pour(settings[0].endpoint(0), [[bytes(frame) for frame in hello]])
    (second,) = socket_allocators(settings[1])
    assert together([first.connect, second.connect]) == [None, None]
    until(lambda: first.refused == 1, [first, second])
    first.close()
    second.close()


def refused_first(first: Config, second: Config) -> list[BaseException | None]:
    """Return why two peers do not meet if the second refuses the first before the first listens to it."""
    allocators = socket_allocators(first) + socket_allocators(second)
    hello = Hello(first.processes, first.workers, 1, False, 1, first.accumulation)
    pour(first.endpoint(1), [[bytes(frame) for frame in MessageEncoder(0, first.generation).encode(hello, 1)]])
    errors: list[BaseException | None] = []
    for allocator in reversed(allocators):
        errors += together([allocator.connect])
        allocator.close()
    return errors


def test_peers_started_with_other_numbers_are_refused_at_both_ends(tmp_path: Path) -> None:
    first, second = ipc_configs(tmp_path)
    three = replace(second, processes=3, addresses=(*second.addresses, f"ipc://{tmp_path}/2"))
    errors = refused_first(first, three)
    assert all(isinstance(error, TransportError) for error in errors)
    assert "process 0 was started for 2 processes of 1 workers, process 1 for 3 of 1" in str(errors[0])
    assert "process 1 was started for 3 processes of 1 workers, process 0 for 2 of 1" in str(errors[1])


@pytest.mark.parametrize(("sender", "is_answer", "answers"), [(1, False, 1), (1, True, 0), (7, False, 0)])
def test_a_peer_started_with_other_numbers_is_notified_once_if_there_is_a_link(
    sender: int, is_answer: bool, answers: int, alone: SocketAllocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Hello] = []
    meeting = alone._meeting
    monkeypatch.setattr(meeting, "send", lambda _, hello: sent.append(hello))
    with pytest.raises(TransportError, match=f"process {sender} was started for 9 processes"):
        meeting.check(sender, Hello(9, 1, 1, is_answer, 1, "process"), alone._links.get(sender))
    assert [hello.answer for hello in sent] == [True] * answers


def test_peers_that_would_add_up_progress_in_other_ways_are_refused_at_both_ends(tmp_path: Path) -> None:
    # They would send changes along routes that do not match, and wait forever.
    first, second = ipc_configs(tmp_path)
    errors = refused_first(first, replace(second, accumulation="cluster"))
    assert all(isinstance(error, TransportError) for error in errors)
    assert "process 0 adds up progress by 'process', process 1 by 'cluster'" in str(errors[0])
    assert "process 1 adds up progress by 'cluster', process 0 by 'process'" in str(errors[1])


def test_a_peer_may_come_late(tmp_path: Path) -> None:
    settings = ipc_configs(tmp_path)
    (first,) = socket_allocators(settings[0])
    late: list[Allocator] = []

    def come_late() -> None:
        clock.sleep(0.4)
        late.extend(socket_allocators(settings[1]))
        late[0].connect()

    assert together([first.connect, come_late]) == [None, None]
    for allocator in (first, *late):
        allocator.close()


def test_runs_follow_each_other_at_the_same_addresses(tmp_path: Path) -> None:
    settings = ipc_configs(tmp_path)

    def runs(config: Config) -> None:
        for run in range(5):
            (allocator,) = socket_allocators(replace(config, generation=f"run {run}"))
            allocator.connect()
            broadcast(allocator, ProgressUpdate(run, ()))
            broadcast(allocator, Goodbye(allocator.index, 0))
            arrived = collect(allocator, 1)
            until(lambda: bool(allocator.farewells), [allocator])  # noqa: B023
            assert arrived == [(1 - allocator.index, ProgressUpdate(run, ()))]
            allocator.close()

    assert together([lambda: runs(settings[0]), lambda: runs(settings[1])]) == [None, None]


# Strangers


def garbage(seed: int) -> list[list[bytes]]:
    """Return messages that must be refused: noise, damaged frames, and frames for or from another worker or run."""
    rng = random.Random(seed)
    good = [bytes(frame) for frame in MessageEncoder(1, "test").encode(Failure(1, "not sent by worker 1"), 0)]
    damaged = [[good[0][:cut]] for cut in range(1, len(good[0]))]
    noise = [[rng.randbytes(rng.randrange(200)) for _ in range(rng.randrange(1, 5))] for _ in range(50)]
    foreign = [
        MessageEncoder(1, "other").encode(Failure(1, "of another cluster"), 0),
        MessageEncoder(0, "test").encode(Failure(0, "from oneself"), 0),
        MessageEncoder(1, "test").encode(Failure(0, "in another's name"), 0),
        MessageEncoder(1, "test").encode(Failure(1, "for another"), 1),
        MessageEncoder(70, "test").encode(CHANGE, 0),
        MessageEncoder(70, "other").encode(Hello(2, 1, 1, False, 1, "process"), 0),
        [*MessageEncoder(1, "test").encode(CHANGE, 0), b"buffer"],
    ]
    return [*damaged, *noise, *[[bytes(frame) for frame in frames] for frames in foreign]]


@pytest.mark.parametrize("kind", ["ipc", "tcp"])
def test_malformed_and_foreign_frames_are_refused_counted_and_change_nothing(kind: str, tmp_path: Path) -> None:
    settings = ipc_configs(tmp_path) if kind == "ipc" else tcp_configs()
    with connected(settings) as (first, second):
        poured = garbage(seed=3)
        pour(settings[0].endpoint(0), poured)
        for _ in range(50):
            second.send(0, CHANGE)
        assert collect(first, 50) == [(1, CHANGE)] * 50
        until(lambda: first.refused == len(poured), [first, second])
        first.send(1, CHANGE)
        assert collect(second, 1) == [(0, CHANGE)]


def test_only_a_little_of_a_long_refused_frame_is_kept(tmp_path: Path) -> None:
    settings = ipc_configs(tmp_path)
    with connected(settings) as (first, second):
        pour(settings[0].endpoint(0), [[bytes(MessageEncoder(1, "x" * 1_000_000).encode(CHANGE, 0)[0])]])
        until(lambda: first.refused == 1, [first, second])
        assert first.last_refusal.startswith("generation 'xxx")
        assert len(first.last_refusal) == 1000


def test_repeated_and_premature_messages_are_refused_and_counted(tmp_path: Path) -> None:
    settings = ipc_configs(tmp_path)
    with connected(settings) as (first, second):
        second.send(0, CHANGE)
        second.send(0, Goodbye(1, 0))
        until(lambda: bool(first.farewells), [first])
        recorded = [MessageEncoder(1, "test").encode(CHANGE, 0, number) for number in (1, 2, 0, 4)]
        pour(settings[0].endpoint(0), [[bytes(frame) for frame in frames] for frames in recorded])
        until(lambda: first.refused == 4, [first, second])
        second.send(0, CHANGE)
        assert collect(first, 1, others=[second]) == [(1, CHANGE)]


def test_a_repeated_acknowledgement_makes_no_room(tmp_path: Path) -> None:
    settings = ipc_configs(tmp_path, queue_bytes=1 << 20)
    batch = Data(0, 0, (0,), Columns((np.arange(1 << 14),)))  # 128 KiB
    with connected(settings) as (first, second):
        for _ in range(100):
            first.send(1, batch)
        link = first._links[1]  # type: ignore[attr-defined]
        pour(
            settings[0].endpoint(0), [[bytes(MessageEncoder(1, "test").encode(Ack(1 << 18), 0)[0])] for _ in range(20)]
        )
        until(lambda: link.acknowledged > 0, [first])
        for _ in range(20):
            first.receive()
        assert link.acknowledged == 1 << 18
        assert link.unacknowledged <= 1 << 20
        assert len(collect(second, 100, others=[first])) == 100


def test_bytes_that_are_not_zeromq_change_nothing() -> None:
    settings = tcp_configs()
    with connected(settings) as (first, second):
        host, port = settings[0].endpoint(0).removeprefix("tcp://").split(":")
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
            second.send(0, CHANGE)
            assert collect(first, 1) == [(1, CHANGE)]


def test_an_oversized_frame_of_a_stranger_is_cut_off(tmp_path: Path) -> None:
    settings = ipc_configs(tmp_path, frame_bytes=1 << 16)
    with connected(settings) as (first, second), zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.linger = 0
        push.connect(settings[0].endpoint(0))
        push.send(b"x" * (1 << 17))
        second.send(0, CHANGE)
        assert collect(first, 1) == [(1, CHANGE)]
        first.park(0.1)
        assert first.receive() == []
        assert first.refused == 0


def test_a_column_over_the_bound_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path, frame_bytes=1 << 16)) as (first, _):
        with pytest.raises(DataError, match="TIMELY_FRAME_BYTES"):
            first.send(1, Data(0, 0, (0,), Columns((np.arange(1 << 14),))))
        with pytest.raises(DataError, match="TIMELY_FRAME_BYTES"):
            first.send(1, Data(0, 0, (0,), ["x" * (1 << 17)]))


def test_a_column_of_the_largest_frame_size_is_sent(tmp_path: Path) -> None:
    batch = Data(0, 0, (0,), Columns((np.arange(1 << 13),)))
    with connected(ipc_configs(tmp_path, frame_bytes=1 << 16)) as (first, second):
        first.send(1, batch)
        assert len(collect(second, 1)) == 1


def test_a_batch_of_too_many_columns_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    column = np.arange(4)
    with connected(ipc_configs(tmp_path, frame_bytes=1 << 16)) as (first, second):
        first.send(1, Data(0, 0, (0,), Columns((column,) * (MAX_FRAMES - 1))))
        assert first.backlog > 1 << 16
        with pytest.raises(DataError, match=f"a batch of {MAX_FRAMES} buffers .* send fewer columns"):
            first.send(1, Data(0, 0, (0,), Columns((column,) * MAX_FRAMES)))
        first.send(1, CHANGE)
        (_, batch), last = collect(second, 2, others=[first])
        assert isinstance(batch, Data)
        assert last == (0, CHANGE)
        assert second.refused == 0


@pytest.mark.parametrize("keys", ["none", "others"])
def test_processes_with_the_same_keys_meet_and_strangers_are_counted_and_ignored(keys: str, tmp_path: Path) -> None:
    make_keys(str(tmp_path))
    settings = tcp_configs(curve_dir=str(tmp_path))
    with connected(settings) as (first, second):
        with zmq.Context() as context, context.socket(zmq.PUSH) as push:
            push.linger = 0
            if keys == "others":
                public, push.curve_secretkey = zmq.curve_keypair()
                push.curve_publickey = push.curve_serverkey = public
            push.connect(settings[0].endpoint(0))
            with suppress(zmq.Again):  # the connection was refused before
                push.send(b"let me in", zmq.NOBLOCK)
            until(lambda: first.refused > 0, [first, second])
        second.send(0, CHANGE)
        assert collect(first, 1) == [(1, CHANGE)]
        assert first.receive() == []
        assert second.refused == 0


def test_the_listening_worker_is_the_server_of_the_connection(tmp_path: Path) -> None:
    make_keys(str(tmp_path))
    config = tcp_configs(curve_dir=str(tmp_path))[0]
    with zmq.Context() as context, context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        push.linger = 0
        bind_pull(pull, config, 0)
        connect_push(push, config, 1)
        assert [end.curve_server for end in (pull, push)] == [True, False]


def test_the_connecting_worker_sends_heartbeats_within_the_timeout(tmp_path: Path) -> None:
    config = ipc_configs(tmp_path)[0]
    with zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.linger = 0
        connect_push(push, config, 1)
        assert 0 < push.heartbeat_ivl < push.heartbeat_timeout < 1000 * config.peer_timeout


def test_processes_with_different_keys_do_not_meet(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_keys(str(tmp_path / name))
    first, second = tcp_configs(rendezvous_seconds=0.5)
    allocators = socket_allocators(replace(first, curve_dir=str(tmp_path / "a"))) + socket_allocators(
        replace(second, curve_dir=str(tmp_path / "b"))
    )
    errors = together([allocator.connect for allocator in allocators])
    for allocator in allocators:
        allocator.close()
    assert all(isinstance(error, TransportError) for error in errors)


def test_exposed_or_damaged_or_missing_keys_are_refused(tmp_path: Path) -> None:
    path = make_keys(str(tmp_path))
    config = tcp_configs(curve_dir=str(tmp_path))[0]
    with pytest.raises(ConfigError, match="exists"):
        make_keys(str(tmp_path))
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="read by others"):
        socket_allocators(config)
    path.chmod(0o600)
    path.write_text("nonsense")
    with pytest.raises(ConfigError, match="does not hold two keys"):
        socket_allocators(config)
    path.unlink()
    with pytest.raises(ConfigError, match="timely keys"):
        socket_allocators(config)


# Room


def test_a_slow_receiver_bounds_the_bytes_in_flight(tmp_path: Path) -> None:
    batch = Data(0, 0, (0,), Columns((np.arange(1 << 14),)))  # 128 KiB
    with connected(ipc_configs(tmp_path, queue_bytes=1 << 20)) as (first, second):
        for _ in range(100):
            first.send(1, batch)
        link = first._links[1]  # type: ignore[attr-defined]
        assert link.unacknowledged <= 1 << 20
        assert len(link.queue) > 90
        assert len(collect(second, 100, others=[first])) == 100
        until(lambda: not link.queue and first.backlog < 1 << 19, [first, second])


@pytest.mark.interpreted
def test_a_worker_takes_no_more_at_once_than_the_queues_may_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(ipc_configs(tmp_path, queue_bytes=1 << 20)) as (first, second):
        batch = Columns((np.arange(1 << 15),))
        is_over = Event()

        def flood() -> None:
            while not is_over.is_set():
                first.receive()
                if first.congested:
                    first.park(0.01)
                else:
                    first.send(1, Data(0, 0, (0,), batch))

        sender = Thread(target=flood)
        sender.start()
        try:
            # More always arrives before the worker looks again, as on a busy machine.
            waits = second._pull  # type: ignore[attr-defined]
            monkeypatch.setattr(traffic, "readable", lambda pull: bool(pull.poll(1000 if pull is waits else 0)))
            taken = second.receive()
        finally:
            monkeypatch.undo()
            is_over.set()
            sender.join()
        assert sum(batch.columns[0].nbytes for _ in taken) <= (1 << 20) + 2 * batch.columns[0].nbytes


def test_nothing_is_unsent_for_a_peer_that_is_gone(tmp_path: Path) -> None:
    batch = Data(0, 0, (0,), Columns((np.arange(1 << 14),)))
    with connected(ipc_configs(tmp_path, queue_bytes=1 << 16)) as (first, second):
        for _ in range(10):
            first.send(1, batch)
        assert first.has_unsent
        broadcast(second, Goodbye(1, 0))
        second.close()
        until(lambda: bool(first.farewells), [first])
        while first.has_unsent:
            first.receive()
            first.park(None)


def test_a_batch_bigger_than_the_whole_room_is_still_sent(tmp_path: Path) -> None:
    batch = Data(0, 0, (0,), Columns((np.arange(1 << 18),)))
    with connected(ipc_configs(tmp_path, queue_bytes=1 << 16)) as (first, second):
        for _ in range(5):
            first.send(1, batch)
        assert len(collect(second, 5, others=[first])) == 5


def test_a_batch_bigger_than_the_whole_room_is_sent_after_small_ones_that_are_not_acknowledged(tmp_path: Path) -> None:
    batch = Data(0, 0, (0,), Columns((np.arange(1 << 18),)))
    with connected(ipc_configs(tmp_path, queue_bytes=1 << 16)) as (first, second):
        for _ in range(3):
            first.send(1, CHANGE)
            first.send(1, batch)
        assert len(collect(second, 6, others=[first])) == 6


class Noting:
    """A socket that records what it is to send."""

    def __init__(self, inner: zmq.Socket[bytes]) -> None:
        self.inner = inner
        self.sent: list[object] = []

    def send(self, frame: object, flags: int = 0, copy: bool = True) -> None:
        self.sent.append(frame)
        self.inner.send(frame, flags, copy)  # type: ignore[call-overload]

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


def test_a_small_batch_is_one_frame_and_a_large_one_has_an_uncopied_frame_for_each_column(tmp_path: Path) -> None:
    small, large = (Columns((np.arange(rows), np.arange(rows) * 0.5)) for rows in (500, 50_000))
    with connected(ipc_configs(tmp_path)) as (first, second):
        link = first._links[1]  # type: ignore[attr-defined]
        link.socket = noting = Noting(link.socket)
        first.send(1, Data(0, 0, (0,), small))
        assert len(noting.sent) == 1
        first.send(1, Data(0, 0, (0,), large))
        header, *buffers = noting.sent[1:]
        assert len(header) < 100  # type: ignore[arg-type]
        for buffer, column in zip(buffers, large.columns, strict=True):
            assert np.shares_memory(np.frombuffer(buffer, column.dtype), column)  # type: ignore[call-overload]
        link.socket = noting.inner
        for _, message in collect(second, 2):
            assert isinstance(message, Data)


def test_a_column_larger_than_the_bound_on_queues_arrives_whole(tmp_path: Path) -> None:
    column = np.arange(1 << 19)  # 4 MiB
    with connected(ipc_configs(tmp_path, queue_bytes=1 << 16)) as (first, second):
        for _ in range(3):
            first.send(1, Data(0, 0, (0,), Columns((column,))))
        assert first.congested
        for _, message in collect(second, 3, others=[first]):
            assert np.array_equal(message.batch.columns[0], column)  # type: ignore[union-attr]
        until(lambda: not first.congested, [first, second])


def test_received_columns_are_aligned_and_writable(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path)) as (first, second):
        for size in range(1, 40):
            columns = (np.full(size, b"x" * 301), np.arange(size), np.arange(size) * 0.5)
            first.send(1, Data(0, 0, (0,), Columns(columns)))
        for _, message in collect(second, 39):
            assert isinstance(message, Data)
            assert isinstance(message.batch, Columns)
            assert all(column.flags.aligned and column.flags.writeable for column in message.batch.columns)


def test_a_view_at_an_odd_address_is_copied_and_an_aligned_one_is_not() -> None:
    whole = memoryview(bytearray(64))
    assert aligned(whole[8:]).obj is whole.obj
    assert aligned(whole[3:]).obj is not whole.obj
    assert aligned(whole[3:11]).obj is not whole.obj
    assert len(aligned(whole[3:3])) == 0


class Full:
    """A socket that accepts nothing."""

    def __init__(self) -> None:
        self.asked = 0

    def send(self, *_: object, copy: bool) -> None:
        self.asked += 1
        raise zmq.Again


def test_a_sleeping_worker_soon_sends_what_its_socket_did_not_accept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "WATCH_SECONDS", 0.01)
    with connected(ipc_configs(tmp_path)) as (first, second):
        link: Any = link_of(first)
        inner, link.socket = link.socket, Full()
        first.send(1, CHANGE)
        assert link.socket.asked == 1
        link.socket = inner
        first.park(0.05)
        assert collect(second, 1) == [(0, CHANGE)]


def test_queued_messages_are_sent_as_soon_as_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(ipc_configs(tmp_path)) as (first, second):
        link: Any = link_of(first)
        monkeypatch.setattr(first, "_watch", lambda now: None)
        link.window = link.own_quantum = 1
        link_of(second).quantum = 1
        first.send(1, CHANGE)
        first.send(1, CHANGE)
        assert first.has_unsent
        assert len(collect(second, 2, others=[first])) == 2
        until(lambda: first.backlog == 0, [first])


def test_the_room_of_the_queues_is_divided_over_the_peers(tmp_path: Path) -> None:
    (allocator,) = socket_allocators(ipc_configs(tmp_path, processes=4, queue_bytes=3 << 20)[0])
    try:
        assert [(link.window, link.own_quantum) for link in allocator._links.values()] == [(1 << 20, 1 << 18)] * 3
    finally:
        allocator.close()


def test_the_window_has_room_for_any_message_while_less_than_a_quantum_is_in_flight(
    tmp_path: Path,
) -> None:
    with connected(ipc_configs(tmp_path)) as (first, _):
        link = link_of(first)
        link.window, link.own_quantum = 40, 10
        link.sent, link.acknowledged = 110, 100
        assert [link._has_room(size) for size in (30, 31)] == [True, False]
        link.sent = 109
        assert link._has_room(1000)


def test_a_message_queued_for_one_of_several_peers_is_unsent(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path, processes=3)) as (first, *others):
        link: Any = first._links[1]  # type: ignore[attr-defined]
        link.window = link.own_quantum = others[0]._links[0].quantum = 1  # type: ignore[attr-defined]
        first.send(1, CHANGE)
        assert not first.has_unsent
        first.send(1, CHANGE)
        assert first.has_unsent
        assert len(collect(others[0], 2, others=[first])) == 2


def test_a_worker_acknowledges_received_messages_once_they_are_a_quantum(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path)) as (first, second):
        first.send(1, CHANGE)
        link: Any = link_of(second)
        size = first.backlog
        link.quantum = 3 * size
        link.socket = noting = Noting(link.socket)
        for _ in range(6):
            first.send(1, CHANGE)
        assert len(collect(second, 7)) == 7
        link.socket = noting.inner
        assert [decode([cast(bytes, frame)]).message for frame in noting.sent] == [Ack(3 * size), Ack(6 * size)]


def test_a_worker_is_congested_by_more_than_the_queues_may_hold(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path)) as (first, _):
        allocator: Any = first
        first.send(1, Data(0, 0, (0,), Columns((np.arange(1 << 14),))))
        for spare, congested in ((0, False), (-1, True)):
            allocator._queue_bytes = first.backlog + spare
            assert first.congested == congested


# Giving way, and looking for messages before sleeping

SPIN = 2.0**-12


def yields_of(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that grows each time a worker gives way."""
    yields: list[None] = []
    monkeypatch.setattr(os, "sched_yield", lambda: yields.append(None))
    return yields


def looks_of(allocator: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[list[None], list[float]]:
    """Return lists that grow with each look, of which there is time for four, and with each sleep, which is skipped."""
    sleeps: list[float] = []
    monkeypatch.setattr(allocator, "_wait", sleeps.append)
    monkeypatch.setattr(sockets, "SPIN_SECONDS", SPIN)
    tick = itertools.count(1.0, SPIN / 4)
    monkeypatch.setattr(sockets, "clock", SimpleNamespace(perf_counter=partial(next, tick), monotonic=clock.monotonic))
    return yields_of(monkeypatch), sleeps


def test_a_worker_gives_way_after_progress_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(ipc_configs(tmp_path)) as (first, _), monkeypatch.context() as patch:
        yields = yields_of(patch)
        first.send(1, Data(0, 0, (0,), Columns((np.arange(9),))))
        assert len(yields) == 0
        first.send(1, CHANGE)
        assert len(yields) == 1


def test_a_worker_looks_for_messages_before_it_sleeps_until_there_were_none_four_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(ipc_configs(tmp_path)) as (first, second), monkeypatch.context() as patch:
        allocator: Any = first
        looks, sleeps = looks_of(first, patch)
        allocator._fruitless = 0
        first.park(0)
        assert (len(looks), sleeps) == (0, [0])
        for times in (3, 6, 9, 12, 12):
            first.park(9)
            assert len(looks) == times
        assert sleeps == [0, 9, 9, 9, 9, 9]
        second.send(0, CHANGE)
        assert allocator._pull.poll(30_000)
        allocator._fruitless = 3
        looks.clear()
        sleeps.clear()
        first.park(9)
        assert (len(looks), sleeps, allocator._fruitless) == (0, [], 0)


def test_a_worker_that_shares_the_interpreter_sleeps_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allocators = socket_allocators(ipc_configs(tmp_path, workers=2)[0])
    try:
        looks, sleeps = looks_of(allocators[0], monkeypatch)
        allocators[0].park(9)
        assert (len(looks), sleeps) == (0, [9])
    finally:
        for allocator in allocators:
            allocator.close()


class Taking(dict[int, Callable[[], None]]):
    """The senders waiting for room in a mailbox that becomes empty at the moment of registering."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox

    def __setitem__(self, sender: int, wake: Callable[[], None]) -> None:
        self.mailbox.drain()


@pytest.mark.parametrize("is_emptied", [False, True])
def test_a_congested_worker_sleeps_unless_there_is_room_when_it_asks_for_it(
    is_emptied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocators = socket_allocators(ipc_configs(tmp_path, workers=2, queue_bytes=1 << 16)[0])
    try:
        _, sleeps = looks_of(allocators[0], monkeypatch)
        allocators[0].send(1, Data(0, 0, (0,), Columns((np.arange(1 << 14),))))
        mailbox = allocators[1]._own
        if is_emptied:
            mailbox.waiting = Taking(mailbox)
        allocators[0].park(9)
        assert sleeps == ([] if is_emptied else [9])
    finally:
        for allocator in allocators:
            allocator.close()


@pytest.mark.parametrize(("slept", "fruitless"), [(SPIN, 0), (2 * SPIN, 4)])
def test_a_worker_that_was_woken_soon_looks_again_before_it_sleeps(
    slept: float, fruitless: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(ipc_configs(tmp_path)) as (first, second), monkeypatch.context() as patch:
        allocator: Any = first
        second.send(0, CHANGE)
        assert allocator._pull.poll(30_000)
        allocator._fruitless = 4
        patch.setattr(sockets, "SPIN_SECONDS", SPIN)
        patch.setattr(sockets, "clock", SimpleNamespace(monotonic=partial(next, iter([1.0, 1.0 + slept]))))
        first.park(9)
        assert allocator._fruitless == fruitless


def test_a_worker_sleeps_as_long_as_it_may_and_maintains_its_connections_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(ipc_configs(tmp_path)) as (first, _), monkeypatch.context() as patch:
        allocator: Any = first
        allocator._fruitless = 4
        sleeps = Sleeps(patch, lambda milliseconds: max(milliseconds / 1000, 2**-10), ring=9)
        first.park(0.625)
        assert sleeps == [250, 250, 125]
        first.park(0)
        assert sleeps[3:] == [0]
        first.park(None)
        assert sleeps[4:] == [250] * 5


def test_a_worker_that_is_awake_is_not_woken(tmp_path: Path) -> None:
    allocators = socket_allocators(ipc_configs(tmp_path, workers=2)[0])
    try:
        bell: Any = allocators[0]._doorbell
        allocators[0].park(0)
        allocators[1].send(0, CHANGE)
        assert not bell._rung
    finally:
        for allocator in allocators:
            allocator.close()


# Loss


def test_connections_are_looked_after_four_times_a_second_while_a_worker_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(ipc_configs(tmp_path)) as (first, _), monkeypatch.context() as patch:
        looks: list[Link] = []
        allocator: Any = first
        allocator._watch_at = 0.0
        patch.setattr(first, "_is_lost", looks.append)
        for now, times in ((100.0, 1), (100.0, 1), (100.125, 1), (100.25, 2), (100.375, 2)):
            patch.setattr(sockets, "clock", SimpleNamespace(monotonic=lambda: now))  # noqa: B023
            first.receive()
            assert len(looks) == times


def test_a_lost_peer_is_an_error_after_its_grace(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path)) as (first, _):
        allocator: Any = first
        link = link_of(first)
        link.lost_at = 100.0
        allocator._watch(100.0 + GRACE_SECONDS)
        assert "is gone" in str(allocator._describe_loss(link))
        with pytest.raises(PeerLost):
            allocator._watch(100.125 + GRACE_SECONDS)
        assert allocator._describe_loss(link) is None
        link.lost_at = None


def test_a_worker_that_has_failed_does_not_report_peers_that_are_gone(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path)) as (first, second):
        second.close()
        link = until_noticed(link_of(first))
        first.send(1, Failure(0, "out of luck"))
        assert first._describe_loss(link) is None  # type: ignore[attr-defined]


def until_lost(allocator: Allocator) -> PeerLost:
    def listen() -> None:
        while clock.monotonic() < end:
            allocator.receive()
            allocator.park(None)

    end = clock.monotonic() + 30
    with pytest.raises(PeerLost) as caught:
        listen()
    return caught.value


@pytest.mark.parametrize("kind", ["ipc", "tcp"])
def test_a_peer_gone_without_a_farewell_is_named(kind: str, tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path) if kind == "ipc" else tcp_configs()) as (first, second):
        second.close()
        assert "process 1 (worker 1" in str(until_lost(first))


def test_messages_that_a_lost_peer_sent_before_are_still_received(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path)) as (first, second):
        second.send(0, CHANGE)
        second.close()
        assert collect(first, 1) == [(1, CHANGE)]
        until_lost(first)


def test_a_peer_gone_after_its_farewell_is_not_lost(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path)) as (first, second):
        broadcast(second, Goodbye(1, 0))
        second.close()
        end = clock.monotonic() + 1.2
        while clock.monotonic() < end:
            first.receive()
            first.park(0.1)
        assert list(first.farewells) == [1]


def link_of(allocator: Allocator) -> Link:
    """Return the link to the only peer."""
    (link,) = allocator._links.values()  # type: ignore[attr-defined]
    return cast(Link, link)


def until_noticed(link: Link) -> Link:
    """Wait until it is noticed that a peer is gone; return the link to it."""
    end = clock.monotonic() + 30
    while link.lost_at is None:
        assert clock.monotonic() < end
        clock.sleep(0.01)
    return link


def test_closing_does_not_wait_for_a_peer_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "LINGER_MILLISECONDS", 40_000)
    with connected(ipc_configs(tmp_path)) as (first, second):
        second.close()
        until_noticed(link_of(first))
        first.send(1, CHANGE)
        start = clock.perf_counter()
        first.close()
        assert clock.perf_counter() - start < 20


def test_a_peer_is_lost_from_when_its_connection_first_breaks_after_both_have_met(alone: SocketAllocator) -> None:
    link = link_of(alone)
    lost: list[float | None] = []
    for now in (100.0, 101.0, 102.0):
        link.observe(zmq.EVENT_HANDSHAKE_SUCCEEDED, now)
        link.observe(zmq.EVENT_DISCONNECTED, now + 0.5)
        lost.append(link.lost_at)
        link.answered = True
    assert lost == [None, 101.5, 101.5]
    assert not link.connected


@pytest.mark.parametrize(
    ("connected", "pid", "lost_at", "lingers"),
    [(True, None, None, True), (False, None, None, False), (False, 7, None, True), (False, 7, 1.0, False)],
)
def test_closing_waits_for_a_peer_that_is_connected_or_has_sent_a_hello(
    connected: bool, pid: int | None, lost_at: float | None, lingers: bool, alone: SocketAllocator
) -> None:
    link: Any = link_of(alone)
    ends = link.socket, link.monitor
    waits: list[int] = []
    link.socket = SimpleNamespace(disable_monitor=lambda: None, close=waits.append)
    link.monitor = SimpleNamespace(close=lambda linger: None)
    link.connected, link.pid, link.lost_at = connected, pid, lost_at
    link.close(40)
    link.socket, link.monitor = ends
    link.connected, link.pid, link.lost_at = False, None, None
    assert waits == [40 * lingers]


def test_the_first_of_several_lost_peers_is_named(tmp_path: Path) -> None:
    # As after a long operator: the second to be lost has left because it missed the first.
    with connected(ipc_configs(tmp_path, processes=3)) as (first, *others):
        links = first._links  # type: ignore[attr-defined]
        for peer in (2, 1):
            others[peer - 1].close()
            until_noticed(links[peer])
        for link in links.values():
            link.lost_at -= GRACE_SECONDS + 0.1
        with pytest.raises(PeerLost, match=r"process 2 .* is gone"):
            first._watch(clock.monotonic())  # type: ignore[attr-defined]


def test_the_last_message_of_a_peer_is_received_though_its_loss_is_noticed_first(tmp_path: Path) -> None:
    # As after a long operator: the peer failed meanwhile, and has been gone for longer than the grace.
    with connected(ipc_configs(tmp_path)) as (first, second):
        broadcast(second, Failure(1, "out of luck"))
        second.close()
        link = until_noticed(link_of(first))
        assert first._pull.poll(30_000)  # type: ignore[attr-defined]
        assert link.lost_at is not None
        link.lost_at -= GRACE_SECONDS + 0.1
        assert "is gone" in first._describe_loss(link)  # type: ignore[attr-defined]
        with pytest.raises(PeerFailed, match="worker 1 failed: out of luck"):
            first.receive()
        assert first._describe_loss(link) is None  # type: ignore[attr-defined]


def test_a_description_larger_than_a_frame_is_refused_by_its_name(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path, frame_bytes=1 << 16)) as (first, _):
        with pytest.raises(DataError, match=r"^the description of dataflow 3, .*; set TIMELY_FRAME_BYTES"):
            first.send(1, Shape(3, b"digest", ("operator" * 1000,) * 10))
        with pytest.raises(DataError, match=r"^a message of kind ProgressUpdate of \d+ bytes"):
            first.send(1, ProgressUpdate(0, CHANGE.changes * 20_000))


def test_a_process_that_is_asked_to_end_does_not_report_peers_that_are_gone(tmp_path: Path) -> None:
    asked = []
    first, second = ipc_configs(tmp_path)
    allocators = socket_allocators(first, lambda: bool(asked)) + socket_allocators(second)
    try:
        assert together([allocator.connect for allocator in allocators]) == [None, None]
        allocators[1].close()
        link = until_noticed(link_of(allocators[0]))
        assert "is gone" in str(allocators[0]._describe_loss(link))
        asked.append(True)
        assert allocators[0]._describe_loss(link) is None
    finally:
        for allocator in allocators:
            allocator.close()


def test_processes_that_meet_do_not_import_asyncio() -> None:
    """It takes time, and CPython loses an interrupt that comes while ssl is imported in a TypeError."""
    program = "import sys, timely.communication.sockets; print('asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"
