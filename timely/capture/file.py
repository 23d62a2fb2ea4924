"""Captured events in a file, which is only ever appended to.

A writer flushes whole events, so a reader may follow the file while it is being written. A program that is killed may
leave part of an event at the end. A reader refuses it, naming the file and the offset (or, if it follows the file,
waits for the rest); a writer that resumes the file truncates it first. Flushed events survive a failure of the program,
but not one of the machine: nothing waits for the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import BufferedReader, BufferedWriter
from pathlib import Path

from timely.capture.codec import FRAME, PREFIX, body_length, check, decode, encode
from timely.capture.event import Event
from timely.errors import CaptureError


class EventFileWriter:
    """A sink that appends to a file. Unless `resume` is set, the file must not exist.

    >>> from tempfile import TemporaryDirectory
    >>> from timely.capture import EventFileReader, EventFileWriter, extract
    >>> with TemporaryDirectory() as directory:
    ...     writer = EventFileWriter(f"{directory}/0.events")
    ...     _ = example(lambda scope: scope.to_stream(range(3)).capture_into(writer))
    ...     example(lambda scope: replay_into(scope, [EventFileReader(f"{directory}/0.events")]))
    [0, 1, 2]

    A program can also write events itself:

    >>> from timely.capture.event import Messages, Progress
    >>> with TemporaryDirectory() as directory:
    ...     writer = EventFileWriter(f"{directory}/0.events")
    ...     for event in (Messages((0,), [1, 2]), Progress((((0,), -1),))):
    ...         writer.push(event)
    ...     writer.flush()  # readers may see it from here on
    ...     writer.close()
    ...     extract(EventFileReader(f"{directory}/0.events"))
    [((0,), [1, 2])]
    """

    def __init__(self, path: str | Path, *, resume: bool = False) -> None:
        self.path = Path(path)
        try:
            if resume and self.path.exists():
                whole = _length_of_whole_events(self.path)  # 0 where even the prefix is cut off, which is written anew
                os.truncate(self.path, whole)
                self._file: BufferedWriter = self.path.open("ab")
            else:
                whole = 0
                self._file = self.path.open("xb")
        except FileExistsError:
            raise CaptureError(f"{self.path} already exists: remove it, or resume it (resume=True)") from None
        except OSError as error:
            raise CaptureError(f"{self.path} cannot be written: {error.strerror}") from error
        if not whole:
            self._file.write(PREFIX)

    def push(self, event: Event) -> None:
        """Append an event. Raises CaptureError if it cannot be written: the disk is full, say, or this was closed."""
        pieces = encode(event)
        with self._named():
            self._file.writelines(pieces)

    def flush(self) -> None:
        """Pass all events to the operating system. Raises CaptureError as `push` does."""
        with self._named():
            self._file.flush()

    def close(self) -> None:
        """Flush and close the file. Raises CaptureError as `push` does."""
        with self._named():
            self._file.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CaptureError(f"{self.path} cannot be written: {error.strerror}") from error
        except ValueError as error:  # of a closed file
            raise CaptureError(f"{self.path} was closed: give each capture a sink of its own") from error


class EventFileReader:
    """A source that reads a file. With `follow` the file may be created later, and more may be appended to it.

    The file is opened when it is first read, so every worker can be given all files and open only its share.

    >>> from tempfile import TemporaryDirectory
    >>> from timely.capture import EventFileReader, EventFileWriter, extract
    >>> with TemporaryDirectory() as directory:
    ...     _ = example(lambda scope: scope.to_stream([3, 4]).capture_into(EventFileWriter(f"{directory}/0.events")))
    ...     reader = EventFileReader(f"{directory}/0.events")
    ...     while (event := reader.next_nowait()) is not None:
    ...         print(event)
    ...     reader.close()
    Messages((0,), [3, 4])
    Progress((((0,), -1),))
    """

    def __init__(self, path: str | Path, *, follow: bool = False) -> None:
        self.path = Path(path)
        self.offset = 0
        """The offset at which the next event starts."""
        self.exhausted = False
        self._follow = follow
        self._file: BufferedReader | None = None

    def __str__(self) -> str:
        return str(self.path)

    def next_nowait(self) -> Event | None:
        """Return the next event, or None if none is available now; raise `CaptureError` naming the offset of damage."""
        if self.exhausted:
            return None
        try:
            body = self._next_body()
            if body is None:
                return None
            event = decode(body)
        except CaptureError as error:
            raise CaptureError(f"{self.path}, byte {self.offset}: {error}") from error
        self.offset += FRAME.size + len(body)
        return event

    def close(self) -> None:
        """Close the file and stop reading."""
        self.exhausted = True
        if self._file is not None:
            self._file.close()

    def _next_body(self) -> bytearray | None:
        file = self._file or self._open()
        if file is None:
            return None
        file.seek(self.offset)  # back to its start, if the call before has found part of an event
        if self.offset == 0:
            prefix = file.read(len(PREFIX))
            if prefix != PREFIX:
                if not PREFIX.startswith(prefix):
                    raise CaptureError("not a file of captured events")
                self._end_inside(prefix)
                return None
            self.offset = len(PREFIX)
        frame = file.read(FRAME.size)
        if len(frame) < FRAME.size:
            self._end_inside(frame)
            return None
        length = body_length(frame)
        # The length is only a claim, so memory is allocated for bytes that exist.
        there = os.fstat(file.fileno()).st_size - self.offset - FRAME.size
        body = bytearray(length if length <= there else 0)
        if file.readinto(body) < length:
            self._end_inside(frame)
            return None
        check(frame, body)
        return body

    def _open(self) -> BufferedReader | None:
        try:
            self._file = self.path.open("rb")
        except FileNotFoundError as error:
            if not self._follow:
                raise CaptureError(f"cannot be read: {error.strerror}") from error
        except OSError as error:
            raise CaptureError(f"cannot be read: {error.strerror}") from error
        return self._file

    def _end_inside(self, found: bytes) -> None:
        """Handle the end of the file where another event should start, or inside one."""
        if self._follow and self._file is not None:
            self._file.seek(0, os.SEEK_END)  # drops what was read ahead, which a writer that resumes truncates
            return
        if found or not self.offset:
            raise CaptureError(
                "the file ends in the middle of an event: its writer did not finish; resume or truncate it"
            )
        self.close()


def _length_of_whole_events(path: Path) -> int:
    """Return the offset at which the last complete event ends; damage before it is an error."""
    with closing(EventFileReader(path, follow=True)) as reader:
        while reader.next_nowait() is not None:
            pass
        return reader.offset
