"""Messages of several frames into and out of ZeroMQ sockets, large frames without copying them.

Nothing here waits: what a socket does not take, or has not got, is said at once.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import zmq

from timely.communication.codec import MAX_FRAMES, Frames

COPY_BYTES = 1 << 18
"""ZeroMQ copies frames of up to so many bytes, which costs less than to be told when it has read them: by a thread that
takes the interpreter from the worker."""

_POLLIN = int(zmq.POLLIN)
_NOBLOCK = int(zmq.NOBLOCK)
_SNDMORE = int(zmq.SNDMORE)


def size_of(frame: bytes | memoryview) -> int:
    """Return the bytes of a frame."""
    return frame.nbytes if type(frame) is memoryview else len(frame)


def transmit(push: zmq.Socket[bytes], frames: Frames) -> bool:
    """Hand the frames of a message over to ZeroMQ; return whether it took them."""
    last = len(frames) - 1
    try:
        for position, frame in enumerate(frames):
            flags = _NOBLOCK if position == last else _NOBLOCK | _SNDMORE
            push.send(frame, flags, copy=size_of(frame) <= COPY_BYTES)
    except zmq.Again:
        return False
    return True


def readable(pull: zmq.Socket[bytes]) -> bool:
    """Return whether a message waits at a socket."""
    return bool(cast(int, pull.get(zmq.EVENTS)) & _POLLIN)


def read(pull: zmq.Socket[bytes]) -> Frames:
    """Return the frames of the message that waits at a socket; of too many, more than a message may have."""
    frame = pull.recv(_NOBLOCK, copy=False)
    frames: Frames = [frame.bytes]
    while frame.more:
        frame = pull.recv(_NOBLOCK, copy=False)
        if len(frames) <= MAX_FRAMES:
            frames.append(aligned(frame.buffer))
    return frames


def aligned(view: memoryview) -> memoryview:
    """Return the bytes at an address divisible by eight: the view itself, or a copy.

    ZeroMQ cuts small frames out of one buffer wherever they happen to lie; kernels take aligned columns only.
    """
    words = np.frombuffer(view, np.int64, len(view) // 8)
    return view if words.flags.aligned else memoryview(bytearray(view))
