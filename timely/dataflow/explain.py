"""Who holds a frontier back: the first question of everybody whose dataflow does not finish.

What holds a time up at a location are the capabilities held and the messages queued, on any worker, that could result
in something at or before it. A worker knows its own exactly, with the lines that made them; of those elsewhere the
tracker knows the counts, and their workers know the rest when asked (`timely.worker.explaining`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from timely.config import Config
from timely.dataflow.core import DataflowCore
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.plan import Surroundings
from timely.order import LIMIT, Time

SHOWN = 20
"""How many lines are shown at most."""

EVERYWHERE = -1
"""As a location: whatever is held, wherever."""

PATIENCE = 1.0
"""Seconds to wait for other workers' answers."""


_BUSY = "it is inside a long operator, or its program does something else"


def explain(dataflow: DataflowCore, location: int, time: Time, patience: float) -> str:
    """Return, for people, what holds up `time` at `location` (or at all: `EVERYWHERE`), on any worker.

    The other workers have `patience` seconds to answer; with 0 they are not asked, and what they hold is counted only.
    """
    assert isinstance(dataflow, Dataflow)
    everywhere = location == EVERYWHERE
    if not everywhere and not dataflow.tracker.holders(location, time):
        return "nothing holds this frontier back"
    if dataflow.is_closed:
        return f"{dataflow} was dropped: this frontier moves no more"
    host = dataflow.host
    lines = held_here(dataflow, location, time)
    answers, silent = host.explainer.ask(dataflow.index, location, time, patience)
    lines += [line for peer in sorted(answers) for line in answers[peer]]
    if silent or host.allocator.farewells:
        counted = counted_elsewhere(dataflow, location, time)
        lines += counted
        if patience > 0:
            named = [name_worker(host.config, peer) for peer in silent]
            lines += [f"{name} did not answer within {patience:g} s: {_BUSY}" for name in named]
        if counted:
            lines += ended(dataflow)
    if not lines and everywhere:
        return explain_here(dataflow)
    at = "" if time and min(time) >= LIMIT else f" at {time}"
    heading = f"{dataflow} is kept from completing by:" if everywhere else f"held back{at} by:"
    return explanation(lines or ["something under way between workers; ask again"], heading)


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
    place = name_worker(dataflow.host.config, dataflow.worker_index)
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


def ended(dataflow: Dataflow) -> list[str]:
    """Return a line for each worker that has ended: it holds nothing, and its last changes may be under way."""
    host = dataflow.host
    return [
        f"{dropped(host.config, peer, dataflow.index)} before it ended" for peer in sorted(host.allocator.farewells)
    ]


def dropped(config: Config, worker: int, dataflow: int) -> str:
    """Return that a worker has dropped a dataflow."""
    return f"{name_worker(config, worker)} has dropped dataflow {dataflow}"


def name_worker(config: Config, worker: int) -> str:
    """Return the name of a worker, with its process if there are several.

    >>> name_worker(Config(workers=2), 1)
    'worker 1'
    """
    return f"worker {worker}" if config.processes == 1 else f"worker {worker} (process {config.process_of(worker)})"


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


def _several(count: int, one: str, many: str) -> str:
    return one if count == 1 else f"{count:,} {many}"


def _messages(count: int, records: int) -> str:
    return f"{count:,} queued message{'' if count == 1 else 's'} ({records:,} record{'' if records == 1 else 's'})"
