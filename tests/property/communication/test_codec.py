"""Every message is decoded from what it is encoded to; all other bytes are refused, with one kind of exception."""

from __future__ import annotations

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given, strategies as st

from tests.strategies_communication import indices, messages, plain, same_message, same_value
from timely.communication.codec import MAGIC, PROTOCOL, MessageEncoder, WireMessage, decode
from timely.communication.plain import PlainPacker, unpack_plain
from timely.errors import FrameError

PREFIX = MAGIC + bytes((PROTOCOL,))


@given(messages, indices, indices, st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_every_message_is_decoded_from_its_frames(
    message: WireMessage, sender: int, receiver: int, generation: str
) -> None:
    envelope = decode([bytes(frame) for frame in MessageEncoder(sender, generation).encode(message, receiver)])
    assert envelope[:3] == (generation, sender, receiver)
    assert same_message(envelope.message, message)


@given(st.lists(plain, max_size=6))
def test_plain_values_keep_their_types(values: list[object]) -> None:
    assert same_value(unpack_plain(PlainPacker().pack(values)), values)


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=4))
def test_arbitrary_bytes_are_refused(frames: list[bytes]) -> None:
    with pytest.raises(FrameError):
        decode(frames)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_after_the_prefix_are_refused(body: bytes) -> None:
    with pytest.raises(FrameError):
        decode([PREFIX + body])


@pytest.mark.timeout(300)
@given(
    st.lists(plain | st.lists(plain, max_size=8), max_size=12),
    st.integers(0, 8),
    st.lists(st.binary(max_size=40), max_size=3),
)
def test_well_formed_headers_with_arbitrary_fields_raise_nothing_but_frame_errors(
    fields: list[object], code: int, buffers: list[bytes]
) -> None:
    header = msgpack.packb(["g", 0, 1, code, *fields], default=repr, unicode_errors="surrogatepass")
    with suppress(FrameError):
        decode([PREFIX + header, *buffers])


@given(messages, st.data())
def test_damaged_frames_raise_nothing_but_frame_errors(message: WireMessage, data: st.DataObject) -> None:
    frames = [bytearray(frame) for frame in MessageEncoder(0, "g").encode(message, 1)]
    damaged = frames[data.draw(st.integers(0, len(frames) - 1))]
    for _ in range(data.draw(st.integers(1, 4))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(0, len(damaged))) :]
    with suppress(FrameError):
        decode([bytes(frame) for frame in frames])
