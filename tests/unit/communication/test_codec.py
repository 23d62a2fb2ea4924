"""Frames: how many there are, what each holds, and which are refused."""

from __future__ import annotations

import enum
import time as clock
from traceback import walk_tb

import msgpack
import numpy as np
import pytest

from tests.strategies_communication import same_batch, same_message
from timely.communication.codec import (
    INLINE_BYTES,
    MAGIC,
    MAX_FRAMES,
    PROTOCOL,
    Hello,
    MessageEncoder,
    WireMessage,
    decode,
)
from timely.communication.message import (
    Data,
    Failure,
    Goodbye,
    ProgressUpdate,
    Shape,
    StallAnswer,
    StallQuestion,
    Taken,
)
from timely.communication.plain import MAX_DEPTH, PlainPacker, unpack_plain
from timely.data.container import Columns
from timely.errors import DataError, FrameError

ENCODER = MessageEncoder(sender=0, generation="g")


def data(*columns: np.ndarray) -> Data:
    return Data(0, 1, (2, 3), Columns(columns))


def records(*values: object) -> Data:
    return Data(0, 1, (2, 3), list(values))


@pytest.mark.parametrize("time", [(-1,), (0, 2**62 + 1), (2**64 - 1,), (True,), (0.0,)])
def test_a_time_of_no_scope_is_refused(time: tuple[int, ...]) -> None:
    for message in (Data(0, 1, time, [1]), ProgressUpdate(0, ((0, time, 1),))):
        with pytest.raises(FrameError, match="is not a timestamp"):
            decode(ENCODER.encode(message, 1))


def test_a_small_batch_rides_in_the_header() -> None:
    assert len(ENCODER.encode(data(np.arange(10), np.arange(10.0)), 1)) == 1
    assert len(ENCODER.encode(data(np.zeros(INLINE_BYTES, np.int8)), 1)) == 1
    assert len(ENCODER.encode(data(np.zeros(INLINE_BYTES + 1, np.int8)), 1)) == 2


def test_a_big_batch_is_sent_without_copying() -> None:
    column = np.arange(INLINE_BYTES)
    _, frame = ENCODER.encode(data(column), 1)
    assert np.shares_memory(np.frombuffer(frame, np.int64), column)


def test_columns_of_a_big_batch_are_views_of_its_frames() -> None:
    message = data(np.arange(INLINE_BYTES), np.arange(INLINE_BYTES) * 0.5)
    frames = [bytearray(frame) for frame in ENCODER.encode(message, 1)]
    decoded = decode(frames).message
    assert same_message(decoded, message)
    assert isinstance(decoded, Data)
    assert isinstance(decoded.batch, Columns)
    for column, frame in zip(decoded.batch.columns, frames[1:], strict=True):
        assert np.shares_memory(column, np.frombuffer(frame, np.uint8))


def test_columns_of_a_small_batch_are_aligned_and_writable() -> None:
    envelope = decode(ENCODER.encode(data(np.arange(3, dtype=np.int8), np.arange(3)), 1))
    assert isinstance(envelope.message, Data)
    batch = envelope.message.batch
    assert isinstance(batch, Columns)
    assert all(column.flags.aligned and column.flags.writeable for column in batch.columns)


def test_a_batch_of_strided_columns_comes_back() -> None:
    message = data(np.arange(20)[::2], np.arange(20)[::-2])
    decoded = decode(ENCODER.encode(message, 1)).message
    assert isinstance(decoded, Data)
    assert same_batch(decoded.batch, message.batch)


def test_an_empty_batch_comes_back() -> None:
    message = data(np.empty(0, np.int64), np.empty(0, np.dtypes.StringDType()))
    decoded = decode(ENCODER.encode(message, 1)).message
    assert isinstance(decoded, Data)
    assert same_batch(decoded.batch, message.batch)


