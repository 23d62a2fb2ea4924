"""Captured streams as sequences of events, which can be kept, sent elsewhere and replayed.

Two kinds of event describe a stream completely: `Messages`, a batch at a time, and `Progress`, a move of the frontier.
Progress is a change of a multiset of times, which initially contains the least time once; the frontier consists of its
minimal times. Invariant: the time of a message is at or after the frontier given by all progress before it. The stream
is complete when the frontier is empty.

Events are pushed to an `EventSink` and taken from an `EventSource`. `EventQueue` is both, in memory; `file` and
`socket` have the others. Other packages add kinds of events with `register`. An event consists of plain data and at
most one batch, and decoding it is total: it raises `ValueError` on anything that was not encoded from an event.

>>> queue = EventQueue()
>>> _ = example(lambda scope: scope.to_stream(range(3)).capture_into(queue))
>>> extract(queue)
[((0,), [0, 1, 2])]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

from timely.data.container import Batch, records
from timely.order import LIMIT, Time


class Event(Protocol):
    """Something that was captured from a stream.

    >>> event: Event = Messages((0,), [1, 2])
    >>> event.parts(), Messages.from_parts(*event.parts())
    (((0,), [1, 2]), Messages((0,), [1, 2]))
    """

    kind: ClassVar[str]

    def parts(self) -> tuple[Any, Batch | None]:
        """Return plain data and a batch, from which `from_parts` restores the event."""

    @classmethod
    def from_parts(cls, plain: Any, batch: Batch | None) -> Self:
        """Return the event with these parts; raise `ValueError` if they are not those of an event."""


class EventSink(Protocol):
    """Accepts events in order.

    >>> class Printer:
    ...     def push(self, event):
    ...         print(event)
    ...     def flush(self):
    ...         pass
    ...     def close(self):
    ...         print("closed")
    >>> _ = example(lambda scope: scope.to_stream([5]).capture_into(Printer()))
    Messages((0,), [5])
    Progress((((0,), -1),))
    closed
    """

    def push(self, event: Event) -> None:
        """Accept an event, which may be buffered until `flush`."""

    def flush(self) -> None:
        """Make all pushed events visible to readers."""

    def close(self) -> None:
        """Flush, and accept no more events. May be called twice."""


class EventSource(Protocol):
    """Yields events in the order in which they were pushed.

    >>> class Epochs:
    ...     def __init__(self, *batches):
    ...         ends = Progress((((0,), -1),))
    ...         self.events = [Messages((0,), batch) for batch in batches] + [ends]
    ...     def next_nowait(self):
    ...         return self.events.pop(0) if self.events else None
    ...     @property
    ...     def exhausted(self):
    ...         return not self.events
    ...     def close(self):
    ...         self.events.clear()
    >>> example(lambda scope: replay_into(scope, [Epochs([1, 2], [3])]))
    [1, 2, 3]
    """

    def next_nowait(self) -> Event | None:
        """Return the next event, or None if none is available now."""

    @property
    def exhausted(self) -> bool:
        """Whether no more events will come."""

    def close(self) -> None:
        """Release files and sockets. May be called twice."""


_kinds: dict[str, type[Event]] = {}

EventType = TypeVar("EventType", bound=type[Event])


def register(cls: EventType) -> EventType:
    """Register a kind of event for files and sockets; return the class, so this can be a decorator.

    >>> @register
    ... class Remark:
    ...     kind = "remark"
    ...     def __init__(self, text):
    ...         self.text = text
    ...     def parts(self):
    ...         return self.text, None
    ...     @classmethod
    ...     def from_parts(cls, plain, batch):
    ...         return cls(plain)
    >>> event_of("remark", *Remark("half of it is loaded").parts()).text
    'half of it is loaded'
    """
    _kinds[cls.kind] = cls
    return cls


def event_of(kind: Any, plain: Any, batch: Batch | None) -> Event:
    """Return the event of this kind with these parts; raise `ValueError` if there is none.

    >>> event_of("messages", (0,), [1, 2])
    Messages((0,), [1, 2])
    """
    cls = _kinds.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise ValueError(f"unknown kind of event {kind!r}")
    return cls.from_parts(plain, batch)


@register
class Progress:
    """The frontier moved: `changes` are (time, diff) of the multiset whose minimal times are the frontier.

    >>> end_of_epoch = Progress((((0,), -1), ((1,), 1)))
    >>> Progress.from_parts(*end_of_epoch.parts())
    Progress((((0,), -1), ((1,), 1)))
    """

    kind: ClassVar[str] = "progress"
    __slots__ = ("changes",)

    def __init__(self, changes: tuple[tuple[Time, int], ...]) -> None:
        self.changes = changes

    def __repr__(self) -> str:
        return f"Progress({self.changes})"

    def parts(self) -> tuple[Any, None]:
        return self.changes, None

    @classmethod
    def from_parts(cls, plain: Any, batch: Batch | None) -> Progress:
        if batch is not None or not isinstance(plain, tuple):
            raise ValueError("not progress")
        return cls(tuple((checked_time(time), as_integer(diff)) for time, diff in plain))


@register
class Messages:
    """A batch was sent at a time.

    >>> Messages.from_parts(*Messages((3,), ["a", "b"]).parts())
    Messages((3,), ['a', 'b'])
    """

    kind: ClassVar[str] = "messages"
    __slots__ = ("batch", "time")

    def __init__(self, time: Time, batch: Batch) -> None:
        self.time = time
        self.batch = batch

    def __repr__(self) -> str:
        return f"Messages({self.time}, {self.batch})"

    def parts(self) -> tuple[Any, Batch]:
        return self.time, self.batch

    @classmethod
    def from_parts(cls, plain: Any, batch: Batch | None) -> Messages:
        if batch is None:
            raise ValueError("messages without a batch")
        return cls(checked_time(plain), batch)


class EventQueue:
    """Events in memory: a sink and a source. One thread may push while another reads.

    >>> queue = EventQueue()
    >>> queue.push(Messages((0,), [1, 2]))
    >>> queue.push(Progress((((0,), -1),)))
    >>> queue.flush()
    >>> queue.close()
    >>> queue.next_nowait(), queue.next_nowait(), queue.next_nowait(), queue.exhausted
    (Messages((0,), [1, 2]), Progress((((0,), -1),)), None, True)
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events = deque(events)
        self._closed = False

    def __len__(self) -> int:
        return len(self._events)

    def push(self, event: Event) -> None:
        """Add an event."""
        self._events.append(event)

    def flush(self) -> None:
        """Do nothing: readers see events at once."""

    def close(self) -> None:
        """Let the queue be exhausted as soon as it is empty."""
        self._closed = True

    def next_nowait(self) -> Event | None:
        """Remove and return the next event, or return None."""
        return self._events.popleft() if self._events else None

    @property
    def exhausted(self) -> bool:
        """Whether no more events will come."""
        # In this order: once it is closed nothing is added any more, so a queue found empty stays empty.
        return self._closed and not self._events


