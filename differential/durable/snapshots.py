"""Operators with private state, which survives in snapshots.

What lies between durable inputs and outputs is computed again after a crash. An operator whose state depends on all
changes since the beginning, not only on what they add up to, needs all of them for this; a snapshot takes their
place. A snapshot belongs to a frontier f, a multiple of `every`: it is the state after all changes at times before f,
one part for each worker, written by the worker itself.

A snapshot is committed, by worker 0, once it has the parts of all workers, and all durable outputs are final before f.
So a program that is started again loads its inputs as of f - 1, and the operator begins with the snapshot in the place
of these: it receives the changes from f on, at their own times. Until the first snapshot it begins at the beginning.

The inputs are loaded as of one time, so all operators of a program must have a state of the same frontier. They take
snapshots at the same frontiers, and these are committed one after the other once all are written. A crash may come in
between, so each keeps the state before the last. An operator whose state is of another frontier is refused: it would
begin again from what its input adds up to, and forget what it has seen.

An operator that has no state yet begins where it began first, also if inputs are loaded as of an earlier time, because
another output is further behind. Its own output may be final from there on, and would differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from heapq import heappop, heappush
from io import BytesIO
from threading import Lock
from typing import Any, Protocol, cast
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from differential.arrangement.arrange import ByKey
from differential.collection import Collection
from differential.data.pact import hash_of_keys
from differential.data.updates import Updates
from differential.durable.committing import in_thread
from differential.durable.manifest import Part
from differential.durable.shard import missing
from differential.durable.state import SNAPSHOT, OpenShard, State
from differential.operators.explode import occurrences
from differential.operators.hold import by_time
from differential.operators.input import interned_updates
from timely import Stream
from timely.errors import ConfigError, DataError
from timely.lowlevel import (
    Activator,
    Capability,
    CapabilitySet,
    Gather,
    Host,
    InputPort,
    OperatorBuilder,
    as_columns,
    destinations,
)

Array = NDArray[Any]
Arrays = Mapping[str, Array]
"""Arrays by name, as `numpy.savez` keeps them: of numbers, booleans, dates, or text of a fixed width."""
Changes = tuple[tuple[Any, ...], Any]
"""Columns of records, and how much more often each occurs: a number for each row."""

_parsing = Lock()
"""Held while an array is read: NumPy parses its header with `ast`, which may fail in two threads of Python 3.11."""


class Restorable(Protocol):
    """The private state of an operator on one worker.

    >>> class Largest:
    ...     def __init__(self):
    ...         self.largest = 0
    ...     def update(self, time, columns, diffs):
    ...         before, self.largest = self.largest, max(self.largest, int(columns[0].max()))
    ...         return (np.array([before, self.largest]),), np.array([-1, 1])
    ...     def snapshot(self):
    ...         return {"largest": np.array([self.largest])}
    ...     def restore(self, states, index, peers):
    ...         self.largest = int(max(state["largest"][0] for state in states))
    ...         return (np.array([self.largest]),), np.array([1])
    """

    def update(self, time: int, columns: tuple[Array, ...], diffs: Array) -> Changes | None:
        """Take all changes of a time, of this worker's share of the keys; return how the output changes at that time.

        Called for each time that has changes, in order, when the time is complete.
        """

    def snapshot(self) -> Arrays:
        """Return the state, in arrays that are not written to afterwards."""

    def restore(self, states: Sequence[Arrays], index: int, peers: int) -> Changes | None:
        """Take share `index` of `peers` of the state, and return what this share of the output adds up to.

        `states` are the snapshots of all workers of the run that made them, of which there may have been more or fewer.
        The share is that of the keys for which `in_share` is true.
        """


def in_share(keys: Sequence[Any], index: int, peers: int) -> NDArray[np.bool_]:
    """Return which rows of key columns belong to share `index` of `peers`: those that this worker receives.

    `stateful` divides the records by their key, the first columns of its collection. So `restore` keeps the state of
    these keys, and what it returns is their share of the output.

    >>> machines = np.array([5, 6, 7, 8])
    >>> [machines[in_share([machines], index, 2)].tolist() for index in range(2)]
    [[5, 6, 8], [7]]
    """
    mine: NDArray[np.bool_] = destinations(hash_of_keys(as_columns(tuple(keys))), peers) == index
    return mine


def stateful(
    collection: Collection, make: Callable[[], Restorable], shard: OpenShard, *, every: int, name: str = "stateful"
) -> Collection:
    """Return the output of an operator with private state, which `make` makes on each worker, and `shard` keeps.

    Each worker has the records of some keys. The state is kept each time that `every` epochs more are complete. If a
    program has several such operators, the largest `every` applies to all of them.

    Raises BuildError if the collection's times have several coordinates, ConfigError unless `every` is at least 1.

    >>> import tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> from differential.durable import State, durable_input, in_share
    >>> class Seen:
    ...     def __init__(self):
    ...         self.words = set()
    ...     def update(self, time, columns, diffs):
    ...         new = [word for word in dict.fromkeys(columns[0].tolist()) if word not in self.words]
    ...         self.words.update(new)
    ...         return ((np.full(len(new), time), np.array(new)), np.ones(len(new), np.int64)) if new else None
    ...     def snapshot(self):
    ...         return {"words": np.array(sorted(self.words))}
    ...     def restore(self, states, index, peers):
    ...         words = np.concatenate([state["words"] for state in states])
    ...         self.words = set(words[in_share([words], index, peers)].tolist())
    ...         print("restored", sorted(self.words))
    >>> def program(worker, first, last):
    ...     state = State.open(worker, directory.name)
    ...     with worker.dataflow() as scope:
    ...         words, collection = durable_input(scope, state.shard("words", keep=0))
    ...         new = stateful(collection, Seen, state.shard("seen"), every=2)
    ...         output = new.output()
    ...     for epoch in range(first, last):
    ...         words.insert(["to", "be", "or", "not", "to", "be"][epoch])
    ...         words.advance_to(epoch + 1)
    ...         worker.step_while(lambda: output.less_than(epoch + 1))
    ...     words.close()
    ...     worker.step_while(lambda: not output.done())
    ...     return output.changes()
    >>> execute_directly(lambda worker: program(worker, 0, 5))
    [((0, 'to'), (0,), 1), ((1, 'be'), (1,), 1), ((2, 'or'), (2,), 1), ((3, 'not'), (3,), 1)]
    >>> execute_directly(lambda worker: program(worker, 5, 6))
    restored ['be', 'not', 'or', 'to']
    []
    >>> directory.cleanup()
    """
    scope = collection.scope
    if every < 1:
        raise ConfigError(f"{name!r} keeps its state each time that some epochs are complete, at least 1, not {every}")
    shard.take(SNAPSHOT, scope)
    shard.state.every = max(shard.state.every, every)
    shard.stream = collection.stream
    builder = OperatorBuilder(scope, name)
    changes = builder.add_input(collection.stream, ByKey(collection.keys), frontier=True)
    (output, result), (written, parts) = builder.add_output(initial=True), builder.add_output(initial=True)
    for port in (output, written):
        builder.connect(changes, port, None)  # so the capabilities alone hold the frontiers of the outputs
    activate = Activator(builder.operator)
    host = scope.dataflow.host

    def constructor(capabilities: list[Capability]) -> Callable[[], None]:
        held, unsent = map(CapabilitySet.of, capabilities)
        operator = _Operator(make(), shard, shard.state.every, host, activate)
        return lambda: operator.run(changes, output, written, held, unsent)

    builder.build(constructor)
    _commit(parts, shard)
    return Collection(result, 1)


class _Operator:
    """One worker's operator: what it runs, the changes that wait for their time, and the snapshot that is written."""

    def __init__(self, logic: Restorable, shard: OpenShard, every: int, host: Host, activate: Activator) -> None:
        self._logic = logic
        self._shard = shard
        self._every = every
        self._host = host
        self._activate = activate
        self._waiting: dict[int, list[Updates]] = {}
        self._times: list[int] = []
        """The times of the changes that wait, as a heap."""
        self._writing: Future[Part] | None = None
        self._from = 0
        """Changes before this time are in the state that was restored."""
        self._restored = self._restore()
        self._begin = shard.state.first_time(shard)
        """The operator receives all changes before this time at this time."""
        self._next = max(self._begin, self._from) // every * every + every

    def run(self, changes: InputPort, output: Any, written: Any, held: CapabilitySet, unsent: CapabilitySet) -> None:
        """Take what has come, and complete times and snapshots as far as the frontier allows."""
        if self._restored is not None:
            self._give(self._from - 1, self._restored, output, held)
            self._restored = None
        for _, batch in changes.drain():
            self._keep(cast(Updates, batch))
        ends = [time for (time,) in changes.frontier.elements]
        end = ends[0] if ends else None
        while not self._is_writing(written, unsent):
            # No change before `ready`, or before `end` if nothing is ready, is left to apply. So the present state is
            # that at each frontier up to there.
            ready = self._times[0] if self._times and (end is None or self._times[0] < end) else None
            if end is not None and self._next <= (reached := end if ready is None else ready):
                at = self._every * roundest(self._next // self._every, reached // self._every)
                write = partial(_written, self._shard, at, self._host, self._logic.snapshot())
                self._writing = in_thread(f"snapshot of {self._shard.name}", write, self._activate)
                self._next = at + self._every
            elif ready is not None:
                self._complete(ready, output, held)
            elif end is None:
                held.drop()
                unsent.drop()
                return
            else:
                break
        floor = min([*self._times[:1], *ends], default=None)
        if floor is not None:
            held.downgrade([(floor,)])
        # If nothing is being written, the next snapshot is after `end`: the loop has begun all earlier ones.
        frontier = self._next - self._every if self._writing is not None else end
        if frontier is not None and unsent.times and unsent.times[0] < (frontier,):
            unsent.downgrade([(frontier,)])

    def _keep(self, updates: Updates) -> None:
        """Keep changes until their time is complete: those that the state does not have."""
        for (time,), part in by_time(updates):
            if len(part) and time >= self._from:
                time = max(time, self._begin)
                if time not in self._waiting:
                    self._waiting[time] = []
                    heappush(self._times, time)
                self._waiting[time].append(part)

    def _complete(self, time: int, output: Any, held: CapabilitySet) -> None:
        """Pass on the changes of the first time that waits."""
        heappop(self._times)
        # With text as strings: between operators it travels as numbers of the worker's table.
        batches = [each.as_read_only() for each in self._waiting.pop(time)]
        columns = tuple(np.concatenate(parts) for parts in zip(*(each.columns for each in batches)))
        diffs = np.concatenate([each.each_diff() for each in batches])
        made = self._logic.update(time, columns, diffs)
        if made is not None:
            self._give(time, made, output, held)

    def _give(self, time: int, made: Changes, output: Any, held: CapabilitySet) -> None:
        columns, diffs = as_columns(made[0]), np.asarray(made[1])
        if len(diffs) != len(columns[0]):
            raise DataError(f"{len(columns[0])} records need as many diffs, and there are {len(diffs)}")
        if len(diffs):
            with held.covering((time,)).delayed((time,)) as capability:
                updates = Updates.at((time,), columns, occurrences(diffs, len(diffs)))
                output.give(capability, interned_updates(updates, self._host))

    def _is_writing(self, written: Any, unsent: CapabilitySet) -> bool:
        """Return whether a snapshot is being written; if it has been, send its part to worker 0."""
        if self._writing is None or not self._writing.done():
            return self._writing is not None
        part = self._writing.result()
        with unsent.covering((part.upper,)).delayed((part.upper,)) as capability:
            written.give(capability, [(part.upper, self._host.index, part.name, part.size, part.sha256)])
        self._writing = None
        return False

    def _restore(self) -> Changes | None:
        """Let the logic take its share of the snapshot, if there is one of the time as of which inputs are loaded."""
        opened, frontier = self._shard.opened, self._shard.state.frontier
        kept = [part for part in opened.states if part.upper == frontier] if opened is not None else []
        if not kept or frontier is None or self._shard.state.begin() + 1 != frontier:
            return None
        self._from = frontier
        states = [_loaded(self._shard, part) for part in kept]
        return self._logic.restore(states, self._host.index, self._host.peers)


def roundest(first: int, last: int) -> int:
    """Return the number from `first` to `last`, both at least 1, that the largest power of two divides.

    If nothing changes between two epochs that are far apart, the state is kept at few of the frontiers between them. So
    that workers whose frontiers pass different epochs keep it at the same ones, these are the roundest.

    >>> roundest(1, 100), roundest(65, 100), roundest(97, 100), roundest(5, 5)
    (64, 96, 100, 5)
    """
    while (rounder := last & (last - 1)) >= first:
        last = rounder
    return last


def _written(shard: OpenShard, frontier: int, host: Host, arrays: Arrays) -> Part:
    """Write a snapshot of one worker."""
    # The fence of this run: `opened` is the manifest after its claim, and a new collection is claimed with 1. The
    # writer itself is on worker 0 alone.
    fence = shard.opened.fence if shard.opened is not None else 1
    data = _saved(arrays)
    sha256 = hashlib.sha256(data).hexdigest()
    name = f"{fence:08d}-{frontier:012d}-{host.index:04d}-{sha256[:12]}.npz"
    shard.shard.store.put_new(name, data)
    return Part(name, frontier - 1, frontier, 0, len(data), sha256, 0)


def _saved(arrays: Arrays) -> bytes:
    """Return arrays in the form of NumPy's files. Raises DataError, which names an array, if one has no such form."""
    data = BytesIO()
    with ZipFile(data, "w") as file:
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray) or array.dtype.hasobject:
                raise DataError(f"{name!r} of a snapshot must be an array of numbers or of text of a fixed width ('U')")
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array)
    return data.getvalue()


