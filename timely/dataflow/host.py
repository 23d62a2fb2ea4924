"""What a dataflow knows of the worker that runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from timely.communication.allocator import Allocator
from timely.config import Config
from timely.dataflow.outstanding import Outstanding
from timely.errors import CapabilityError
from timely.observe.activity import Activity
from timely.observe.log import Log
from timely.order import Time
from timely.progress.due import Agenda


class Answers(NamedTuple):
    """What the peers report that they hold: a line for each thing, by peer; and the peers that did not answer."""

    lines: dict[int, tuple[str, ...]]
    silent: list[int]


class Asker(Protocol):
    """Asks the other workers what they hold."""

    def ask(self, dataflow: int, location: int, time: Time, patience: float) -> Answers:
        """Ask what holds up `time` at a location of a dataflow, and wait `patience` seconds at most for answers."""


class Host(Protocol):
    """A worker, as its dataflows see it. `str(host)` names it."""

    index: int
    peers: int
    config: Config
    log: Log
    allocator: Allocator
    outstanding: Outstanding
    activity: Activity
    agenda: Agenda

    @property
    def explainer(self) -> Asker:
        """What asks the other workers."""

    @property
    def is_congested(self) -> bool:
        """Whether more than `Config.queue_bytes` wait for operators, or for the network, so that inputs should wait."""

    def call(self, function: Callable[[], None]) -> None:
        """Call `function` in the next step; any thread may ask for this."""

    def call_after(self, seconds: float, function: Callable[[], None]) -> None:
        """Call `function` in the first step after `seconds`; any thread may ask for this."""

    def when_idle(self, chore: Callable[[], bool]) -> None:
        """Call `chore` in steps that run no operator, until it returns False."""


def refuse_elsewhere(host: Host, name: object, call: str) -> None:
    """Raise CapabilityError unless this thread is the worker's, the only one that may call an input."""
    if host.activity.is_elsewhere():
        raise CapabilityError(
            f"{name} belongs to the thread of worker {host.index}: in another thread, use worker.call(lambda: {call})"
        )