class Extracted(NamedTuple):
    """The records at a time."""

    time: Time
    records: list[Any]

    def __repr__(self) -> str:
        return repr(tuple(self))


def extract(source: EventSource) -> list[Extracted]:
    """Return (time, sorted records) of the messages that a source has now, in lexicographic order of times.

    Records that cannot be sorted, such as dictionaries, keep the order in which they arrived.

    >>> extract(EventQueue([Messages((1,), [5]), Messages((0,), [2, 1]), Messages((1,), [4])]))
    [((0,), [1, 2]), ((1,), [4, 5])]
    """
    found: dict[Time, list[Any]] = {}
    while (event := source.next_nowait()) is not None:
        if isinstance(event, Messages):
            found.setdefault(event.time, []).extend(records(event.batch))
    return [Extracted(time, _in_order(found[time])) for time in sorted(found)]


def _in_order(found: list[Any]) -> list[Any]:
    """Return records sorted, or as they are if they cannot be compared."""
    try:
        return sorted(found)
    except (TypeError, ValueError):
        return found


def checked_time(value: Any) -> Time:
    """Return `value` if it is a timestamp; raise `ValueError` otherwise.

    >>> checked_time((3, 1))
    (3, 1)
    >>> checked_time((3, -1))
    Traceback (most recent call last):
        ...
    ValueError: (3, -1) is not a timestamp
    """
    if not isinstance(value, tuple) or not value:
        raise ValueError(f"{value!r} is not a timestamp")
    for coordinate in value:
        if not 0 <= as_integer(coordinate) <= LIMIT:
            raise ValueError(f"{value!r} is not a timestamp")
    return value


def as_integer(value: Any) -> int:
    """Return `value` if it is an integer; raise `ValueError` otherwise.

    >>> as_integer(-1)
    -1
    >>> as_integer(True)
    Traceback (most recent call last):
        ...
    ValueError: True is not an integer
    """
    if type(value) is not int:
        raise ValueError(f"{value!r} is not an integer")
    return value
