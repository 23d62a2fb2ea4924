"""Dataflows under test: on one worker, on all workers, and the output of one.

The inputs of a dataflow are driven by the test, imported from the traces of another dataflow, or read back from
messages that another cluster has written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from differential import Collection, Output, Trace, new_input, new_upsert_input, replay_into
from tests.oracle.grid import Multiset, Update, contents
from tests.oracle.programs import Program, build
from timely import Worker
from timely.capture import EventQueue
from timely.dataflow.stream import Scope
from timely.order import Time, less_equal

if TYPE_CHECKING:
    from tests.oracle.scenario import Scenario

INPUTS = 2
"""This many inputs are driven by updates; the next one is driven by upserts, and the one after it is constant."""

CONSTANT = (0, 1, 2, 0), (1, 2, 0, 1)
"""Its columns."""

Source = Callable[[Scope], tuple[Any, Collection]]
"""Makes an input and, if it is driven by the test, its session."""


def driven(number: int, outer: int) -> Source:
    """Return the dataflow's own input of this number."""
    return new_upsert_input if number == INPUTS and outer == 1 else new_input


def imported(trace: Trace, since: Time) -> Source:
    """Return an input imported from another dataflow."""
    return lambda scope: (None, trace.import_into(scope, since=since).as_collection())


def read_back(queues: Sequence[EventQueue]) -> Source:
    """Return an input read back from another cluster's messages."""
    return lambda scope: (None, replay_into(scope, queues))


class Part:
    """A dataflow of programs over inputs on one worker; its `sinks` receive the inputs and the first result.

    Inputs after those that are driven are numbered from the constant one on.
    """

    def __init__(
        self,
        worker: Worker,
        programs: Sequence[Program],
        outer: int,
        sources: Sequence[Source],
        sinks: Sequence[EventQueue] = (),
    ) -> None:
        self.worker = worker
        with worker.dataflow(outer=outer) as scope:
            made = [source(scope) for source in sources]
            self.sessions = [session for session, _ in made[: INPUTS + 1]]
            collections = [collection for _, collection in made]
            self.traces = [collection.arrange_by_key().trace() for collection in collections[: INPUTS + 1]]
            collections.insert(INPUTS + 1, Collection.of(scope, *map(np.array, CONSTANT)))
            results = [build(program, collections) for program in programs]
            self.outputs: list[Output] = [result.output() for result in results]
            self.probe = results[0].probe()
            for sink, collection in zip(sinks, [*collections[: INPUTS + 1], results[0]]):
                collection.capture_into(sink)
        self.dataflow = scope.dataflow

    def drop_traces(self) -> None:
        """Stop reading the inputs."""
        for trace in self.traces:
            trace.drop()

    def close(self) -> None:
        """Close the sessions."""
        for session in self.sessions:
            if session is not None:
                session.close()


class Watched:
    """The output of a program, to be compared from some time on."""

    def __init__(self, number: int, output: Output, since: Time | None = None) -> None:
        self.number = number
        self._since = since
        self._output = output
        self._changes: list[Update] = []

    def changes(self) -> list[Update]:
        """Return all updates emitted so far."""
        self._changes += self._output.changes()
        if self._output.done():
            total: Multiset = Counter()
            for record, _, diff in self._changes:
                total[record] += diff
            assert self._output.contents() == {record: count for record, count in total.items() if count}
        return self._changes

    def is_final(self, time: Time) -> bool:
        """Return whether the output can be compared at a time."""
        is_late = self._since is None or less_equal(self._since, time)
        return is_late and not self._output._input.frontier.less_equal(time)


class Installed:
    """A dataflow on all workers, which imports some inputs as of `since` from other dataflows.

    An input is `live` if it changes as that of the hosts does. If the dataflow from which it is imported is dropped at
    the frontier `ended`, its changes at times in advance of `ended` never arrive.
    """

    def __init__(
        self,
        parts: list[Part],
        watched: list[Watched],
        origins: dict[int, Installed] | None = None,
        since: Time | None = None,
    ) -> None:
        self.parts = parts
        self.watched = watched
        self.origins = {} if origins is None else origins
        self.since = since
        self.live = {number for number, origin in self.origins.items() if number in origin.live}
        self.ended = {number: origin.ended[number] for number, origin in self.origins.items() if number in origin.ended}

    def contents(self, scenario: Scenario, number: int, time: Time) -> Multiset:
        """Return the contents of an input at a time."""
        return scenario.contents(number, time, self.ended.get(number))

    def traces(self, number: int) -> list[Trace]:
        """Return the traces of an input."""
        return [part.traces[number] for part in self.parts]

    def exports(self, number: int) -> bool:
        """Return whether an input can be imported."""
        return not any(trace.is_dropped for trace in self.traces(number))


def received(updates: Sequence[Update], time: Time, ended: Time | None) -> Multiset:
    """Return the accumulation of updates at a time, without those in advance of `ended`, which never arrive."""
    if ended is not None:
        updates = [update for update in updates if not less_equal(ended, update[1])]
    return contents(updates, time)
