"""Messages of several frames into and out of ZeroMQ sockets; large frames are not copied.

Nothing here blocks: the functions report at once what a socket does not accept or does not have. `check_frames` has the
limits on a message between processes: the size of a frame, and the number of frames.
"""

from __future__ import annotations

import sys
from typing import cast

import numpy as np
import zmq

from timely.communication.codec import MAX_FRAMES, Frames
from timely.communication.message import Data, Message, Shape
from timely.errors import DataError

COPY_BYTES = 1 << 18
"""ZeroMQ copies frames up to this size. It reads larger ones in place and then notifies this process, from a thread
that takes the interpreter from the worker: for a small frame, that costs more than a copy."""

HANDSHAKE_FAILED = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)
"""The events of a monitor about a peer with other keys, or another protocol."""

_POLLIN = int(zmq.POLLIN)
_NOBLOCK = int(zmq.NOBLOCK)
_SNDMORE = int(zmq.SNDMORE)


def size_of(frame: bytes | memoryview) -> int:
    return frame.nbytes if type(frame) is memoryview else len(frame)


def transmit(push: zmq.Socket[bytes], frames: Frames) -> bool:
    """Pass the frames of a message to ZeroMQ; return whether it accepted them."""
    last = len(frames) - 1
    # ZeroMQ delivers all frames of a message or none, so a message that it does not accept leaves nothing behind.
    try:
        for position, frame in enumerate(frames):
            flags = _NOBLOCK if position == last else _NOBLOCK | _SNDMORE
            push.send(frame, flags, copy=size_of(frame) <= COPY_BYTES)
    except zmq.Again:
        return False
    return True


def readable(pull: zmq.Socket[bytes]) -> bool:
    return bool(cast(int, pull.get(zmq.EVENTS)) & _POLLIN)


def read(pull: zmq.Socket[bytes]) -> Frames:
    """Return the frames of the message waiting at a socket: at most one more than a message may have."""
    frame = pull.recv(_NOBLOCK, copy=False)
    frames: Frames = [frame.bytes]
    while frame.more:
        frame = pull.recv(_NOBLOCK, copy=False)
        if len(frames) <= MAX_FRAMES:
            frames.append(aligned(frame.buffer))
    return frames


def aligned(view: memoryview) -> memoryview:
    """Return the bytes at an address divisible by eight: the view itself, or a copy.

    ZeroMQ cuts small frames out of one buffer at arbitrary offsets, but kernels require aligned columns.
    """
    words = np.frombuffer(view, np.int64, len(view) // 8)
    return view if words.flags.aligned else memoryview(bytearray(view))


def check_frames(message: Message, frames: Frames, frame_bytes: int) -> None:
    """Raise `DataError` if a message has too many frames, or one of more than `frame_bytes` bytes."""
    if len(frames) > MAX_FRAMES:
        raise DataError(
            f"a batch of {len(frames) - 1} buffers cannot be sent to another process: the limit is "
            f"{MAX_FRAMES - 1} (one per column, two per column of text or bytes); send fewer columns"
        )
    largest = max(map(size_of, frames))
    if largest > frame_bytes:
        advice = "send smaller batches, or set" if isinstance(message, Data) else "set"
        raise DataError(
            f"{_describe(message)} of {largest} bytes cannot be sent to another process: the limit is "
            f"{frame_bytes} bytes; {advice} TIMELY_FRAME_BYTES for all processes"
        )


def _describe(message: Message) -> str:
    """Return a description of a message that is too large for a frame. Workers exchange shapes only if they differ."""
    if isinstance(message, Data):
        return "a column"
    if isinstance(message, Shape):
        return f"the description of dataflow {message.dataflow}, which another worker built in another way,"
    return f"a message of kind {type(message).__name__}"


def next_event(monitor: zmq.Socket[bytes]) -> int:
    """Receive the next event of a monitor, the socket on which ZeroMQ reports about the connections of another one.

    Return its kind: one of `zmq.Event`.
    `zmq.utils.monitor` does so as well, but imports asyncio.

    >>> with zmq.Context() as context, context.socket(zmq.PULL) as socket, socket.get_monitor_socket() as monitor:
    ...     _ = socket.bind("inproc://example"), socket.bind("tcp://127.0.0.1:*")
    ...     zmq.Event(next_event(monitor)).name
    'LISTENING'
    """
    kind_and_value, _ = monitor.recv_multipart()
    return int.from_bytes(kind_and_value[:2], sys.byteorder)
