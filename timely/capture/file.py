"""Captured events in a file, which is only ever appended to.

A writer flushes whole events, so that a reader may follow a file while it is written. A program that was killed may
leave the beginning of an event at the end: a reader refuses it, naming file and offset (or waits for the rest, when it
follows), and a writer that resumes the file cuts it off first. What was flushed outlives the program, not a failure of
the machine: nothing waits for the disk.
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
    """A sink that appends to a file. Without `resume` the file must not exist.

    >>> from tempfile import TemporaryDirectory
    >>> from timely.capture import EventFileReader, EventFileWriter, extract
    >>> with TemporaryDirectory() as directory:
    ...     writer = EventFileWriter(f"{directory}/0.events")
    ...     _ = example(lambda scope: scope.to_stream(range(3)).capture_into(writer))
    ...     example(lambda scope: replay_into(scope, [EventFileReader(f"{directory}/0.events")]))
    [0, 1, 2]

    What a stream is captured with can be written by any program:

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
                whole = _length_of_whole_events(self.path)
                os.truncate(self.path, whole)
                self._file: BufferedWriter = self.path.open("ab")
            else:
                whole = 0
                self._file = self.path.open("xb")
        except FileExistsError:
            raise CaptureError(f"{self.path} exists already: remove it, or resume it (resume=True)") from None
        except OSError as error:
            raise CaptureError(f"{self.path} cannot be written: {error.strerror}") from error
        if not whole:
            self._file.write(PREFIX)

    def push(self, event: Event) -> None:
        """Append an event. Raises CaptureError where the system takes no more, for want of room, say."""
        pieces = encode(event)
        with self._named():
            self._file.writelines(pieces)

    def flush(self) -> None:
        """Hand all events over to the operating system. Raises CaptureError as `push` does."""
        with self._named():
            self._file.flush()

    def close(self) -> None:
        """Write what is left and close the file. Raises CaptureError as `push` does."""
        with self._named():
            self._file.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CaptureError(f"{self.path} cannot be written: {error.strerror}") from error


class EventFileReader:
    """A source that reads a file. With `follow` the file may not exist yet and is not over at its end.

    Opened when first read, so that every worker may be told of all files and open its share.

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
        """Where the next event starts."""
        self.exhausted = False
        self._follow = follow
        self._file: BufferedReader | None = None

    def __str__(self) -> str:
        return str(self.path)

    def next_nowait(self) -> Event | None:
        """Return the next event, or None when there is none now; raise `CaptureError` naming the place of damage."""
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
        """Close the file: nothing more is read."""
        self.exhausted = True
        if self._file is not None:
            self._file.close()

    def _next_body(self) -> bytearray | None:
        file = self._file or self._open()
        if file is None:
            return None
        file.seek(self.offset)
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
        # A length is only a claim: memory is taken for bytes that are there.
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
        """The file ends here: where there should be an event more, or inside one."""
        if self._follow:
            return
        if found or not self.offset:
            raise CaptureError("the file ends in the middle of an event: its writer did not finish; resume or cut it")
        self.close()


def _length_of_whole_events(path: Path) -> int:
    """Return where the last whole event ends; damage before the end is an error."""
    with closing(EventFileReader(path, follow=True)) as reader:
        while reader.next_nowait() is not None:
            pass
        return reader.offset
