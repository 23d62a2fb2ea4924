"""Who holds a frontier back: the first question of everybody whose dataflow does not finish.

A time is held up at a location by the capabilities held and the messages queued, on any worker, that could result in
something at or before it. A worker knows its own exactly, with the lines that made them. Of those elsewhere the tracker
knows the counts, and their workers know the rest when asked (`Host.explainer`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from timely.config import Config
from timely.dataflow.core import DataflowCore
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.host import Answers, Host
from timely.dataflow.operator import Operator
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

    The other workers have `patience` seconds to answer; with 0 they are not asked, and what they hold is only counted.
    """
    assert isinstance(dataflow, Dataflow)
    everywhere = location == EVERYWHERE
    if not everywhere and not dataflow.tracker.holders(location, time):
        return "nothing holds this frontier back"
    if dataflow.is_closed:
        return f"{dataflow} was dropped: this frontier no longer moves"
    answers = dataflow.host.explainer.ask(dataflow.index, location, time, patience)
    lines = held_anywhere(dataflow, location, time, answers, patience)
    if everywhere:
        return explanation(lines, kept(dataflow)) if lines else explain_here(dataflow)
    at = "" if time and min(time) >= LIMIT else f" at {time}"
    return explanation(lines or [_under_way(dataflow)], f"held back{at} by:")


def _under_way(dataflow: Dataflow) -> str:
    """Return, for people, what holds a frontier back that no worker holds: changes that are not counted yet."""
    busy = dataflow.running or dataflow.sending
    if busy is not None:
        return f"what {busy} has taken and does now, which counts when it has returned; ask again then"
    if dataflow.peers == 1:
        return "changes that are not counted yet; step the worker, and ask again"
    return "something under way between workers; ask again"


def explain_here(dataflow: Dataflow) -> str:
    """Return what keeps a dataflow from completing, as far as this worker knows without asking."""
    lines = held_here(dataflow, EVERYWHERE, ()) + counted_elsewhere(dataflow, EVERYWHERE, ())
    if not lines:
        return f"{dataflow}: nothing is held anywhere; its last changes are being passed on"
    return explanation(lines, kept(dataflow))


def explanation(lines: Sequence[str], heading: str) -> str:
    """Return a text of a heading and indented lines, not too many."""
    shown = list(lines[:SHOWN])
    if len(lines) > SHOWN:
        shown.append(f"and {len(lines) - SHOWN:,} more")
    return "\n".join([heading, *(f"  {line}" for line in shown)])


def kept(dataflow: Dataflow) -> str:
    """Return the heading of what keeps a dataflow from completing."""
    return f"{dataflow} is kept from completing by:"


def held_anywhere(dataflow: Dataflow, location: int, time: Time, answers: Answers, patience: float) -> list[str]:
    """Return a line for each thing that holds up `time` at `location`: what this worker holds, what its peers reported,
    and the counts of the rest."""
    config, farewells = dataflow.host.config, dataflow.host.allocator.farewells
    lines = held_here(dataflow, location, time)
    lines += [line for peer in sorted(answers.lines) for line in answers.lines[peer]]
    if answers.silent or farewells:
        counted = counted_elsewhere(dataflow, location, time)
        lines += counted
        if patience > 0:
            silent = [name_worker(config, peer) for peer in answers.silent]
            lines += [f"{name} did not answer within {patience:g} s: {_BUSY}" for name in silent]
        if counted:
            lines += [f"{dropped(config, peer, dataflow.index)} before it ended" for peer in sorted(farewells)]
    return lines


