"""Who holds a frontier back: the first question of everybody whose dataflow does not finish.

What holds a time up at a location are the capabilities held and the messages queued, on any worker, that could result
in something at or before it. A worker knows its own exactly, with the lines that made them; of those elsewhere the
tracker knows the counts, and their workers know the rest when asked (`timely.worker.explaining`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from timely.order import Time

if TYPE_CHECKING:
    from timely.dataflow.dataflow import Dataflow
    from timely.dataflow.plan import Surroundings

SHOWN = 20
"""How many lines are shown at most."""

EVERYWHERE = -1
"""As a location: whatever is held, wherever."""

PATIENCE = 1.0
"""Seconds to wait for other workers' answers."""


def held_here(dataflow: Dataflow, location: int, time: Time) -> list[str]:
    """Return a line for each thing this worker holds that holds up `time` at `location`, earliest first."""
    found: Counter[tuple[Time, bool, str]] = Counter()
    records: Counter[tuple[Time, bool, str]] = Counter()
    holds = _holding(dataflow, location, time)
    for operator in dataflow.operators:
        for output in operator.outputs:
            for capability in tuple(output.live):
                if holds(output.location, capability.time):
                    awaited = "" if operator.awaits is None else f", waits for {operator.awaits()}"
                    where = f"on {output}, made at {capability.origin}{awaited}"
                    found[capability.time, False, f"{where}{_round(operator.scope, capability.time)}"] += 1
        for port in operator.inputs:
            for queued, batch in tuple(port.queue):
                if holds(port.location, queued):
                    what = queued, True, f"on {port}{_round(operator.scope, queued)}"
                    found[what] += 1
                    records[what] += len(batch)
    place = _place(dataflow)
    lines = []
    for what, count in sorted(found.items()):
        held, is_message, where = what
        if is_message:
            lines.append(f"{_messages(count, records[what])} at {held} {where}, {place}")
        else:
            lines.append(f"{_several(count, 'a capability', 'capabilities')} for {held} {where}, {place}")
    return lines


def counted_elsewhere(dataflow: Dataflow, location: int, time: Time) -> list[str]:
    """Return a line for each pointstamp of which other workers hold some, as far as this one has heard."""
    own: Counter[tuple[int, Time]] = Counter()
    for operator in dataflow.operators:
        for output in operator.outputs:
            own.update((output.location, capability.time) for capability in tuple(output.live))
        for port in operator.inputs:
            own.update((port.location, queued) for queued, _ in tuple(port.queue))
    holds = _holding(dataflow, location, time)
    lines = []
    for holder, held, count in sorted(dataflow.tracker.pointstamps()):
        count -= own[holder, held]
        if count > 0 and holds(holder, held):
            what = _several(count, "a capability or message", "capabilities or messages")
            lines.append(f"{what} at {held} on other workers, {dataflow.describe(holder)}")
    return lines


def explanation(lines: Sequence[str], heading: str) -> str:
    """Return a text of a heading and indented lines, not too many."""
    shown = list(lines[:SHOWN])
    if len(lines) > SHOWN:
        shown.append(f"and {len(lines) - SHOWN:,} more")
    return "\n".join([heading, *(f"  {line}" for line in shown)])


def explain_here(dataflow: Dataflow) -> str:
    """Return what keeps a dataflow from completing, as far as this worker knows without asking."""
    lines = held_here(dataflow, EVERYWHERE, ()) + counted_elsewhere(dataflow, EVERYWHERE, ())
    if not lines:
        return f"{dataflow}: nothing is held anywhere; its last changes are being passed on"
    return explanation(lines, f"{dataflow} is kept from completing by:")


def rounds(dataflow: Dataflow) -> dict[str, Time]:
    """Return, for each loop in which this worker holds something, the least time of that: how far it has come."""
    least: dict[str, Time] = {}
    for operator in dataflow.operators:
        scope = operator.scope
        if scope.width == scope.outer:
            continue
        held = [capability.time for output in operator.outputs for capability in tuple(output.live)]
        held += [time for port in operator.inputs for time, _ in tuple(port.queue)]
        if held:
            least[scope.path] = min([*held, least[scope.path]] if scope.path in least else held)
    return least


def _holding(dataflow: Dataflow, location: int, time: Time) -> Callable[[int, Time], bool]:
    return (lambda *_: True) if location == EVERYWHERE else dataflow.tracker.holding(location, time)


def _round(scope: Surroundings, time: Time) -> str:
    """Return what a time in a loop means."""
    return f" (round {time[-1]:,} of {scope.path!r})" if scope.width > scope.outer else ""


def _place(dataflow: Dataflow) -> str:
    worker, config = dataflow.worker_index, dataflow.host.config
    return f"worker {worker}" if config.processes == 1 else f"worker {worker} (process {config.process_of(worker)})"


def _several(count: int, one: str, many: str) -> str:
    return one if count == 1 else f"{count:,} {many}"


def _messages(count: int, records: int) -> str:
    return f"{count:,} queued message{'' if count == 1 else 's'} ({records:,} record{'' if records == 1 else 's'})"
