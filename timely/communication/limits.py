"""The limits on a message between processes: the size of a frame, and the number of frames."""

from __future__ import annotations

from timely.communication.codec import MAX_FRAMES, Frames
from timely.communication.message import Data, Message, Shape
from timely.communication.wire import size_of
from timely.errors import DataError


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
