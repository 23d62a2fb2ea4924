"""Captured streams: what flowed on a stream, as a sequence of events that can be kept, sent elsewhere, and replayed.

Two kinds of event say all there is to say of a stream: `Messages` (a batch at a time), and `Progress` (how the frontier
moved, as changes of a multiset of times that starts with the least time, once). The order of events is their meaning: a
message's time is in advance of the frontier that the progress before it adds up to, and the stream is complete when
that frontier is empty.

Events are pushed to an `EventSink` and taken from an `EventSource`; `EventQueue` is both, in memory. Files and sockets
are in `timely.communication`. Other packages add kinds of events with `register`; an event is plain data and at most
one batch, and reading one is total: `ValueError` on anything that was not written.

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
    """Something that is captured.

    >>> event: Event = Messages((0,), [1, 2])
    >>> event.parts(), Messages.from_parts(*event.parts())
    (((0,), [1, 2]), Messages((0,), [1, 2]))
    """

    kind: ClassVar[str]

    def parts(self) -> tuple[Any, Batch | None]:
        """Return plain data and a batch, which `from_parts` makes the event of again."""
        ...

    @classmethod
    def from_parts(cls, plain: Any, batch: Batch | None) -> Self:
        """Return the event with these parts; raise `ValueError` when there is none."""
        ...


class EventSink(Protocol):
    """Takes events, in order.

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
        """Take an event; it may be kept back until `flush`."""
        ...

    def flush(self) -> None:
        """Let readers see all events pushed."""
        ...

    def close(self) -> None:
        """Flush, and take no more. May be called twice."""
        ...


class EventSource(Protocol):
    """Gives events, in the order in which they were pushed.

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
        """Return the next event, or None when there is none now."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether there will be no more events."""
        ...

    def close(self) -> None:
        """Let go of files and sockets. May be called twice."""
        ...


_kinds: dict[str, type[Event]] = {}

EventType = TypeVar("EventType", bound=type[Event])


def register(cls: EventType) -> EventType:
    """Make a kind of event known to files and sockets, and return it (a class decorator).

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
    """Return the event of this kind with these parts; raise `ValueError` when there is none.

    >>> event_of("messages", (0,), [1, 2])
    Messages((0,), [1, 2])
    """
    cls = _kinds.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise ValueError(f"unknown kind of event {kind!r}")
    return cls.from_parts(plain, batch)


@register
class Progress:
    """The frontier moved: `changes` are (time, diff) of the multiset whose least times are the frontier.

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
    """Events in memory: a sink and a source. One thread may push while another takes.

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
        """Let the queue be exhausted once it is empty."""
        self._closed = True

    def next_nowait(self) -> Event | None:
        """Take the next event, or return None."""
        return self._events.popleft() if self._events else None

    @property
    def exhausted(self) -> bool:
        """Whether there will be no more events."""
        return self._closed and not self._events


class Extracted(NamedTuple):
    """The records at a time."""

    time: Time
    records: list[Any]

    def __repr__(self) -> str:
        return repr(tuple(self))


def extract(source: EventSource) -> list[Extracted]:
    """Return (time, sorted records) for the messages that a source has now, in lexicographic order of times.

    Records of a time that have no order, such as dictionaries, come as they came.

    >>> extract(EventQueue([Messages((1,), [5]), Messages((0,), [2, 1]), Messages((1,), [4])]))
    [((0,), [1, 2]), ((1,), [4, 5])]
    """
    found: dict[Time, list[Any]] = {}
    while (event := source.next_nowait()) is not None:
        if isinstance(event, Messages):
            found.setdefault(event.time, []).extend(records(event.batch))
    return [Extracted(time, _in_order(found[time])) for time in sorted(found)]


def _in_order(found: list[Any]) -> list[Any]:
    """Return records sorted, or as they are where some cannot be compared."""
    try:
        return sorted(found)
    except (TypeError, ValueError):
        return found


def checked_time(value: Any) -> Time:
    """Return a timestamp; raise `ValueError` when it is none.

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
    """Return an integer; raise `ValueError` when it is none.

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
