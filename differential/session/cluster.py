"""A session with workers in other processes, and what it asks of them.

The first process has the program and the catalog; `differential.session.coordinator` starts the others, each of which
runs one worker (`differential.session.member`). Both are clusters to their engines, and exchange messages over a
channel (`differential.session.channel`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from differential.session.call import Call
from differential.session.item import Item
from timely import Config


class Control(NamedTuple):
    """What a cluster may ask of the engine in its process."""

    first: Callable[[], Call[Any]]
    """Returns the call after which all others are made by all workers. Nothing keeps it: it has those that follow."""
    tail: Callable[[], Call[Any]]
    """Returns the last call that has been added."""
    noted: set[Item]
    """The items of which something is counted or kept that was not looked at yet."""
    fail: Callable[[Item, BaseException], object]
    """Lets an item fail."""
    lose: Callable[[BaseException], object]
    """Notes that another process has ended though nobody asked for it."""


class Cluster:
    """The workers of a session that are in other processes, as one process sees them; here, there are none.

    `config` has the number of workers. A subclass overrides the methods for which its process has something to do.
    """

    def __init__(self, config: Config) -> None:
        self._config = config

    def connected(self, control: Control) -> AbstractContextManager[Config]:
        """Start the processes, or join them; yield the configuration of this process, and leave them at the end."""
        return nullcontext(self._config)

    def pack(self, call: Call[Any]) -> None:
        """Make a call ready to be sent. Raises SessionError where it cannot be."""

    def wake(self) -> None:
        """Send the calls that have been added."""

    def settle(self, item: Item) -> None:
        """Exchange `item.refused`. Raises Closing where the session ends."""

    def fail(self, item: Item, error: BaseException) -> None:
        """Mark an item as failed in the other processes."""

    def left(self, item: Item) -> None:
        """Record that the worker of this process has dropped an item."""

    def note_functions(self) -> None:
        """Record which functions of the program run there."""

    def interrupt(self, item: Item | None, is_noted: bool) -> None:
        """Interrupt the functions of the program that run there, of an item or all (see `Engine.interrupt`)."""

    def close(self) -> None:
        """End the session there."""

    def kill(self) -> None:
        """End the processes that were started and have not ended."""
