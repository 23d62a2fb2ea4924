"""A queue of messages from one worker to another in memory that both of their processes map.

The memory has a header of one page, with three words: `HEAD` and `TAIL` count the bytes that the sender has written and
the receiver has taken, in total, and `ASLEEP` is 1 while the receiver sleeps. The rest is a ring of records: the size
of the record, the number of the message, the number of frames, their lengths, and the frames, each from a multiple of
eight bytes. A record never wraps around: a size of -1 means that the next one is at the beginning.

    TAIL ≤ HEAD ≤ TAIL + RING_BYTES

The sender writes a record before it advances HEAD, so a sender that dies in between leaves nothing that anyone reads.
The receiver copies a record before it advances TAIL, so nothing that it returns changes later. This relies on a
processor on which other cores see stores in their order, as those of x86-64 do (`inbox.ARE_POSSIBLE`).

There is no lock, and nothing waits: `put` returns False if there is no room.

>>> memory = bytearray(PAGE + RING_BYTES)
>>> writer, reader = RingWriter(memory), RingReader(memory)
>>> writer.put(1, [b"header", memoryview(b"column")])
True
>>> reader.is_ready(1), [bytes(frame) for frame in reader.take()], reader.is_ready(2)
(True, [b'header', b'column'], False)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from mmap import mmap

from timely.communication.codec import Frames
from timely.communication.wire import size_of
from timely.errors import FrameError

PAGE = 4096
RING_BYTES = 1 << 19
"""Small enough to stay in a core's second-level cache: a ring that is larger is slower, not faster."""

MESSAGE_BYTES = 1 << 16
"""A larger message takes the socket, whose thread copies it while the workers compute."""

HEAD, TAIL, ASLEEP = 0, 64, 128
"""The positions of the words in the header, each in a cache line of its own."""

_FIRST = PAGE // 8
_WORDS = RING_BYTES // 8
_FIXED = 3
_WRAP = -1


def words_of(frames: Sequence[bytes | memoryview]) -> int:
    """Return the number of words of eight bytes that the record of a message takes.

    >>> words_of([b"12345678", b"9"])
    7
    """
    return _FIXED + len(frames) + sum([(size_of(frame) + 7) >> 3 for frame in frames])


class _End:
    """What both ends have: the memory as bytes and as words."""

    __slots__ = ("_bytes", "_memory", "_words")

    def __init__(self, memory: mmap | bytearray) -> None:
        self._memory = memory
        self._bytes = memoryview(memory)
        self._words = self._bytes.cast("q")

    def close(self) -> None:
        """Unmap the memory; if the traceback of an interrupt has a view of it, with that view. May be called twice."""
        self._words.release()
        self._bytes.release()
        if isinstance(self._memory, mmap):
            with suppress(BufferError):
                self._memory.close()


class RingWriter(_End):
    """The sender's end."""

    __slots__ = ("_head",)

    def __init__(self, memory: mmap | bytearray) -> None:
        super().__init__(memory)
        self._head = self._words[HEAD]

    def put(self, number: int, frames: Frames) -> bool:
        """Append the `number`-th message to this receiver; return whether there was room."""
        words = self._words
        size = words_of(frames)
        head = self._head
        at = (head >> 3) % _WORDS
        skipped = _WORDS - at if at + size > _WORDS else 0
        end = head + 8 * (skipped + size)
        # TAIL only grows, so an old value of it shows less room than there is, never more.
        if end - words[TAIL] > RING_BYTES:
            return False
        if skipped:  # what is left before the end of the memory counts as written, and as taken
            words[_FIRST + at] = _WRAP
            at = 0
        at += _FIRST
        words[at], words[at + 1], words[at + 2] = size, number, len(frames)
        at += _FIXED
        place = 8 * (at + len(frames))
        for frame in frames:
            length = size_of(frame)
            words[at] = length
            at += 1
            if length:
                self._bytes[place : place + length] = frame if type(frame) is bytes else memoryview(frame).cast("B")
                place += (length + 7) & ~7
        # Last, when the record is whole: the receiver looks at nothing beyond HEAD.
        self._head = words[HEAD] = end
        return True

    @property
    def is_receiver_asleep(self) -> bool:
        """Whether the receiver sleeps, or is about to, and has not been woken by this sender."""
        return self._words[ASLEEP] != 0

    def note_woken(self) -> None:
        """Record that this sender wakes the receiver. Must precede the ring of its bell."""
        self._words[ASLEEP] = 0


class RingReader(_End):
    """The receiver's end."""

    __slots__ = ("_tail",)

    def __init__(self, memory: mmap | bytearray) -> None:
        super().__init__(memory)
        self._tail = self._words[TAIL]

    def is_ready(self, number: int) -> bool:
        """Return whether the message of this number is the next one here.

        If the next one is a later message, the missing ones come by the socket.
        """
        words, tail = self._words, self._tail
        if words[HEAD] == tail:
            return False
        at = _FIRST + (tail >> 3) % _WORDS
        return words[_FIRST + 1 if words[at] == _WRAP else at + 1] == number

    def take(self) -> Frames:
        """Remove and return the frames of the next message, which must be there; raise `FrameError` if it is damaged.

        The first frame is bytes. The others are writable and aligned.
        """
        words, tail = self._words, self._tail
        at = (tail >> 3) % _WORDS
        if words[_FIRST + at] == _WRAP:
            tail += 8 * (_WORDS - at)
            at = 0
        size, count = words[_FIRST + at], words[_FIRST + at + 2]
        if not (0 < count and _FIXED + count <= size <= _WORDS - at):
            raise FrameError("a damaged record in shared memory")
        # Copied before they are checked: the sender can still write to the memory.
        lengths = words[_FIRST + at + _FIXED : _FIRST + at + _FIXED + count].tolist()
        place = PAGE + 8 * (at + _FIXED + count)
        end = PAGE + 8 * (at + size)
        frames: Frames = []
        for length in lengths:
            if not 0 <= length <= end - place:
                raise FrameError("a damaged record in shared memory")
            part = self._bytes[place : place + length]
            frames.append(memoryview(bytearray(part)) if frames else bytes(part))
            place += (length + 7) & ~7
        # Last, when all was copied: the sender overwrites what is before TAIL.
        self._tail = words[TAIL] = tail + 8 * size
        return frames

    def set_asleep(self, value: bool) -> None:
        self._words[ASLEEP] = value