def held_here(dataflow: Dataflow, location: int, time: Time) -> list[str]:
    """Return a line for each thing this worker holds that holds up `time` at `location`, earliest first."""
    found: Counter[tuple[Time, bool, str]] = Counter()
    records: Counter[tuple[Time, bool, str]] = Counter()
    holds = _holding(dataflow, location, time)
    for operator in dataflow.operators:
        for output in operator.outputs:
            # A copy: other threads ask, too, while the worker goes on (`timely.worker.status.steady`).
            for capability in tuple(output.live):
                if holds(output.location, operator.tracked(capability.time)):
                    awaited = "" if operator.awaits is None else f", waits for {operator.awaits()}"
                    where = f"on {output}, made at {capability.origin}{awaited}"
                    found[capability.time, False, f"{where}{_round(operator.scope, capability.time)}"] += 1
        for port in operator.inputs:
            for queued, batch in tuple(port.queue):
                if holds(port.location, operator.tracked(queued)):
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
    """Return a line for each pointstamp that other workers hold, as far as this one knows."""
    alone = [operator for operator in dataflow.operators if operator.progress is None]
    own = Counter(held for operator in alone for held in _held_by(operator))
    own.update((region.location, time) for region in dataflow.regions for time in region.counted)
    holds = _holding(dataflow, location, time)
    lines = []
    for holder, held, count in sorted(dataflow.tracker.pointstamps()):
        count -= own[holder, held]
        if count > 0 and holds(holder, held):
            what = _several(count, "a capability or message", "capabilities or messages")
            lines.append(f"{what} at {held} on other workers, {dataflow.describe(holder)}")
    return lines


def dropped(config: Config, worker: int, dataflow: int) -> str:
    """Return that a worker has dropped a dataflow."""
    return f"{name_worker(config, worker)} has dropped dataflow {dataflow}"


def unbuilt(config: Config, worker: int, dataflow: int) -> str:
    """Return that a worker has not built a dataflow yet."""
    return f"{name_worker(config, worker)} has not built dataflow {dataflow} yet"


def is_absence(dataflow: Dataflow, peer: int, lines: tuple[str, ...]) -> bool:
    """Return whether a peer's answer is that it does not have a dataflow."""
    where = dataflow.host.config, peer, dataflow.index
    return lines in ((dropped(*where),), (unbuilt(*where),))


def name_worker(config: Config, worker: int) -> str:
    """Return the name of a worker, with its process if there are several.

    >>> name_worker(Config(workers=2), 1)
    'worker 1'
    """
    return f"worker {worker}" if config.processes == 1 else f"worker {worker} (process {config.process_of(worker)})"


def refusals(host: Host) -> list[str]:
    """Return a line, for people, if a worker refused anything: what waits may be waiting for that."""
    allocator = host.allocator
    refused = allocator.refused
    if not refused:
        return []
    last = f", the last one: {allocator.last_refusal}" if allocator.last_refusal else ""
    name = name_worker(host.config, allocator.index)
    return [f"{name} has refused {refused:,} of the messages and connections to it{last}"]


def rounds(dataflow: Dataflow) -> dict[str, Time]:
    """Return, for each loop in which this worker holds something, the least time of that: how far the loop has come."""
    least: dict[str, Time] = {}
    for operator in dataflow.operators:
        scope = operator.scope
        if scope.width > scope.outer:
            for _, time in _held_by(operator):
                least[scope.path] = min(time, least.get(scope.path, time))
    return least


def has_loops(dataflow: Dataflow) -> bool:
    """Return whether a dataflow has operators in loops."""
    return any(operator.scope.width > operator.scope.outer for operator in dataflow.operators)


def _held_by(operator: Operator) -> Iterator[tuple[int, Time]]:
    """Yield location and time of each capability that an operator holds, and of each message queued for it."""
    for output in operator.outputs:
        for capability in tuple(output.live):
            yield output.location, capability.time
    for port in operator.inputs:
        for queued, _ in tuple(port.queue):
            yield port.location, queued


def _holding(dataflow: Dataflow, location: int, time: Time) -> Callable[[int, Time], bool]:
    """Return whether something at a location and time holds up `time` at `location`."""
    return (lambda *_: True) if location == EVERYWHERE else dataflow.tracker.holding(location, time)


def _round(scope: Surroundings, time: Time) -> str:
    """Return what a time in a loop means."""
    return f" (round {time[-1]:,} of {scope.path!r})" if scope.width > scope.outer else ""


def _several(count: int, one: str, many: str) -> str:
    return one if count == 1 else f"{count:,} {many}"


def _messages(count: int, records: int) -> str:
    return f"{count:,} queued message{'' if count == 1 else 's'} ({records:,} record{'' if records == 1 else 's'})"