def test_numpy_scalars_in_records_become_plain_numbers() -> None:
    decoded = decode(ENCODER.encode(records(np.int64(3), (np.float64(0.5), np.str_("a"))), 1)).message
    assert isinstance(decoded, Data)
    assert decoded.batch == [3, (0.5, "a")]


class Colour(enum.IntEnum):
    RED = 1


def test_times_may_be_numpy_integers() -> None:
    time = (np.int64(2), np.int64(3))
    for message, plain in [
        (Data(0, 1, time, [5]), Data(0, 1, (2, 3), [5])),
        (ProgressUpdate(0, ((4, time, np.int64(-1)),)), ProgressUpdate(0, ((4, (2, 3), -1),))),
    ]:
        assert decode(ENCODER.encode(message, 1)).message == plain
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        ENCODER.encode(Data(0, 1, (object(),), [5]), 1)  # type: ignore[arg-type]


MOMENTS = [np.datetime64(5, "ns"), np.timedelta64(7, "ns"), np.void(b"ab")]
CHANGED = [
    bytearray(b"ab"),
    memoryview(b"ab"),
    msgpack.ExtType(5, b"x"),
    msgpack.ExtType(1, b"x"),
    msgpack.Timestamp(1),
]


@pytest.mark.parametrize("record", [object(), {1, 2}, 1j, Colour.RED, np.complex128(1j), range(3), *MOMENTS, *CHANGED])
def test_a_record_that_is_not_plain_data_is_refused_by_name(record: object) -> None:
    for value in (record, ("key", record), [[record]], {"key": [1, record]}, ({"key": ({"key": record},)},)):
        with pytest.raises(DataError, match=type(record).__name__):
            ENCODER.encode(records(value), 1)


@pytest.mark.parametrize("key", [memoryview(b"ab"), msgpack.ExtType(5, b"x"), msgpack.Timestamp(1)])
def test_a_key_that_msgpack_would_change_is_refused_by_name(key: object) -> None:
    with pytest.raises(DataError, match=type(key).__name__):
        ENCODER.encode(records({key: 1}), 1)


def test_a_list_that_contains_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(DataError, match="recursion"):
        ENCODER.encode(records(endless), 1)


def test_a_refused_record_does_not_spoil_the_next_message() -> None:
    encoder = MessageEncoder(0, "g")
    with pytest.raises(DataError):
        encoder.encode(records(("key", object())), 1)
    assert decode(encoder.encode(records(("key", 1)), 1)).message == records(("key", 1))


def test_tuples_nested_too_deep_are_refused_on_both_sides() -> None:
    value: object = ()
    for _ in range(MAX_DEPTH):
        value = (value,)
    with pytest.raises(DataError, match="deep"):
        ENCODER.encode(records(value), 1)
    packed = b"\x90"
    for _ in range(MAX_DEPTH + 1):
        packed = msgpack.packb([msgpack.ExtType(1, packed)])
    with pytest.raises(ValueError, match="deep"):
        unpack_plain(packed)


def test_tuples_nested_to_the_limit_come_back() -> None:
    value: object = ()
    for _ in range(MAX_DEPTH - 2):
        value = (value,)
    assert unpack_plain(PlainPacker().pack(value)) == value


def test_integers_of_any_size_come_back_and_take_as_many_bytes_as_they_have() -> None:
    for bits in (63, 64, 65, 71, 72, 73, 799, 800):
        for value in (1 << bits, -(1 << bits), (1 << bits) - 1):
            packed = PlainPacker().pack(value)
            assert unpack_plain(packed) == value
            assert len(packed) <= 3 + (bits + 1) // 8 + 1


def test_lists_nested_too_deep_are_refused() -> None:
    value: list[object] = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(DataError):
        ENCODER.encode(records(value), 1)
    with pytest.raises(FrameError):
        decode([MAGIC + bytes((PROTOCOL,)) + b"\x91" * 100_000])


def test_another_protocol_version_is_named() -> None:
    frame = ENCODER.encode(Goodbye(0, 1), 1)[0]
    with pytest.raises(FrameError, match=f"version 9, this is version {PROTOCOL}"):
        decode([MAGIC + b"\x09" + bytes(frame)[4:]])


