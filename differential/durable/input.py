"""Change a durable collection from outside of the dataflow.

    session ──► rows ──┬──► append (worker 0) ── committed ──► release ──► collection
                       └───────────────────────────────────────► │            ▲
    store ─────────────────────────────► history ─────────────────────────────┘

Changes reach worker 0, which appends them, and wait at `release` until the frontier of `committed` has passed them: a
change that a program has derived anything from is durable. `history` emits what was durable when the program began,
each worker a share of it.

An input that is `ahead` has no `release`: the dataflow computes with changes while they are appended. Then outputs wait
(`State.bound`): nothing that was derived from a change is durable before the change is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, cast

from differential.collection import Collection
from differential.data.updates import Updates
from differential.durable import rows
from differential.durable.committing import Appender, Offset
from differential.durable.manifest import Part, Position, seconds_of
from differential.durable.shard import missing
from differential.durable.state import INPUT, OpenShard
from differential.operators.input import Diff, InputSession, check_open, interned_updates
from differential.operators.output import GatherUpdates
from timely import Probe, Scope, Stream
from timely.errors import DataError
from timely.lowlevel import (
    Activator,
    Capability,
    CapabilitySet,
    Gather,
    Host,
    InputPort,
    Moment,
    OperatorBuilder,
    Pipeline,
    Time,
    new_input as new_stream_input,
)


class DurableSession:
    """Changes a durable collection, epoch by epoch. Use from the worker's thread.

    It is used like an `InputSession`, and begins at the first epoch whose changes are not durable (`epoch`). A change
    has an effect once it is durable. `at` records how far a source has been read, so that a program which is started
    again reads on from there (`offsets`).

    >>> import tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> from differential.durable.state import State
    >>> def program(worker):
    ...     state = State.open(worker, directory.name)
    ...     with worker.dataflow() as scope:
    ...         stock, parts = durable_input(scope, state.shard("stock", fields=["part"]))
    ...         output = parts.output()
    ...     print(stock.epoch, stock.offsets)
    ...     stock.insert(np.array(["nut", "bolt"]))
    ...     stock.update("nut", diff=4)
    ...     stock.remove("bolt")
    ...     stock.at("deliveries", 3)
    ...     stock.flush()
    ...     stock.advance_to(stock.epoch + 1)
    ...     worker.step_while(lambda: not stock.is_durable(stock.epoch))
    ...     stock.close()
    ...     worker.step_while(lambda: not output.done())
    ...     return output.contents()
    >>> execute_directly(program)
    0 {}
    {('nut',): 5}
    >>> execute_directly(program)
    1 {'deliveries': 3}
    {('nut',): 10}
    >>> directory.cleanup()
    """

    def __init__(self, scope: Scope, shard: OpenShard, name: str) -> None:
        self._shard = shard
        # Changes are released to the dataflow by message, when the time of the message is durable: one for each epoch.
        self._session = InputSession(scope, name, sends_together=False)
        self._positions, self.positions = new_stream_input(scope, name=f"{name}: offsets")
        self._moved: dict[str, Position] = {}
        self.committed = Probe()
        # Not before: the first epoch depends on the outputs that the input reaches (`State.first_epoch`).
        scope.dataflow.when_built(self._begin)
        # The inputs of this session close themselves, too, but without the positions that are to be sent.
        scope.dataflow.when_program_ends(self.close)

    @property
    def stream(self) -> Stream:
        """The changes, before they are durable."""
        return self._session.stream

    @property
    def time(self) -> Time:
        """The time at which changes happen now."""
        return self._session.time

    @property
    def epoch(self) -> int:
        """The epoch in which changes happen now: at the beginning, the first that is not durable yet."""
        return self._session.epoch

    @property
    def is_congested(self) -> bool:
        """Whether more than `Config.queue_bytes` of changes wait in the dataflow or to be durable."""
        return self._session.is_congested

    @property
    def offsets(self) -> dict[str, Position]:
        """The position of each source after all changes that were durable when the program began."""
        return dict(self._shard.opened.offsets) if self._shard.opened is not None else {}

    def is_durable(self, time: Moment) -> bool:
        """Return whether all changes before `time`, of all workers, are durable."""
        return not self.committed.less_than(time)

    def insert(self, *record: Any) -> None:
        """Add a record, or each row of the given columns, once."""
        self.update(*record, diff=1)

    def remove(self, *record: Any) -> None:
        """Remove a record, or each row of the given columns, once."""
        self.update(*record, diff=-1)

    def update(self, *record: Any, diff: Diff) -> None:
        """Add a record, or each row of the given columns, `diff` times. Raises as `InputSession.update`.

        Raises StateError if the collection is a table of a `Session`, as do all methods that make epochs.
        """
        self._shard.refuse_of_session()
        self._session.update(*record, diff=diff)

    def at(self, source: str, position: Position) -> None:
        """Record that the changes made so far are those up to a position of a source.

        The position is durable together with the changes of this epoch. On each worker a source has a name of its own,
        such as that of a file or of a partition. Raises DataError unless the position is an integer of 64 bits or text,
        and the name is text; CapabilityError after `close`.
        """
        self._shard.refuse_of_session()
        check_open(self._positions, self._shard.name)
        if not isinstance(source, str) or not source:
            raise DataError(f"{source!r:.80} cannot name a source: use text, such as 'orders.log'")
        is_integer = type(position) is int and -(1 << 63) <= position < 1 << 63
        if not (is_integer or type(position) is str):
            raise DataError(f"the position of {source!r} must be an integer of 64 bits or text, not {position!r:.80}")
        self._moved[source] = position

    def flush(self) -> None:
        """Send the changes made so far."""
        self._session.flush()

    def advance_to(self, time: Moment) -> None:
        """Advance to a later time. The changes before it are then final, and are made durable."""
        self._shard.refuse_of_session()
        self._session.advance_to(time)
        self._send_positions()  # at the epoch that ends, so before their own input advances
        self._positions.advance_to(time)

    def close(self) -> None:
        """Send the changes made so far and end the session. A program that is started again can go on.

        Inputs that are closed do not hold the outputs back, so where others go on, it goes on at their epoch. A program
        that returns closes its sessions.
        """
        if not self._positions.is_closed:
            opened = self._shard.opened
            if self.epoch and not (opened is not None and opened.is_of_session):
                # No change of the epochs before this one is missing, whether they had any or not.
                self._positions.send_batch([(self.epoch - 1, "", 0)])
            self._send_positions()
            self._positions.close()
        self._session.close()

    def _send_positions(self) -> None:
        if self._moved:
            epoch = self._positions.epoch
            self._positions.send_batch([(epoch, source, position) for source, position in self._moved.items()])
            self._moved.clear()

    def _begin(self) -> None:
        self._shard.state.begin()
        start = self._shard.state.first_epoch(self._shard)
        if start:
            self._session.advance_to(start)
            self._positions.advance_to(start)

    def __repr__(self) -> str:
        return f"DurableSession({self._session!r})"

    def __enter__(self) -> DurableSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def durable_input(
    scope: Scope, shard: OpenShard, *, keys: int = 1, flush: str | None = None, ahead: bool = False
) -> tuple[DurableSession, Collection]:
    """Return a session that changes a durable collection, and the collection. The first `keys` columns are its key.

    Changes of an epoch are durable before the collection holds them. Each append covers all epochs that are over;
    `flush`, such as "1s", is the least time between two appends.

    With `ahead`, the dataflow computes with changes while they are made durable, and outputs that `persist` makes
    durable wait for them. What else the program reads of an answer, such as an `output()`, may then be of changes that
    a crash takes away: `session.is_durable` shows it.

    Raises BuildError if the scope's times have several coordinates, or the collection is in use already; ConfigError if
    `flush` is not a duration.

    >>> import tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> from differential.durable.state import State
    >>> def program(worker):
    ...     state = State.open(worker, directory.name)
    ...     with worker.dataflow() as scope:
    ...         words, collection = durable_input(scope, state.shard("words", fields=["word"]))
    ...         output = collection.output()
    ...     start, line = words.epoch, words.offsets.get("book", 0)
    ...     words.insert(["to", "be", "or"][line])
    ...     words.at("book", line + 1)
    ...     words.close()
    ...     worker.step_while(lambda: not output.done())
    ...     return start, sorted(output.contents())
    >>> execute_directly(program), execute_directly(program)
    ((0, [('to',)]), (1, [('be',), ('to',)]))
    >>> directory.cleanup()
    """
    seconds = 0.0 if flush is None else seconds_of(flush)
    shard.take(INPUT, scope)
    session = DurableSession(scope, shard, shard.name)
    history, loaded = _history(scope, shard)
    committed = _append(session, shard, loaded, seconds, ahead)
    session.committed.watch(committed)
    released = session.stream if ahead else _release(session.stream, committed, shard.name)
    collection = Collection(history, keys).concat(Collection(released, keys))
    shard.stream = collection.stream
    return session, collection


def _history(scope: Scope, shard: OpenShard) -> tuple[Stream, Stream]:
    """Return this worker's share of what was durable, and a stream that ends when all workers have emitted theirs."""
    builder = OperatorBuilder(scope, f"{shard.name}: history")
    (output, history), (_, loaded) = builder.add_output(initial=True), builder.add_output(initial=True)
    host = scope.dataflow.host

    def constructor(capabilities: list[Capability]) -> Callable[[], None]:
        parts = list(shard.opened.parts) if shard.opened is not None else []
        as_of = shard.state.load_time(shard) if parts else 0

        def logic() -> None:
            if parts:  # one in each activation, so that other operators run in between
                updates = _share(shard, parts.pop(0), as_of, host)
                if updates is not None:
                    with capabilities[0].delayed((as_of,)) as capability:
                        output.give(capability, updates)
            if parts:
                builder.operator.activate()
            else:
                for capability in capabilities:
                    capability.drop()

        return logic

    builder.build(constructor)
    return history, loaded