def _loaded(shard: OpenShard, part: Part) -> dict[str, Array]:
    data = shard.shard.part(part)
    if data is None:
        raise missing(shard.shard, part.name)
    # Read one by one, by a function that refuses objects: what is in a file is never run.
    with ZipFile(BytesIO(data)) as file, _parsing:
        return {name.removesuffix(".npy"): np.lib.format.read_array(file.open(name)) for name in file.namelist()}


def _commit(parts: Stream, shard: OpenShard) -> None:
    """Commit snapshots on worker 0: those that all workers have written, once all outputs are final before them."""
    builder = OperatorBuilder(parts.scope, f"{shard.name}: commit")
    written = builder.add_input(parts, Gather(), frontier=True)
    activate = Activator(builder.operator)
    index, peers = parts.scope.index, parts.scope.dataflow.host.peers

    def constructor(_: list[Capability]) -> Callable[[], None]:
        if index:
            return lambda: None
        state = shard.state
        state.begin()
        state.following.append(activate)
        known: dict[int, list[Part]] = {}

        def logic() -> None:
            for _, batch in written.drain():
                for frontier, _, name, size, sha256 in cast(list[Any], batch):
                    known.setdefault(frontier, []).append(Part(name, frontier - 1, frontier, 0, size, sha256, 0))
            for frontier in sorted(known):
                if len(known[frontier]) == peers:
                    state.written.setdefault(frontier, {})[shard.name] = known.pop(frontier)
            _commit_all(state)
            for frontier in [each for each in known if each <= (state.committed or 0)]:
                del known[frontier]  # not all workers have kept it, because they have passed other epochs

        return logic

    builder.build(constructor)


def _commit_all(state: State) -> None:
    """Commit the last frontier at which all snapshots are written and all outputs are final, on worker 0.

    A snapshot keeps the frontier before if there are others. One that has this frontier already was committed by a run
    that crashed before it committed the others.
    """
    snapshots, final = state.of(SNAPSHOT), state.final()
    whole = [
        frontier
        for frontier, written in state.written.items()
        if len(written) == len(snapshots) and (final is None or frontier <= final)
    ]
    if not whole:
        return
    last, before = max(whole), state.committed
    # Without a common frontier, no snapshot goes back to an earlier one than it has.
    if last >= (max(shard.writer.manifest.upper for shard in snapshots) if before is None else before):
        for shard in snapshots:
            manifest = shard.writer.manifest
            former = before if before in manifest.frontiers else manifest.upper
            if all(part.upper != last for part in manifest.states):
                states = state.written[last][shard.name]
                shard.writer.keep_states(last, states, former if snapshots[1:] else None, state.made_of(shard, last))
        state.committed = last
    state.written = {frontier: written for frontier, written in state.written.items() if frontier > last}
