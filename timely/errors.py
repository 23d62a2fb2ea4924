"""Every error this library raises on purpose.

An error says what happened, where (operator, time, worker, the user's file and line) and what to do. All of
them derive from `TimelyError`, so a program can tell our refusals from its own bugs, and a script that lets one escape
ends with the message alone, without a traceback through our internals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

__all__ = [
    "BuildError",
    "CapabilityError",
    "CapabilityWarning",
    "CaptureError",
    "ConfigError",
    "CycleError",
    "DataError",
    "FrameError",
    "LateWarning",
    "OperatorError",
    "PeerFailed",
    "PeerLost",
    "ShapeError",
    "SpillError",
    "StalledError",
    "TimelyError",
    "TraceError",
    "TransportError",
    "UnsettledError",
    "UnsettledWarning",
]


class TimelyError(Exception):
    """The root of the errors raised by `timely` and `differential`."""

    _render_traceback_: ClassVar[Callable[[TimelyError], list[str]]]
    """What a notebook shows of an error, once there is something to be said of it (see `failure`)."""


class BuildError(TimelyError):
    """A dataflow was put together in a way that has no meaning (streams of different scopes, a loop left open, ...)."""


class CycleError(BuildError):
    """A cycle of the dataflow does not advance its timestamps, so nothing in it could ever be final."""


class CapabilityError(TimelyError):
    """A capability was used after it was dropped, or asked for a time it does not permit."""


class DataError(TimelyError):
    """Data that an operator cannot take: wrong number or kind of columns, lengths that differ, values out of range.

    `time` is the data's time, where that is not the time of the message being handled.
    """

    def __init__(self, message: str, time: tuple[int, ...] | None = None) -> None:
        super().__init__(message)
        self.time = time


class UnsettledError(DataError):
    """A loop changes beyond its limit; names the round and some of what changes."""


class UnsettledWarning(RuntimeWarning):
    """A loop goes on for very long."""


class CapabilityWarning(RuntimeWarning):
    """A capability was forgotten: neither dropped nor held any more. Names its time, operator, line and worker."""


class LateWarning(RuntimeWarning):
    """Records came after their window had ended and were left out. Names one, the operator, line and worker."""


class OperatorError(TimelyError):
    """User code in an operator raised: names operator, time, worker and line. `__cause__` is the original."""


class ShapeError(TimelyError):
    """Workers built different dataflows; names the first operator that differs."""


class ConfigError(TimelyError):
    """The configuration (options, environment, host file) is not usable."""


class TransportError(TimelyError):
    """Sockets could not be set up: an address in use, a peer that did not turn up, an unprotected address."""


class FrameError(TimelyError):
    """Bytes that are not one of our frames. Refused and counted; never ends a run."""


class SpillError(TimelyError):
    """Part of a trace could not be put into a file."""


class TraceError(TimelyError):
    """A trace was asked for what it cannot tell: a time that is not final yet, or was compacted away."""


class CaptureError(TimelyError):
    """What was captured cannot be replayed: cut off, damaged, or contradicting itself. Names the file and the place."""


class PeerFailed(TimelyError):
    """Another worker raised; its message is included. This worker ends because the computation cannot go on."""


class PeerLost(PeerFailed):
    """Another process is gone without a farewell."""


class StalledError(TimelyError):
    """A worker waits for something that nothing can bring about; the message says who holds it back."""