def _share(shard: OpenShard, part: Part, as_of: int, host: Host) -> Updates | None:
    """Return this worker's share of a part, loaded as of a time."""
    assert shard.opened is not None
    data = shard.shard.part(part)
    if data is None:
        raise missing(shard.shard, part.name)
    table = rows.from_bytes(data, shard.opened.fields)
    # The end of a share is the start of the next, so each row is in one share.
    start, end = (len(table) * number // host.peers for number in (host.index, host.index + 1))
    if start == end:
        return None
    share = rows.with_fields(table.slice(start, end - start), shard.added)
    return interned_updates(rows.updates_of(share, as_of), host)


def _append(session: DurableSession, shard: OpenShard, loaded: Stream, flush: float, ahead: bool) -> Stream:
    """Return a stream whose frontier is how far the changes of a session are durable."""
    builder = OperatorBuilder(session.stream.scope, f"{shard.name}: append")
    changes = builder.add_input(session.stream, GatherUpdates(0), frontier=True)
    positions = builder.add_input(session.positions, Gather(), frontier=True)
    loading = builder.add_input(loaded, Pipeline(), frontier=True)
    output, committed = builder.add_output(initial=True)
    for input in (changes, positions, loading):
        builder.connect(input, output, None)  # so the capability alone holds the frontier of `committed`
    activate = Activator(builder.operator)
    index = session.stream.scope.index

    def constructor(capabilities: list[Capability]) -> Callable[[], None]:
        held = CapabilitySet.of(capabilities[0])
        if index:
            held.drop()
            return lambda: None
        shard.state.begin()
        # Merging removes parts, and some worker may still load them while the frontier of `loading` is not empty.
        appender = Appender(shard, flush, activate, lambda: not loading.frontier)
        state = shard.state
        if ahead:
            state.ahead.add(shard.name)

        def logic() -> None:
            is_busy = appender.is_busy  # asked once, because it may end at any moment: then this is activated again
            if ahead and not is_busy:
                appender.rest(min(_open_times(changes, positions), default=appender.upper), bool(changes.queue))
            if not is_busy and (not changes.frontier or appender.is_due()):
                # No message can arrive at times before the frontiers, so what is staged before `upper` is complete.
                for _, batch in changes.drain():
                    appender.stage(cast(Updates, batch))
                for _, offsets in positions.drain():
                    appender.offsets += cast(list[Offset], offsets)
                upper = min(_open_times(changes, positions) or [appender.staged_upper()])
                if upper > appender.upper:
                    appender.append(upper)
                elif not changes.frontier and not positions.frontier:
                    held.drop()
                    if ahead:
                        state.ahead.discard(shard.name)
                        state.activate_outputs()
                    return
            if held.times != [(appender.upper,)]:
                held.downgrade([(appender.upper,)])
                if ahead:
                    state.activate_outputs()

        return logic

    builder.build(constructor)
    return committed


def _open_times(changes: InputPort, positions: InputPort) -> list[int]:
    """Return the first time of each input at which something may still change."""
    return [time for input in (changes, positions) for (time,) in input.frontier.elements]


def _release(changes: Stream, committed: Stream, name: str) -> Stream:
    """Return the changes, each as soon as it is durable."""
    builder = OperatorBuilder(changes.scope, f"{name}: release")
    waiting = builder.add_input(changes, Pipeline(), frontier=True)
    durable = builder.add_input(committed, Pipeline(), frontier=True)
    output, released = builder.add_output(initial=True)
    for input in (waiting, durable):
        builder.connect(input, output, None)

    def constructor(capabilities: list[Capability]) -> Callable[[], None]:
        held = CapabilitySet.of(capabilities[0])
        queue: deque[tuple[Time, Updates]] = deque()

        def logic() -> None:
            queue.extend((time, cast(Updates, batch)) for time, batch in waiting.drain())
            frontier = durable.frontier
            # The session sends in the order of times, so nothing behind the first batch is durable before it is.
            while queue and not frontier.admits(queue[0][0]):
                time, updates = queue.popleft()
                with held.covering(time).delayed(time) as capability:
                    output.give(capability, updates)
            # What waits, and what the session can still send, is not durable, so it is at or after this frontier.
            held.downgrade(frontier)

        return logic

    builder.build(constructor)
    return released
