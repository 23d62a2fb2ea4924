"""Frames into and out of ZeroMQ's sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import zmq

from tests.unit.communication.networks import ipc_configs
from timely.communication.codec import MAX_FRAMES
from timely.communication.ends import connect_push
from timely.communication.wire import COPY_BYTES, read, readable, transmit

Ends = tuple["zmq.Socket[bytes]", "zmq.Socket[bytes]"]


@pytest.fixture
def ends() -> Iterator[Ends]:
    with zmq.Context() as context, context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        pull.bind("inproc://frames")
        push.connect("inproc://frames")
        yield push, pull


def test_a_message_is_taken_with_all_its_frames_or_not_at_all(ends: Ends) -> None:
    push, pull = ends
    assert not readable(pull)
    assert transmit(push, [b"first"])
    assert transmit(push, [b"second", b"with", memoryview(b"frames")])
    assert readable(pull)
    assert read(pull) == [b"first"]
    assert read(pull) == [b"second", b"with", b"frames"]
    assert not readable(pull)


def test_only_large_frames_are_sent_without_a_copy() -> None:
    copied: list[tuple[int, bool]] = []
    push = SimpleNamespace(send=lambda frame, _, copy: copied.append((len(frame), copy)))
    assert transmit(cast("zmq.Socket[bytes]", push), [bytes(COPY_BYTES), bytes(COPY_BYTES + 1), b"last"])
    assert copied == [(COPY_BYTES, True), (COPY_BYTES + 1, False), (4, True)]


def test_a_message_that_a_socket_does_not_accept_is_reported() -> None:
    with zmq.Context() as context, context.socket(zmq.PUSH) as push:
        assert not transmit(push, [b"to nobody"])


def test_a_message_of_too_many_frames_keeps_one_more_than_is_allowed(ends: Ends) -> None:
    push, pull = ends
    for many, kept in ((MAX_FRAMES, MAX_FRAMES), (MAX_FRAMES + 1, MAX_FRAMES + 1), (MAX_FRAMES + 9, MAX_FRAMES + 1)):
        push.send_multipart([b"frame"] * many)
        assert len(read(pull)) == kept
    assert not readable(pull)


def test_a_socket_takes_many_small_messages_for_a_peer_that_does_not_listen_yet(tmp_path: Path) -> None:
    config = ipc_configs(tmp_path)[0]
    with zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.linger = 0
        connect_push(push, config, 1)
        assert all(transmit(push, [b"small"]) for _ in range(2000))
