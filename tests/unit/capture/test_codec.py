"""Frames of events: how long they may be, and which are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.strategies_communication import read_body
from timely.capture import codec as event_codec
from timely.capture.codec import FRAME, body_length, decode, encode
from timely.capture.event import Event, Messages
from timely.communication.plain import PlainPacker, unpack_plain
from timely.data.container import Columns, records
from timely.errors import CaptureError, DataError

EVENT = Messages((0,), Columns((np.zeros(3, np.int8), np.arange(3))))


def frame_of(event: Event) -> bytes:
    return b"".join(encode(event))


def with_sizes(*sizes: Any) -> bytearray:
    """Return the body of `EVENT` in whose header its buffers have the given sizes."""
    _, _, header, _, *buffers = encode(EVENT)
    packed = PlainPacker().pack((*unpack_plain(bytes(header))[:-1], sizes))
    padding = bytes(-len(packed) % 8)
    return bytearray(b"".join([len(packed).to_bytes(8, "little"), packed, padding, *buffers]))


def test_an_event_of_the_greatest_length_is_encoded_and_a_longer_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = frame_of(EVENT)
    longest = len(frame) - FRAME.size
    monkeypatch.setattr(event_codec, "MAX_BODY", longest)
    assert frame_of(EVENT) == frame
    assert body_length(frame[: FRAME.size]) == longest
    monkeypatch.setattr(event_codec, "MAX_BODY", longest - 1)
    with pytest.raises(DataError, match=f"an event of {longest:,} bytes cannot be written"):
        encode(EVENT)
    with pytest.raises(CaptureError, match=f"a frame claims {longest:,} bytes"):
        body_length(frame[: FRAME.size])


def test_a_frame_without_a_body_is_refused() -> None:
    with pytest.raises(CaptureError, match="a frame claims 0 bytes"):
        body_length(FRAME.pack(0, 0))


def test_a_damaged_body_is_refused() -> None:
    frame = bytearray(frame_of(EVENT))
    frame[-1] ^= 1
    with pytest.raises(CaptureError, match="checksum"):
        read_body(frame)


def test_buffers_have_the_sizes_in_the_header() -> None:
    event = decode(with_sizes(3, 24))
    assert isinstance(event, Messages)
    assert list(records(event.batch)) == list(records(EVENT.batch))


@pytest.mark.parametrize("sizes", [(3, 25), (3, 80), (33, 24), (-8, 24), (3, -1), (3.0, 24), (True, 24), ("3", 24)])
def test_a_buffer_that_is_not_inside_the_event_is_refused(sizes: tuple[Any, ...]) -> None:
    with pytest.raises(CaptureError, match="a buffer is longer than the event"):
        decode(with_sizes(*sizes))


def test_a_header_that_is_not_inside_the_event_is_refused() -> None:
    body = read_body(frame_of(EVENT))
    body[:8] = (len(body) - 7).to_bytes(8, "little")
    with pytest.raises(CaptureError, match="the header is longer than the event"):
        decode(body)
