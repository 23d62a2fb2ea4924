"""Make the changes of a collection durable as they become final, each epoch once.

Worker 0 receives the changes and appends those at times from the collection's durable `upper` on. Earlier ones were
appended by an earlier run. A program that is started again computes them again, as of the time of its inputs, and must
get what was appended: their digests are compared, and if these differ, the records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from differential.arrangement.core import CollectionCore
from differential.data.updates import Updates
from differential.durable import rows
from differential.durable.committing import Appender, split
from differential.durable.manifest import seconds_of
from differential.durable.state import OUTPUT, OpenShard
from differential.operators.output import GatherUpdates
from timely import Probe
from timely.errors import ConfigError, StateError
from timely.lowlevel import Activator, Antichain, Capability, CapabilitySet, InputPort, Moment, OperatorBuilder

ON_DIFFERENCE = ("raise", "correct")


class DurableOutput:
    """Knows how far a collection is durable, on every worker.

    >>> import tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> from differential.durable.input import durable_input
    >>> from differential.durable.state import State
    >>> def program(worker):
    ...     state = State.open(worker, directory.name)
    ...     with worker.dataflow() as scope:
    ...         words, collection = durable_input(scope, state.shard("words"))
    ...         copy = persist(collection, state.shard("copy"))
    ...     words.insert("to")
    ...     words.advance_to(1)
    ...     worker.step_while(lambda: not copy.is_durable(1))
    ...     words.close()
    ...     worker.step_while(lambda: not copy.done())
    ...     return copy.frontier
    >>> execute_directly(program)
    Antichain([])
    >>> directory.cleanup()
    """

    def __init__(self, shard: OpenShard, probe: Probe) -> None:
        self._shard = shard
        self.probe = probe

    @property
    def frontier(self) -> Antichain:
        """The times from which on changes are not durable yet; none once all are."""
        return self.probe.frontier

    def is_durable(self, time: Moment) -> bool:
        """Return whether all changes before `time` are durable."""
        return not self.probe.less_than(time)

    def done(self) -> bool:
        """Return whether all changes of this run are durable."""
        return self.probe.done()

    def __repr__(self) -> str:
        return f"DurableOutput({self._shard.name!r})"


def persist(
    collection: CollectionCore, shard: OpenShard, *, flush: str | None = None, on_difference: str = "raise"
) -> DurableOutput:
    """Make a collection durable, and return how far it is.

    Each append covers all epochs that have become final; `flush`, such as "1s", is the least time between two appends.

    If a program that is started again computes other records than it made durable before, because its functions have
    changed or are not functions of their arguments, a StateError names one of them. With `on_difference="correct"`,
    the difference is appended instead, at the first time that is not final.

    Raises BuildError if the times of the collection have several coordinates, or the durable one is in use already;
    ConfigError if `flush` is not a duration, or `on_difference` neither "raise" nor "correct".

    >>> import tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> from differential.durable import State, durable_input
    >>> def program(worker):
    ...     state = State.open(worker, directory.name)
    ...     with worker.dataflow() as scope:
    ...         words, collection = durable_input(scope, state.shard("words"))
    ...         counts = persist(collection.count(), state.shard("counts", fields=["word", "count"]))
    ...     words.insert("to")
    ...     words.close()
    ...     worker.step_while(lambda: not counts.done())
    ...     return state.shard("counts").shard.read()
    >>> execute_directly(program), execute_directly(program)
    ({('to', 1): 1}, {('to', 2): 1})
    >>> directory.cleanup()
    """
    scope = collection.scope
    if on_difference not in ON_DIFFERENCE:
        raise ConfigError(f"on_difference is one of {', '.join(ON_DIFFERENCE)}, not {on_difference!r}")
    seconds = 0.0 if flush is None else seconds_of(flush)
    shard.take(OUTPUT, scope)
    shard.stream = collection.stream
    builder = OperatorBuilder(scope, f"{shard.name}: persist")
    changes = builder.add_input(collection.stream, GatherUpdates(0), frontier=True)
    output, committed = builder.add_output(initial=True)
    builder.connect(changes, output, None)  # so the capability alone holds the frontier of `committed`
    activate = Activator(builder.operator)

    def constructor(capabilities: list[Capability]) -> Callable[[], None]:
        held = CapabilitySet.of(capabilities[0])
        if scope.index:
            held.drop()
            return lambda: _nothing(changes)
        as_of = shard.state.begin()
        appender = Appender(shard, seconds, activate, lambda: True)
        past = Past(shard, as_of, is_corrected=on_difference == "correct")
        shard.state.waiting.append(activate)

        def logic() -> None:
            if not held.times:
                return  # the collection has ended, and an input that is ahead has activated all outputs
            if not appender.is_busy and (not changes.frontier or appender.is_due()):
                for _, batch in changes.drain():
                    appender.stage(past.take(cast(Updates, batch)))
                upper = _upper(changes, shard, appender)
                if upper >= past.upper:  # then nothing more arrives at the times that are compared
                    for updates in past.settle():
                        appender.stage(updates)
                if upper > appender.upper:
                    appender.append(upper)
                elif not changes.frontier and not shard.state.ahead:
                    held.drop()
                    return
            if held.times != [(appender.upper,)]:
                held.downgrade([(appender.upper,)])
                for each in shard.state.following:
                    each()

        return logic

    builder.build(constructor)
    probe = Probe()
    probe.watch(committed)
    return DurableOutput(shard, probe)


def _nothing(changes: InputPort) -> None:
    """Do nothing: worker 0 receives all changes, and the others learn of their kinds."""
    for _ in changes.drain():
        pass


def _upper(changes: InputPort, shard: OpenShard, appender: Appender) -> int:
    """Return the time up to which to append: before it the collection is final, for this run and for all that follow.

    That is the frontier, but at most how far the inputs are durable: once they are closed, operators that hold changes
    for later times, such as windows, let the frontier pass times at which a program that goes on still makes changes.
    Without durable inputs, it is the time after the last change at the end. And an input that is ahead lets the
    dataflow compute with changes that a crash takes away. The next run would compute other records, so nothing is
    appended before these changes are durable (`State.bound`).
    """
    ends = [time for (time,) in changes.frontier.elements]
    ends += [end for end in (shard.state.input_upper(), shard.state.bound()) if end is not None]
    return min(ends or [appender.staged_upper()])


class Past:
    """What is computed again at times before the durable `upper`, until it has been compared with what was appended."""

    def __init__(self, shard: OpenShard, as_of: int, *, is_corrected: bool) -> None:
        manifest = shard.writer.manifest
        self._shard = shard
        self._manifest = manifest
        self._is_corrected = is_corrected
        self._batches: list[Updates] = []
        self._is_empty = self._is_settled = manifest.since == manifest.upper
        self._as_of = max(as_of, manifest.since)
        self.upper = manifest.upper

    def take(self, updates: Updates) -> Updates:
        """Keep the updates at times before `upper`; return the others.

        A collection of which nothing is final yet begins with the sum of these updates, at `upper`.
        """
        if self._is_empty:
            return updates.with_times(np.maximum(updates.times, self.upper))
        past, rest = split([updates], self.upper)
        if not self._is_settled:
            self._batches += past
        return rest[0] if rest else updates.take(np.zeros(0, np.int64))

    def settle(self) -> list[Updates]:
        """Compare what was kept, which must be all there is; return what must be appended to correct it.

        Raises StateError, which names a record, if it differs and is not to be corrected.
        """
        if self._is_settled:
            return []
        self._is_settled = True
        batches, self._batches = self._batches, []
        manifest = self._manifest
        fields = manifest.fields or (
            rows.fields_of(batches[0], self._shard.fields, self._shard.shard) if batches else ()
        )
        found = rows.consolidated(rows.table_of(batches, fields, self._shard.shard), self._as_of)
        # A digest ignores times, so it decides only if there is a single one: of several, the last contents could be
        # equal, and those before them not.
        if self._as_of == manifest.upper - 1 and rows.digest(found) == manifest.digest:
            return []
        was = rows.schema_of(fields).empty_table()
        if manifest.parts:  # still these, because this program appends nothing before it has compared
            was = rows.consolidated(self._shard.shard.updates(), self._as_of)
        differing = rows.difference(found, was)
        if not len(differing):
            return []
        if not self._is_corrected:
            self._shard.writer.check()  # a program that has replaced this one may have appended what is there now
            raise self._error(differing)
        total = rows.consolidated(differing, self.upper)
        return [rows.updates_of(total)] if len(total) else []

    def _error(self, differing: rows.Table) -> StateError:
        *record, time, diff = (column[0].as_py() for column in differing.columns)
        expected = "more often" if diff > 0 else "less often"
        return StateError(
            f"{self._shard.shard} has other contents than the program computes: as of {time}, {tuple(record)} occurs "
            f"{abs(diff)} time(s) {expected} now ({len(differing)} record(s) differ); run the program that wrote it, "
            'remove the collection to compute it again, or append the difference with on_difference="correct"'
        )
