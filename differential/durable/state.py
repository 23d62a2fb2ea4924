"""The durable collections of a program, opened together, and the time from which it goes on.

**Opening.** Worker 0 claims every collection in the place, which fences off earlier runs, and the others receive the
manifests from it. So all workers know the same state, and none of them can be of another run. Worker 0 then checks that
no other program has claimed one of the collections meanwhile, and checks it again when it makes new ones.

**As of.** All inputs are loaded as of one time, at which the outputs are computed again: the last time that is final
for all outputs, so that nothing is missing and little is computed twice. Everything between inputs and outputs is a
function of the inputs, so what was final is computed again as it was. An output is appended to from its own `upper` on.
With `replay`, inputs are loaded as of the first time that they retain, for operators that look at the times of changes.

**First epochs.** Each input goes on at its own first epoch that is not durable, so that none is left out. Other inputs,
and their outputs, may be further by then. The input must not change what is final. An output that depends on it is
final beyond this epoch only if the input was closed; then the input goes on at the first epoch not final there.
A program may leave an output out and change its inputs meanwhile, so the manifest of an output names its inputs. It
also notes how far each was, so that an older copy of an input is refused, which would lack epochs.

**Retention.** After a crash the inputs would be loaded as of `upper` - 1 of the output that is least far or, without
outputs, of such an input. An input must stay readable as of this time: its `since` is not later, whatever `keep` is.

**The times.** The program goes on at these, which are the same on all workers:

    load_time(input)         as of which the history of the input is loaded
    begin()                  as of which the outputs are computed again
    first_time(snapshot)     at which an operator with private state begins
    first_epoch(input)       the first epoch of new changes

    load_time <= begin <= first_time, and load_time < first_epoch unless both are 0

Worker 0 knows these while the program runs. They are computed from the `upper` of the writers, so they never go back:

    limit(input)      min of outputs and snapshots - 1    `since` of the input must not pass it
    bound()           min of inputs `ahead`               an output is appended to up to the least of its frontier,
    input_upper()     max of inputs                       `bound` and `input_upper`
    final()           min of outputs                      snapshots are committed up to it
    made_of(shard)    each of its inputs                  is noted with each append of an output or a snapshot
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from differential.durable.kinds import kind_of
from differential.durable.manifest import Keep, Manifest, Part, Position, described
from differential.durable.opening import agreed, check, claimed
from differential.durable.shard import Shard, refuse_remains
from differential.durable.store import Stores, check_name, checked_fields, place_of
from differential.durable.writer import Writer
from timely import Scope, Worker
from timely.errors import BuildError, StateError
from timely.lowlevel import Activator, StreamCore, as_column, user_origin

INPUT, OUTPUT, SNAPSHOT = "input", "output", "snapshot"
INPUTS = "inputs"
"""What is noted of an output or a snapshot under this name: the inputs that it depends on."""


class OpenShard:
    """A durable collection of a program that runs: what it was when the program began, and its writer on worker 0.

    >>> def program(worker):
    ...     return State.open(worker, "no-such-directory").shard("words", keep="1h")
    >>> execute_directly(program)
    OpenShard('words')
    """

    def __init__(
        self,
        state: State,
        name: str,
        fields: Sequence[str] | None,
        keep: int | str | None,
        added: Mapping[str, Any] | None,
    ) -> None:
        self.state = state
        self.name = name
        self.fields = checked_fields(name, fields, added or ())
        self.keep = Keep(keep)
        self.shard = Shard(name, state.place.store(name))
        self.opened = state.manifests.get(name)
        self.role: str | None = None
        self.stream: StreamCore | None = None
        """What is made durable or, of an input, what the dataflow receives, once it is built."""
        self.added: dict[str, tuple[str, Any]] = {}
        """Fields that the collection does not have yet: (kind, value in the records that are there) by name."""
        self._check_fields(added or {})

    @property
    def writer(self) -> Writer:
        """The writer, on worker 0, once the program goes on (`State.begin`)."""
        return self.state.writers[self.name]

    def take(self, role: str, scope: Scope) -> None:
        """Use the collection. Raises BuildError if it is used already, or times there have several coordinates."""
        if scope.width != 1:
            where = f"at {user_origin()}: the durable {role} {self.name!r}"
            raise BuildError(f"{where} needs times of one coordinate, and those of {scope} have {scope.width}")
        if self.role is not None:
            raise BuildError(f"at {user_origin()}: {self.name!r} is already {described(self.role)} of this program")
        if self.opened is not None and self.opened.role != role:
            raise StateError(
                f"{self.shard} is {described(self.opened.role)} of the program that wrote it, not {described(role)}"
            )
        self.role = role
        self.state.use(self)

    def refuse_of_session(self) -> None:
        """Raise StateError if only a session can change the collection."""
        if self.opened is not None and self.opened.is_of_session:
            what = "table" if self.opened.role == INPUT else "view"
            hint = ", and close() the input" if self.opened.role == INPUT else ""
            raise StateError(
                f"{self.shard} is a {what} of a session, which alone can change it: only read it here{hint}"
            )

    def _check_fields(self, added: Mapping[str, Any]) -> None:
        names = self.fields
        if names is None:
            return
        found = tuple(name for name, _ in self.opened.fields) if self.opened is not None else ()
        more = names[len(found) :] if found else ()
        if found and found != names[: len(found)]:
            raise StateError(f"{self.shard} has the fields {', '.join(found)}, not {', '.join(names)}")
        if more:
            self.refuse_of_session()
        for name in more:
            if name not in added:
                raise StateError(
                    f"{self.shard} has the fields {', '.join(found)}, but not {name}: added={{{name!r}: value}} gives "
                    "that value to the existing records"
                )
            value = added[name]
            column = value if getattr(value, "shape", ()) == (1,) else as_column([value])
            self.added[name] = kind_of(column), column.tolist()[0]

    def __repr__(self) -> str:
        return f"OpenShard({self.name!r})"


class State:
    """The durable collections of a program, on one worker.

    A place belongs to one program that runs: opening it ends the program that opened it before.

    >>> def program(worker):
    ...     state = State.open(worker, "no-such-directory")
    ...     return state.names, state.shard("words", fields=["word"], keep=0)
    >>> execute_directly(program)
    ([], OpenShard('words'))
    """

    def __init__(
        self, place: Stores, manifests: dict[str, Manifest], writers: dict[str, Writer], *, first: bool, replay: bool
    ) -> None:
        self.place = place
        self.manifests = manifests
        self.writers = writers
        self._is_first = first
        self._replays = replay
        self.ahead: set[str] = set()
        """The inputs of which the dataflow uses changes that may not be durable, on worker 0."""
        self.waiting: list[Activator] = []
        """The outputs, on worker 0."""
        self.following: list[Activator] = []
        """What waits for outputs to be final, on worker 0."""
        self.every = 1
        """The number of epochs from one snapshot to the next: the largest that an operator names."""
        self.frontier: int | None = None
        """The frontier of the last state that all snapshots had when the program began, None if there was none."""
        self.committed: int | None = None
        """The same now, on worker 0."""
        self.written: dict[int, dict[str, list[Part]]] = {}
        """The states that all workers have written, by frontier and snapshot, until they are committed, on worker 0."""
        self._used: list[OpenShard] = []
        self._began: int | None = None

    @classmethod
    def open(
        cls, worker: Worker, where: str | os.PathLike[str] | Stores | None = None, *, replay: bool = False
    ) -> State:
        """Return the state at a place, on each worker: a directory, by default that of `timely run --state DIR`.

        With `replay`, all that the inputs retain happens again at its own times. That takes longer, and serves programs
        whose answers depend on the times of changes (`window`, `delay`), and new outputs that are to have a past.

        Raises ConfigError if no place is given, StateError if a collection is damaged or of another format, StoreError
        if the place cannot be read or written.

        >>> def program(worker):
        ...     return State.open(worker, "no-such-directory").names
        >>> execute_directly(program)
        []
        """
        place = place_of(where)
        writers = claimed(place) if worker.index == 0 else {}
        manifests = agreed(worker, writers)
        return cls(place, manifests, writers, first=worker.index == 0, replay=replay)

    @property
    def names(self) -> list[str]:
        """The names of the collections that existed when the program began."""
        return sorted(self.manifests)

    def shard(
        self,
        name: str,
        *,
        fields: Sequence[str] | None = None,
        keep: int | str | None = None,
        added: Mapping[str, Any] | None = None,
    ) -> OpenShard:
        """Return a collection to use, which need not exist yet.

        `fields` names the columns of a new one. `keep` is how much of the past stays readable: a number of epochs
        before the last, an age such as "1h", or None for everything. If `fields` has more names than the collection has
        columns, `added` has the values of the others in the records that are there, by name: a scalar, or a column of
        one row, which has a type.

        Raises ConfigError if a name or duration is not one, StateError if the collection has other fields.
        """
        check_name(name)
        return OpenShard(self, name, fields, keep, added)

    def use(self, shard: OpenShard) -> None:
        """Make a collection one of the program's. Raises BuildError if the program has gone on without it."""
        if self._began is not None:
            raise BuildError(
                f"at {user_origin()}: {shard.name!r} was opened too late: build everything that uses the state before "
                "the first step"
            )
        if any(used.name == shard.name for used in self._used):
            raise BuildError(f"at {user_origin()}: {shard.name!r} is already used")
        self._used.append(shard)

    def begin(self) -> int:
        """Return the time at which outputs are computed again; make new collections.

        All workers compute the same. Raises StateError if an input does not have the contents that an output needs.
        """
        if self._began is None:
            for shard in self.of(INPUT):
                self._refuse_older(shard)
            self._began = self._as_of()
            if self._is_first:
                self._make(self._began)
        return self._began

    def first_epoch(self, shard: OpenShard) -> int:
        """Return the first epoch of changes of an input: no change before it is missing.

        It is the first that is not durable. If other inputs went on when this one was closed, it is the first that is
        not final for any output or snapshot that depends on it, or did when it was last written.
        """
        dependent = {other.name for other in self._dependent(shard)}
        ends = [
            self._final_before(manifest)
            for name, manifest in self.manifests.items()
            if name in dependent or shard.name in manifest.about.get(INPUTS, ())
        ]
        return max([0 if shard.opened is None else shard.opened.upper, *ends])

    def _dependent(self, shard: OpenShard) -> list[OpenShard]:
        """Return the outputs and snapshots that depend on an input in this program."""
        stream = shard.stream
        assert stream is not None
        reached = stream.scope.dataflow.plan.reached_from(stream.location)
        others = self.of(OUTPUT, SNAPSHOT)
        return [other for other in others if other.stream is not None and other.stream.location in reached]

    def load_time(self, shard: OpenShard) -> int:
        """Return the time as of which an input is loaded: at or before `begin`, and before its first epoch."""
        return min(self.begin(), max(self.first_epoch(shard) - 1, 0))

    def first_time(self, shard: OpenShard) -> int:
        """Return the time at which an operator with private state begins, with what its input adds up to then.

        That is `begin` or, if the operator has no state of `frontier`, and inputs are loaded as of an earlier time, the
        last time before `frontier`: it began there first, as all operators of the program did.
        """
        as_of, frontier = self.begin(), self.frontier
        if frontier is None or (shard.opened is None and self._replays):
            return as_of
        if shard.opened is not None and any(state.upper == frontier for state in shard.opened.states):
            return as_of
        return max(as_of, frontier - 1)

    def limit(self, shard: OpenShard) -> int | None:
        """Return the last time as of which a collection must stay readable, on worker 0; None if any will do.

        That is for inputs: the time as of which they would be loaded after a crash.
        """
        others = self.of(OUTPUT, SNAPSHOT) or [other for other in self.of(INPUT) if other is not shard]
        if shard.role != INPUT or not others:
            return None
        return min(other.writer.manifest.upper for other in others) - 1

    def input_upper(self) -> int | None:
        """Return how far the furthest durable input is durable, on worker 0; None if there are no inputs.

        The program changes no collection at earlier times, now or when it is started again.
        """
        return max((shard.writer.manifest.upper for shard in self.of(INPUT)), default=None)

    def bound(self) -> int | None:
        """Return the time before which all changes that are used ahead are durable, on worker 0; None if none are."""
        return min((self.writers[name].manifest.upper for name in self.ahead), default=None)

    def final(self) -> int | None:
        """Return the time before which snapshots may be committed, on worker 0; None if that is any time.

        All outputs are final before it or, if there are none, the inputs.
        """
        outputs = [shard.writer.manifest.upper for shard in self.of(OUTPUT)]
        ends = outputs or [end for end in (self.input_upper(), self.bound()) if end is not None]
        return min(ends, default=None)

    def made_of(self, shard: OpenShard, upper: int) -> dict[str, Position]:
        """Return, for each input of a collection that is final before `upper`, the time before which its changes count.

        That is on worker 0, and nothing for an input. An input that is closed may end before `upper`.
        """
        names = [] if shard.role == INPUT else shard.writer.manifest.about[INPUTS]
        return {name: min(upper, self.writers[name].manifest.upper) for name in names}

    def activate_outputs(self) -> None:
        """Let outputs and snapshots look how far the inputs are durable, on worker 0."""
        for activate in (*self.waiting, *self.following):
            activate()

    def _as_of(self) -> int:
        inputs = [(shard, shard.opened) for shard in self.of(INPUT) if shard.opened is not None]
        compacted = max((opened.since for _, opened in inputs), default=0)
        is_whole = self._replays and not compacted
        kept = [(shard, shard.opened) for shard in self.of(SNAPSHOT) if shard.opened is not None]
        self.frontier = _common_frontier(kept, is_needed=not is_whole)
        ends = [  # `since` is later than `upper` - 1 of an output of which nothing is final
            (max(shard.opened.since, shard.opened.upper - 1), str(shard.shard))
            for shard in self.of(OUTPUT)
            if shard.opened is not None
        ]
        if self.frontier is not None:
            ends += [(self.frontier - 1, str(shard.shard)) for shard, _ in kept]
        last, behind = min(ends, default=(None, ""))
        if last is not None and last < compacted:
            raise StateError(
                f"{behind} is final before {last + 1}, but the inputs of the program are compacted up to {compacted}, "
                "so its next changes cannot be computed: remove it to begin it again"
            )
        if self._replays:
            as_of = compacted
        elif last is not None:
            as_of = last
        else:
            as_of = max(compacted, min((opened.upper for _, opened in inputs), default=1) - 1)
        self.committed = self.frontier
        if self.frontier is not None and not is_whole and as_of + 1 < self.frontier:
            self._refuse_without_states(kept, as_of, compacted, behind)
        return as_of

    def _refuse_older(self, shard: OpenShard) -> None:
        """Raise StateError if an input lacks changes that an output or a snapshot is made of."""
        upper = 0 if shard.opened is None else shard.opened.upper
        for name, manifest in self.manifests.items():
            needed = manifest.offsets.get(shard.name, 0) if shard.name in manifest.about.get(INPUTS, ()) else 0
            if isinstance(needed, int) and needed > upper:
                what = "missing" if shard.opened is None else f"an older copy, with its changes before {upper}"
                raise StateError(
                    f"{shard.shard} is {what}, and {name!r} is made of its changes before {needed}: restore all "
                    f"collections from one copy, or remove {name!r} to begin it again"
                )

    def _refuse_without_states(
        self, kept: Sequence[tuple[OpenShard, Manifest]], as_of: int, compacted: int, behind: str
    ) -> None:
        """Raise StateError if an operator has state of a later time than that as of which inputs are loaded."""
        for shard, opened in kept:
            if not any(state.upper == self.frontier for state in opened.states):
                continue
            problem = f"{shard.shard} has the state of an operator at {self.frontier}, "
            if self._replays:
                raise StateError(
                    f"{problem}and replay=True makes the changes from {as_of} on again, but not those before, which "
                    "the inputs have given up: open the state without replay, or remove the snapshot to begin it again"
                )
            replay = "" if compacted else ", open the state with replay=True"
            raise StateError(
                f"{problem}and {behind} needs the changes from {as_of + 1} on, for which there is no "
                f"state: remove it to begin it again{replay}, or leave it out"
            )

    def _final_before(self, manifest: Manifest) -> int:
        """Return the time before which nothing may change that an output or a snapshot is made of."""
        if manifest.role == SNAPSHOT:
            return max((state.upper for state in manifest.states), default=0)
        return manifest.upper if manifest.since < manifest.upper else 0

    def _make(self, as_of: int) -> None:
        """Make the collections that do not exist: inputs that were empty so far, outputs that are not known before."""
        found = list(self.writers.values())
        is_more = any(shard.name not in self.writers for shard in self._used)
        if is_more:
            check(found)  # a program that was replaced makes no new ones
        needs: dict[str, list[str]] = {shard.name: [] for shard in self.of(OUTPUT, SNAPSHOT)}
        for shard in self.of(INPUT):
            for dependent in self._dependent(shard):
                needs[dependent.name].append(shard.name)
        for shard in self._used:
            about: dict[str, Any] = {} if shard.role == INPUT else {INPUTS: sorted(needs[shard.name])}
            if shard.name not in self.writers:
                refuse_remains(shard.shard)
                if shard.role == INPUT:
                    since, at = 0, self.first_epoch(shard)
                else:
                    since = self.first_time(shard) if shard.role == SNAPSHOT else as_of
                    at = since + (shard.role == SNAPSHOT)
                self.writers[shard.name] = Writer.claim(
                    shard.shard, str(shard.role), at, since=since, about=about, is_new=True
                )
            shard.writer.describe({**shard.writer.manifest.about, **about})
            if shard.added:
                shard.writer.add_fields(shard.added)
            shard.writer.names = shard.fields
            shard.writer.keep = shard.keep
        if is_more:
            check(found)  # a program that has replaced this one meanwhile may not know the new ones

    def of(self, *roles: str) -> list[OpenShard]:
        """Return the collections of the program that have one of some roles."""
        return [shard for shard in self._used if shard.role in roles]


def _common_frontier(kept: Sequence[tuple[OpenShard, Manifest]], *, is_needed: bool) -> int | None:
    """Return the last frontier of which all snapshots have the state, None if there is none and none is needed.

    All snapshots are committed at the same frontiers, one after the other, and each keeps the state before.
    """
    if not kept:
        return None
    common = set.intersection(*(opened.frontiers for _, opened in kept))
    if not common and is_needed:
        found = ", ".join(f"{shard.shard} at {opened.upper}" for shard, opened in kept)
        raise StateError(
            f"the snapshots of the program have no state of the same frontier ({found}), so the program cannot "
            "continue from them: remove all but one to begin their operators again"
        )
    return max(common, default=None)