@pytest.mark.parametrize("frame", [b"", MAGIC[:2], MAGIC, b"GET / HTTP/1.1"])
def test_a_frame_without_a_version_is_not_taken_for_another_version(frame: bytes) -> None:
    with pytest.raises(FrameError, match="not a frame of this protocol"):
        decode([frame])


def test_too_many_frames_are_refused() -> None:
    header = ENCODER.encode(data(np.arange(INLINE_BYTES)), 1)[0]
    with pytest.raises(FrameError, match="frames"):
        decode([header, *[b""] * MAX_FRAMES])
    most = data(*np.arange(3 * (MAX_FRAMES - 1)).reshape(MAX_FRAMES - 1, 3))
    frames = ENCODER.encode(most, 1)
    assert len(frames) == MAX_FRAMES
    assert same_message(decode(frames).message, most)


@pytest.mark.parametrize("message", [Goodbye(0, 1), data(np.arange(3))])
def test_a_superfluous_frame_is_refused(message: WireMessage) -> None:
    with pytest.raises(FrameError, match="buffers"):
        decode([*ENCODER.encode(message, 1), b"more"])


@pytest.mark.parametrize(
    "changes",
    [((0, (0,)),), ((-1, (0,), 1),), ((0, [0], 1.5),), ((0, ("a",), 1),), ((0, 0, 1),), ((True, (0,), 1),), (3,)],
)
def test_malformed_changes_are_refused(changes: tuple[object, ...]) -> None:
    with pytest.raises(FrameError):
        decode(ENCODER.encode(ProgressUpdate(0, changes), 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [-1, 1 << 48, True, 1.0, "1"])
def test_a_number_out_of_range_is_refused(number: int) -> None:
    for message in (Goodbye(0, number), Taken(((0, 1, number),))):
        with pytest.raises(FrameError, match="is not an index"):
            decode(ENCODER.encode(message, 1))


def test_numbers_have_up_to_48_bits() -> None:
    message = Goodbye(0, (1 << 48) - 1)
    assert decode(ENCODER.encode(message, 1)).message == message


@pytest.mark.parametrize(
    "message",
    [
        Taken(((1, 2),)),  # type: ignore[arg-type]
        Taken(((1, 2, 3, 4),)),  # type: ignore[arg-type]
        Taken((3,)),  # type: ignore[arg-type]
        Shape(0, "digest", ()),  # type: ignore[arg-type]
        Shape(0, b"digest", (b"map",)),  # type: ignore[arg-type]
        StallAnswer(0, ("one", 2)),  # type: ignore[arg-type]
        StallAnswer(0, "one"),  # type: ignore[arg-type]
        StallQuestion(0, 1, -2, (3,)),
        Failure(0, b"text"),  # type: ignore[arg-type]
        Hello(1, 1, 1, 1, 1, "every"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_a_field_of_the_wrong_type_is_refused(message: WireMessage) -> None:
    with pytest.raises(FrameError):
        decode(ENCODER.encode(message, 1))


def test_taken_messages_are_counted_by_channel() -> None:
    message = Taken(((0, 1, 2), (3, 4, 5)))
    assert decode(ENCODER.encode(message, 1)).message == message


def test_a_length_that_promises_more_than_there_is_costs_nothing() -> None:
    start = clock.perf_counter()
    with pytest.raises(FrameError):
        decode([MAGIC + bytes((PROTOCOL,)) + b"\xdd\xff\xff\xff\xff"])
    assert clock.perf_counter() - start < 20


def test_what_cannot_be_packed_is_not_located_in_the_code_of_the_packer() -> None:
    with pytest.raises(DataError) as raised:
        PlainPacker().pack([(1, [{2}])])
    assert not any("msgpack" in frame.f_code.co_filename for frame, _ in walk_tb(raised.value.__traceback__))
