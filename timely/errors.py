"""The errors and warnings that this library raises on purpose.

A message states what happened, where (operator, time, worker, the user's file and line) and what to do. All errors
derive from `TimelyError`, so a program can distinguish them from its own bugs. If an error escapes from a script that
`timely run` runs, or that has called `execute`, the script ends with the message and its own lines, without a traceback
through this library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

__all__ = [
    "BuildError",
    "CapabilityError",
    "CapabilityWarning",
    "CaptureError",
    "ComparisonError",
    "ConfigError",
    "CycleError",
    "DataError",
    "DataflowFailed",
    "FencedError",
    "FrameError",
    "LateWarning",
    "NegativeCountError",
    "OperatorError",
    "PeerFailed",
    "PeerLost",
    "SessionError",
    "ShapeError",
    "SpillError",
    "StalledError",
    "StateError",
    "StoreError",
    "TimelyError",
    "TraceError",
    "TransportError",
    "UncommittedWarning",
    "UnsettledError",
    "UnsettledWarning",
]


class TimelyError(Exception):
    """The base class of the errors raised by `timely` and `differential`."""

    _render_traceback_: ClassVar[Callable[[TimelyError], list[str]]]
    """Returns the lines that a notebook shows instead of a traceback; installed by `timely.run.failure`."""


class BuildError(TimelyError):
    """A dataflow is built in a way that has no meaning: streams of different scopes, a loop left open, ..."""


class CycleError(BuildError):
    """A cycle of the dataflow does not advance its timestamps, so no time on it could ever complete."""


class CapabilityError(TimelyError):
    """A capability is used after it was dropped, or for a time that it does not permit."""


class DataError(TimelyError):
    """Data does not suit an operator: wrong number or type of columns, different lengths, values out of range.

    `time` is the time of the data if that is not the time of the message being processed. `fault` is the message
    without the `remedy` at its end, for whoever knows a better one.
    """

    def __init__(self, message: str, time: tuple[int, ...] | None = None, *, remedy: str = "") -> None:
        super().__init__(message + remedy)
        self.time = time
        self.fault = message


class NegativeCountError(DataError):
    """A record occurs a negative number of times, or a key has a negative number of records, where this is counted."""


class ComparisonError(DataError):
    """A function compares a column with what no value of it is like: numbers with text, or anything with None.

    `obj` is the column, in the process whose function does so.
    """

    def __init__(self, message: str, obj: object = None) -> None:
        super().__init__(message)
        self.obj = obj


class UnsettledError(DataError):
    """A loop still changes at its limit of rounds; names the round and some of the changes."""


class UnsettledWarning(RuntimeWarning):
    """A loop has been running for very many rounds."""


class CapabilityWarning(RuntimeWarning):
    """A capability was garbage-collected without having been dropped; names its time, operator, line and worker."""


class LateWarning(RuntimeWarning):
    """Records arrived after their window had ended and were ignored; names one, the operator, line and worker."""


class UncommittedWarning(RuntimeWarning):
    """A session was closed with statements that no commit had made visible; names their number and their tables."""


class OperatorError(TimelyError):
    """User code in an operator raised; names the operator, time, worker and line. `__cause__` is the original error.

    `dataflow` is the number of the dataflow, if the error comes from one that runs.
    """

    dataflow: int | None = None


class DataflowFailed(TimelyError):
    """A dataflow is used after an error or an interrupt that ended one of its steps: it has lost a part of its data.

    Names the dataflow, and what happened. Other dataflows of a single worker go on.
    """


class SessionError(TimelyError):
    """A statement of a `differential.Session` is refused, or one of its views failed; names the table or view."""


class ShapeError(TimelyError):
    """Workers built different dataflows; names the first operator that differs."""


class ConfigError(TimelyError):
    """The configuration (options, environment, host file) is invalid."""


class TransportError(TimelyError):
    """Sockets could not be set up: an address is in use, a peer did not arrive, or an address is unprotected."""


class FrameError(TimelyError):
    """Received bytes are not a frame of this protocol. They are ignored and counted; the run continues."""


class SpillError(TimelyError):
    """Part of a trace could not be written to a file."""


class TraceError(TimelyError):
    """A trace was asked for contents that it does not have: at a time that is incomplete or compacted away."""


class CaptureError(TimelyError):
    """Captured events cannot be replayed: they are truncated, damaged or contradictory. Names the file and offset."""


class StateError(TimelyError):
    """Durable state cannot be used: it is damaged, compacted, of another format, or contradicts what was computed."""


class FencedError(StateError):
    """A durable collection was claimed by another writer, removed or replaced, so its writer must end.

    Nothing of its last append was kept.
    """


class StoreError(StateError):
    """A store of durable state failed: it is full, cannot be read or written, or did not answer."""


class PeerFailed(TimelyError):
    """Another worker raised, so this one ends too; the message includes the other's."""


class PeerLost(PeerFailed):
    """Another process ended without a farewell (`timely.communication.message.Goodbye`) and without an error."""


class StalledError(TimelyError):
    """A worker waits for something that can no longer happen; the message names what holds it back."""
