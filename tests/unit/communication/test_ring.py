"""Rings in shared memory: what they hold, who may open them, and the same traffic by rings and by sockets."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time as clock
from collections import deque
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq
from hypothesis import given, settings, strategies as st

from tests.strategies_communication import same_message
from tests.unit.communication.networks import Arrived, collect, connected, ipc_configs, until
from timely.communication.allocator import broadcast
from timely.communication.descriptors import needed
from timely.communication.inbox import ARE_POSSIBLE, Inbox, RingOutlet
from timely.communication.message import Data, Failure, Goodbye, Message, ProgressUpdate
from timely.communication.ring import MESSAGE_BYTES, PAGE, RING_BYTES, RingReader, RingWriter, words_of
from timely.data.container import Columns
from timely.errors import FrameError, PeerFailed

needs_rings = pytest.mark.skipif(not ARE_POSSIBLE, reason="rings need Linux on x86-64")


def ring() -> tuple[RingWriter, RingReader]:
    memory = bytearray(PAGE + RING_BYTES)
    return RingWriter(memory), RingReader(memory)


@needs_rings
def test_the_descriptors_that_rings_take_are_all_reserved() -> None:
    before = len(os.listdir("/proc/self/fd"))
    inbox = Inbox([1, 2, 3])
    outlets = [RingOutlet.open(inbox.offer(peer)) for peer in (1, 2, 3)]
    taken = len(os.listdir("/proc/self/fd")) - before
    for outlet in outlets:
        assert outlet is not None
        outlet.close()
    inbox.close()
    assert taken == needed(links=3, workers=1, rings=True) - needed(links=3, workers=1)


@needs_rings
@pytest.mark.parametrize("step", ["os.pipe2", "os.ftruncate", "timely.communication.inbox.mmap"])
def test_rings_that_cannot_be_made_take_no_descriptors(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    makes = [mmap]  # the second ring has no memory

    def fails(*arguments: Any, **options: Any) -> Any:
        if step.endswith("mmap") and makes:
            return makes.pop()(*arguments, **options)
        raise OSError(errno.EMFILE, "too many open files")

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(step, fails)
    with pytest.raises(OSError, match="too many open files"):
        Inbox([1, 2])
    assert len(os.listdir("/proc/self/fd")) == len(before)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 40_000), min_size=1, max_size=4)), max_size=60))
def test_a_ring_is_a_queue_that_refuses_what_it_has_no_room_for(steps: list[tuple[bool, list[int]]]) -> None:
    writer, reader = ring()
    inside: deque[tuple[int, list[bytes]]] = deque()
    for number, (takes, sizes) in enumerate(steps):
        frames = [bytes([number + position]) * size for position, size in enumerate(sizes)]
        if writer.put(number, [frames[0], *(memoryview(frame) for frame in frames[1:])]):
            inside.append((number, frames))
        else:
            held = sum(8 * words_of(each) for _, each in inside)
            assert held + 2 * 8 * words_of(frames) > RING_BYTES, "a message was refused although there was room"
        while inside and (takes or number == len(steps) - 1):
            expected, content = inside.popleft()
            assert reader.is_ready(expected)
            assert not reader.is_ready(expected + 1)
            assert [bytes(frame) for frame in reader.take()] == content
    assert not any(reader.is_ready(number) for number in range(len(steps)))


def test_records_begin_at_the_start_of_the_ring_when_they_do_not_fit_before_its_end() -> None:
    writer, reader = ring()
    frame = b"x" * (RING_BYTES // 3)
    for number in range(50):
        assert writer.put(number, [b"header", memoryview(frame)])
        assert reader.is_ready(number)
        header, column = reader.take()
        assert (header, bytes(column)) == (b"header", frame)


def test_a_frame_without_bytes_and_an_array_pass_unchanged() -> None:
    writer, reader = ring()
    column: Any = np.arange(100.0)
    assert writer.put(1, [b"header", np.empty(0).data, column.data])
    _, empty, back = reader.take()
    assert len(empty) == 0
    assert np.array_equal(np.frombuffer(back, float), column)


def test_what_was_taken_does_not_change_when_the_ring_is_written_again() -> None:
    writer, reader = ring()
    assert writer.put(0, [b"header", memoryview(b"a" * 1000)])
    _, taken = reader.take()
    for number in range(1, 2 * RING_BYTES // 1000):
        assert writer.put(number, [b"header", memoryview(b"b" * 1000)])
        reader.take()
    assert bytes(taken) == b"a" * 1000


def test_an_end_is_closed_while_a_view_of_the_memory_is_left() -> None:
    reader = RingReader(mmap(-1, PAGE + RING_BYTES))
    view = reader._bytes[:8]  # as in the traceback of an interrupt
    reader.close()
    reader.close()
    assert len(view) == 8


def test_a_record_of_a_sender_that_dies_while_it_writes_is_not_read() -> None:
    memory = bytearray(PAGE + RING_BYTES)
    writer, reader = RingWriter(memory), RingReader(memory)
    assert writer.put(1, [b"whole"])
    memory[PAGE + 64 : PAGE + 96] = b"\7" * 32  # what it has written of the next record, whose HEAD it never stored
    assert reader.take() == [b"whole"]
    assert not reader.is_ready(2)


@pytest.mark.parametrize("word", [0, 2, 3])
def test_a_record_with_impossible_lengths_is_refused(word: int) -> None:
    memory = bytearray(PAGE + RING_BYTES)
    writer, reader = RingWriter(memory), RingReader(memory)
    assert writer.put(1, [b"header"])
    memoryview(memory).cast("q")[PAGE // 8 + word] = 1 << 40
    with pytest.raises(FrameError, match="damaged record"):
        reader.take()


@needs_rings
@pytest.mark.parametrize("change", ["name", "pid", "slot", "nonsense"])
def test_an_offer_that_does_not_lead_to_the_memory_is_not_accepted(change: str) -> None:
    inbox = Inbox([1])
    try:
        pid, file, bell, name, slot = inbox.offer(1).split("/")
        offers = {
            "name": f"{pid}/{file}/{bell}/{name[:-1]}/{slot}",
            "pid": f"1{pid}999/{file}/{bell}/{name}/{slot}",
            "slot": f"{pid}/{file}/{bell}/{name}/1",
            "nonsense": "a/b",
        }
        before = len(os.listdir("/proc/self/fd"))
        assert RingOutlet.open(offers[change]) is None
        assert len(os.listdir("/proc/self/fd")) == before
        accepted = RingOutlet.open(inbox.offer(1))
        assert accepted is not None
        accepted.close()
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        inbox.close()


@needs_rings
def test_the_memory_has_no_name_cannot_shrink_and_is_its_owners_alone() -> None:
    before = os.listdir("/dev/shm")
    inbox = Inbox([1])
    try:
        assert os.listdir("/dev/shm") == before
        status = os.fstat(inbox._file)
        assert (status.st_nlink, status.st_mode & 0o777, status.st_uid) == (0, 0o600, os.geteuid())
        with pytest.raises(PermissionError):
            os.ftruncate(inbox._file, 0)
    finally:
        inbox.close()


ANOTHER_ACCOUNT = """
import os, sys
from timely.communication.inbox import RingOutlet
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(RingOutlet.open(sys.argv[1]))
"""


@needs_rings
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another account")
def test_another_account_cannot_open_the_memory() -> None:
    inbox = Inbox([1])
    try:
        asking = [sys.executable, "-c", ANOTHER_ACCOUNT, inbox.offer(1)]
        found = subprocess.run(asking, capture_output=True, text=True, timeout=60, check=True)
        assert found.stdout == "None\n"
    finally:
        inbox.close()


def message(kind: int, size: int) -> Message:
    if kind == 0:
        return ProgressUpdate(0, ((size, (kind,), 1),))
    return Data(0, size, (0,), Columns((np.arange(size), np.arange(size) * 0.5)))


def delivered(directory: Path, traffic: list[tuple[int, Message]], rings: bool) -> list[Arrived]:
    """Return what two workers receive, each of which receives only now and then, so that rings become full."""
    with connected(ipc_configs(directory, rings=rings, queue_bytes=1 << 20)) as allocators:
        arrived: list[Arrived] = [[], []]
        for number, (sender, each) in enumerate(traffic):
            allocators[sender].send(1 - sender, each)
            if number % 40 == 39:
                arrived[sender] += allocators[sender].receive()
        expected = [sum(sender != receiver for sender, _ in traffic) for receiver in (0, 1)]

        def take() -> bool:
            for mine, allocator in zip(arrived, allocators, strict=True):
                mine += allocator.receive()
            return [len(mine) for mine in arrived] == expected

        end = clock.monotonic() + 30
        while not take():
            assert clock.monotonic() < end, f"{[len(mine) for mine in arrived]} of {expected} messages after 30 s"
        return arrived


@needs_rings
@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.builds(message, st.integers(0, 3), st.sampled_from([0, 1, 100, 2_000, MESSAGE_BYTES // 16, 20_000])),
        ),
        max_size=120,
    )
)
def test_the_same_traffic_by_rings_and_by_sockets_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, traffic: list[tuple[int, Message]]
) -> None:
    for rings in (True, False):
        arrived = delivered(tmp_path_factory.mktemp("run"), traffic, rings)
        for receiver, messages in enumerate(arrived):
            sent = [each for sender, each in traffic if sender != receiver]
            assert len(messages) == len(sent)
            assert all(same_message(one, other) for (_, one), other in zip(messages, sent, strict=True))


class Counting:
    """A socket that counts the messages that it sends."""

    def __init__(self, inner: zmq.Socket[bytes]) -> None:
        self.inner = inner
        self.messages = 0

    def send(self, frame: Any, flags: int, copy: bool) -> None:
        self.messages += not flags & zmq.SNDMORE
        self.inner.send(frame, flags, copy)


@needs_rings
def test_small_messages_take_the_ring_and_those_that_find_no_room_or_are_large_take_the_socket(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path, rings=True)) as (first, second):
        link: Any = first._links[1]  # type: ignore[attr-defined]
        link.socket = counting = Counting(link.socket)
        first.send(1, message(0, 1))
        assert counting.messages == 0
        first.send(1, message(1, MESSAGE_BYTES))
        assert counting.messages == 1
        for _ in range(12):
            first.send(1, message(1, MESSAGE_BYTES // 16 - 100))
        assert 1 < counting.messages < 13
        link.socket = counting.inner
        assert len(collect(second, 14, others=[first])) == 14


@needs_rings
def test_a_failure_overtakes_what_is_in_the_ring_and_a_farewell_does_not(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path, rings=True)) as (first, second):
        for number in range(3):
            first.send(1, message(0, number))
        broadcast(first, Goodbye(0, 0))
        arrived = collect(second, 3, others=[first])
        assert [each for _, each in arrived] == [message(0, number) for number in range(3)]
        until(lambda: 0 in second.farewells, [second])
        broadcast(first, Failure(0, "enough"))
        with pytest.raises(PeerFailed, match="enough"):
            collect(second, 1)


@needs_rings
def test_the_socket_is_looked_at_every_second_time_though_the_ring_always_has_a_message(tmp_path: Path) -> None:
    with connected(ipc_configs(tmp_path, rings=True)) as (first, second):
        broadcast(first, Failure(0, "enough"))
        assert second._pull.poll(30_000)  # type: ignore[attr-defined]

        def looked(number: int) -> int:
            first.send(1, message(0, number))
            return len(second.receive())

        with pytest.raises(PeerFailed, match="enough"):
            assert [looked(1), looked(2)] == []


@needs_rings
@pytest.mark.slow
def test_a_run_by_rings_whose_processes_are_killed_leaves_no_file(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal\nfrom timely import execute, new_input\n"
        "def build(worker):\n"
        "    with worker.dataflow() as scope:\n"
        "        numbers, stream = new_input(scope)\n"
        "        probe = stream.exchange().probe()\n"
        "    numbers.send(worker.index)\n"
        "    numbers.advance_to(1)\n"
        "    worker.step_while(lambda: probe.less_than(1))\n"
        "    if worker.index:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    worker.step_while(lambda: not probe.done())\n"
        "execute(build)\n"
    )
    before = os.listdir("/dev/shm")
    ended = subprocess.run(
        [sys.executable, "-m", "timely", "run", "-n", "2", str(program)],
        env=os.environ | {"TIMELY_RINGS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 128 + signal.SIGKILL
    assert "process 1" in ended.stderr, ended.stderr
    assert os.listdir("/dev/shm") == before
