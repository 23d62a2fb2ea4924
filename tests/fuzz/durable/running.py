"""Run a random program of durable collections several times, and compare what is durable with its twin after each run.

Each run draws its inputs, its answers and their options, the epochs that it makes, and how it ends: it closes its
inputs, fails between two changes, fails at an operation of the store, or is replaced by another run. Requests to the
store are lost or late; or the store is a directory, and the machine crashes. Between two runs the inputs may get a
column more, or some collections are replaced by older copies.

Afterwards these must hold:

- at each time that can be read, a collection has what the changes of the durable epochs add up to, which is what a run
  has read of it meanwhile;
- what was final after an earlier run is the same;
- what `is_durable` reported to a run is durable;
- positions of sources are those of the changes;
- no input leaves out an epoch, unless a run has closed it.
"""

from __future__ import annotations

import time as clock
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from differential import Collection
from differential.durable import (
    DurableOutput,
    DurableSession,
    OpenShard,
    Shard,
    State,
    compaction,
    durable_input,
    persist,
    writer,
)
from differential.durable.manifest import Manifest
from tests.fuzz.durable.answers import (
    ADDED,
    ANSWERS,
    CHANGED,
    INPUTS,
    WHOLE,
    Answer,
    Contents,
    Record,
    changes,
    contents,
    nonzero,
)
from tests.fuzz.durable.places import PATIENCE, Disk, Memory, Simulated, calm, manifest_of
from tests.simulation.stores import Crash, Seeded
from timely import Config, Worker, execute
from timely.errors import FencedError, OperatorError, StateError, StoreError

REFUSALS = ("are compacted up to", "has the state of an operator at", "no state of the same frontier", "is missing")
"""What a program may be refused for: what it needs is gone, or another program has replaced it."""
OLDER = ("is an older copy, with its changes before", "is missing, and")
"""What it may be refused for after collections were replaced by copies."""


class Wrong(AssertionError):
    """What is durable is not what the twin has."""


class Seen(NamedTuple):
    """What a run has read of a collection, as of a time."""

    name: str
    time: int
    width: int
    found: Contents


class Case:
    """A random program, and what its twin knows of its runs."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.place: Simulated = self.random.choice([Memory, Memory, Disk])(Seeded(seed))
        self.epochs: dict[str, dict[int, list[tuple[Record, int]]]] = {name: {} for name in INPUTS}
        self.starts: dict[str, int] = {}
        self.final: dict[str, dict[int, Contents]] = {name: {} for name in ANSWERS}
        self.answers = dict(ANSWERS)
        self.width = 2
        self.may_leave_out: set[str] = set()
        self.left_out: dict[str, set[int]] = {name: set() for name in INPUTS}
        self.promised: dict[str, int] = {}
        self.seen: list[Seen] = []
        self.copies: dict[str, tuple[Manifest, Any, Answer | None]] = {}
        """Of some collections, a copy, and how an answer was computed then."""
        self.story: list[str] = []

    def run(self) -> None:
        """Run the program several times. Raises Wrong, with what happened, at the first difference."""
        random = self.random
        with patch.object(writer, "_FIRST_PAUSE", 0.0), patch.object(compaction, "RUN", random.choice([2, 8])):
            for _ in range(random.randrange(2, 7)):
                if random.random() < 0.3:
                    self.answers = {**self.answers, **random.choice([ANSWERS, CHANGED])}
                if random.random() < 0.1:
                    self.widen()
                self.live(may_nest=True)
                with calm(self.place):
                    if random.random() < 0.5:
                        self.place.crash()
                    self.compare()
                if random.random() < 0.1:
                    self.put_back()

    def widen(self) -> None:
        """From now on, let records have a third column."""
        if self.width == 2:
            self.width = 3
            for made in self.epochs.values():
                for epoch in made:
                    made[epoch] = [((*record, ADDED), diff) for record, diff in made[epoch]]
            final = self.final[WHOLE]
            for time in final:
                final[time] = {(*record, ADDED): diff for record, diff in final[time].items()}

    def put_back(self) -> None:
        """Replace some of the collections by older copies of them."""
        with calm(self.place):
            for name, (manifest, _, answer) in self.copies.items():
                if answer is not None:
                    self.complete(name, manifest, answer)
            for name, (manifest, copy, _) in self.copies.items():
                if self.random.random() < 0.5:
                    self.place.replace(name, copy)
                    self.story.append(f"  {name} is replaced by a copy that is final before {manifest.upper}")
                    self.forget(name, manifest.upper)
            self.copies.clear()

    def complete(self, name: str, manifest: Manifest, answer: Answer) -> None:
        """Note what an answer is at all times at which a copy of it can be read: nothing else may be readable there."""
        for time in range(manifest.since, manifest.upper):
            if time not in self.final[name]:
                self.final[name][time] = answer.evaluate(self.epochs, time, self.start(answer.snapshot))

    def forget(self, name: str, upper: int) -> None:
        """Forget what a collection had at times from `upper` on."""
        times: dict[int, Any] = self.epochs[name] if name in INPUTS else self.final.get(name, {})
        for time in [time for time in times if time >= upper]:
            del times[time]
        self.left_out[name] = {epoch for epoch in self.left_out.get(name, ()) if epoch < upper}
        self.promised.pop(name, None)

    def live(self, *, may_nest: bool) -> None:
        """Run the program once, until it ends."""
        self.place.seeded.failing = self.random.choice([0.0, 0.0, 0.02])
        self.place.seeded.crashing = self.random.choice([0.0, 0.0, 0.002, 0.01])
        life = Life(self, may_nest)
        self.story.append(repr(life))
        try:
            execute(life.program, Config(workers=life.workers))
            end = "ended"
            if life.ending != "replaced":
                with calm(self.place):
                    self.compare_seen(life)
        except (Crash, FencedError, StoreError) as error:
            end = f"{type(error).__name__} {error}"
        except (OperatorError, StateError) as error:
            if not (self.is_failure(error) or any(reason in str(error) for reason in REFUSALS + OLDER)):
                raise self.wrong(str(error)) from error
            end = str(error)
            if any(reason in end for reason in OLDER):
                with calm(self.place):
                    self.remove(end.partition(", or remove ")[2].partition(" ")[0].strip("'"))
        self.story.append(f"  {end:.300}")

    def remove(self, name: str) -> None:
        """Remove what is made of an input, and all operators with private state with what they make."""
        stateful = [
            each for each in ((made, answer.snapshot) for made, answer in ANSWERS.items()) if each[1] is not None
        ]
        self.copies.clear()
        for each in {name, *(one for pair in stateful for one in pair if one is not None)}:
            if self.place.present(each) is not None:
                self.place.replace(each, None)
            self.forget(each, 0)
            self.starts.pop(each, None)

    def is_failure(self, error: BaseException) -> bool:
        """Return whether an error is that of a store, or that of a program that was replaced."""
        return isinstance(error.__cause__, (Crash, FencedError, StoreError))

    def compare(self) -> None:
        """Compare all collections with the twin, and what runs have read of them."""
        for name in INPUTS:
            manifest = manifest_of(self.place, name)
            is_new = manifest is not None and not self.epochs[name] and not (manifest.parts or manifest.offsets)
            for epoch in range(manifest.upper if manifest else 0):
                if epoch not in self.epochs[name]:
                    made = [] if is_new else changes(self.seed, name, epoch, self.width)
                    self.epochs[name][epoch] = made
                    self.left_out[name] |= {epoch} if is_new else set()
            if manifest is not None:
                self.compare_one(name, manifest, lambda time, name=name: self.evaluate(name, time))
                self.compare_position(name, manifest)
        for name, answer in self.answers.items():
            manifest = manifest_of(self.place, name)
            self.start(answer.snapshot)
            if manifest is not None:
                expected = {time: self.evaluate(name, time) for time in range(manifest.since, manifest.upper)}
                self.final[name] |= self.compare_one(name, manifest, expected.__getitem__)
        for seen in self.seen:
            manifest = manifest_of(self.place, seen.name)
            if manifest is not None and seen.time < manifest.upper:  # else the machine has crashed before it was synced
                should = projected(self.evaluate(seen.name, seen.time), seen.width)
                if seen.found != should:
                    raise self.wrong(f"a run has read {seen}, and should have read {should}")
        self.seen.clear()

    def evaluate(self, name: str, time: int) -> Contents:
        """Return what a collection should be as of a time."""
        if name in INPUTS:
            return nonzero(contents(self.epochs, name, time, 3))
        answer, final = self.answers[name], self.final[name]
        return final[time] if time in final else answer.evaluate(self.epochs, time, self.start(answer.snapshot))

    def start(self, snapshot: str | None) -> int:
        """Return the time at which an operator with private state began; a crash may have left it without state."""
        manifest = None if snapshot is None else manifest_of(self.place, snapshot)
        if snapshot is None or manifest is None:
            return 0
        if not manifest.states:
            self.starts[snapshot] = manifest.since
        return self.starts[snapshot]

    def compare_seen(self, life: Life) -> None:
        """Compare the answers that a run has seen at its end with those that it has made durable."""
        for name in life.answers:
            seen: Counter[Record] = Counter()
            for each in life.contents:
                seen.update(each[name])
            manifest = manifest_of(self.place, name)
            if manifest is not None and manifest.since < manifest.upper and name not in CHANGED:
                found = Shard(name, self.place.store(name)).read()
                if nonzero(seen) != found:
                    raise self.wrong(f"a run has seen {nonzero(seen)} of {name}, and {found} is durable")

    def compare_one(self, name: str, manifest: Manifest, expected: Callable[[int], Contents]) -> dict[int, Contents]:
        """Compare one collection at all times as of which it can be read; return what it should be."""
        final = {}
        shard = Shard(name, self.place.store(name))
        shard.verify()
        if manifest.upper < self.promised.get(name, 0):
            raise self.wrong(f"{name} is final before {manifest.upper}, and was durable before {self.promised[name]}")
        for time in range(manifest.since, manifest.upper):
            final[time] = expected(time)
            found, should = shard.read(time), projected(final[time], len(manifest.fields))
            if found != should:
                raise self.wrong(f"{name} is {found} as of {time}, and should be {should}")
        return final

    def compare_position(self, name: str, manifest: Manifest) -> None:
        """Compare the position of the source of an input, which is after the last epoch that was not left out."""
        made = set(range(manifest.upper)) - self.left_out[name]
        if (found := manifest.offsets.get("source", 0)) != max(made, default=-1) + 1:
            raise self.wrong(f"{name} has position {found}, is durable before {manifest.upper}, made {sorted(made)}")

    def read(self, name: str, random: Random) -> None:
        """Read a collection while the program runs, as of any time, and copy it as it is then."""
        manifest = manifest_of(self.place, name)
        if manifest is None:
            return
        if random.random() < 0.3:
            data, copy = self.place.copied(name)
            if data is not None:
                self.copies[name] = Manifest.from_bytes(data, name), copy, self.answers.get(name)
        if manifest.since < manifest.upper and manifest.fields:
            time = random.randrange(manifest.since, manifest.upper)
            try:
                found = Shard(name, self.place.store(name)).read(time)
            except StateError as error:
                if not isinstance(error, StoreError) and "compacted" not in str(error):
                    raise self.wrong(str(error)) from error
            else:
                self.seen.append(Seen(name, time, len(manifest.fields), found))

    def begins(self, name: str, session: DurableSession, manifest: Manifest | None) -> None:
        """Note where an input begins: it may leave out epochs only if it is new, or a run has closed it."""
        durable = 0 if manifest is None else manifest.upper
        if session.epoch > durable and name not in self.may_leave_out and manifest is not None:
            raise self.wrong(f"{name} is durable before {durable} and begins at {session.epoch}")
        for epoch in range(durable, session.epoch):
            self.epochs[name][epoch] = []
            self.left_out[name].add(epoch)

    def wrong(self, problem: str) -> Wrong:
        return Wrong("\n".join([f"seed {self.seed}: {problem}", *self.story]))


def projected(contents: Contents, width: int) -> Contents:
    """Return what some records add up to in their first columns."""
    total: Counter[Record] = Counter()
    for record, diff in contents.items():
        total[record[:width]] += diff
    return nonzero(total)


class Life:
    """One run: what it draws before it begins."""

    def __init__(self, case: Case, may_nest: bool) -> None:
        random = case.random
        self.case = case
        self.workers = random.choice([1, 1, 2, 3])
        self.answers = sorted(random.sample(list(ANSWERS), random.randrange(len(ANSWERS) + 1)))
        needed = {name for answer in self.answers for name in ANSWERS[answer].inputs}
        self.inputs = sorted(needed | set(random.sample(INPUTS, random.randrange(1, 3))))
        self.keep = {name: random.choice([None, None, 0, 2]) for name in (*INPUTS, *ANSWERS)}
        self.ahead = {name: random.random() < 0.3 for name in INPUTS}
        self.every = {name: random.randrange(1, 4) for name in ANSWERS}
        starts = [case.starts.get(ANSWERS[name].snapshot or "", 0) for name in self.answers]
        self.replay = not any(starts) and random.random() < 0.2
        steps = [*self.inputs, "step", "wait", "read"]
        self.steps = [random.choice(steps) for _ in range(random.randrange(24))]
        self.ending = random.choice(["close", "close", "fail", "replaced" if may_nest else "fail"])
        self.contents: list[dict[str, Contents]] = []
        """What each worker has of the answers at the end, of the records that it received."""
        self.closed_early = random.choice([None, None, *self.inputs])
        self.width = case.width

    def __repr__(self) -> str:
        shown = {name: value for name, value in vars(self).items() if name not in ("case", "contents")}
        shown["keep"] = {name: self.keep[name] for name in (*self.inputs, *self.answers)}
        return f"{shown}"

    def program(self, worker: Worker) -> None:
        """Make changes, and wait for what is drawn."""
        case = self.case
        state = State.open(worker, case.place, replay=self.replay)
        with worker.dataflow() as scope:
            made = {
                name: durable_input(scope, self.shard(state, name, self.width), ahead=self.ahead[name])
                for name in self.inputs
            }
            sessions = {name: session for name, (session, _) in made.items()}
            collections = {name: collection for name, (_, collection) in made.items()}
            answers, outputs = self.build(state, collections)
        if worker.index == 0:
            state.begin()
            for name in self.answers:
                snapshot = ANSWERS[name].snapshot
                if snapshot is not None and snapshot not in state.manifests:
                    case.starts[snapshot] = state.writers[snapshot].manifest.since
            for name, session in sessions.items():
                case.begins(name, session, state.manifests.get(name))
        random = Random(f"{case.seed} {len(case.story)}")
        for number, step in enumerate(self.steps):
            if step == self.closed_early and number > 6 and step in sessions:
                self.close(sessions.pop(step), step)
            elif step in sessions:
                self.change(worker, sessions[step], step)
            elif step == "wait":
                wait(worker, lambda: all(session.is_durable(session.epoch) for session in sessions.values()), self)
            elif step == "read" and worker.index == 0:
                case.read(random.choice([*self.inputs, *self.answers]), random)
            worker.step()
            self.promise(sessions, answers)
        if self.ending == "fail":
            raise Crash
        if self.ending == "replaced" and worker.index == 0:
            case.live(may_nest=False)
        for name, session in sessions.items():
            if self.ending == "replaced" and self.workers == 1:
                self.change(worker, session, name)
            self.close(session, name)
        wait(worker, lambda: all(answer.done() for answer in answers.values()), self)
        wait(worker, lambda: all(output.done() for output in outputs.values()), self)
        self.contents.append({name: output.contents() for name, output in outputs.items()})

    def build(self, state: State, inputs: dict[str, Collection]) -> tuple[dict[str, DurableOutput], dict[str, Any]]:
        """Make the answers durable, and return them with what the program itself reads of them."""
        narrow = inputs
        if self.width == 3:
            narrow = {name: each.map(lambda one, two, _: (one, two)) for name, each in inputs.items()}
        answers, outputs = {}, {}
        for name in self.answers:
            answer, is_whole = self.case.answers[name], ANSWERS[name].is_whole
            collection = answer.define(state, inputs if is_whole else narrow, self.every[name])
            how = "correct" if name in CHANGED else "raise"
            shard = self.shard(state, name, self.width if is_whole else 2)
            answers[name] = persist(collection, shard, on_difference=how)
            outputs[name] = collection.output(signed=True)
        return answers, outputs

    def shard(self, state: State, name: str, width: int) -> OpenShard:
        """Return a collection, with a column more than it has if the program has changed."""
        if width == 2:
            return state.shard(name, keep=self.keep[name])
        fields = [f"column_{number}" for number in range(width)]
        return state.shard(name, keep=self.keep[name], fields=fields, added={fields[-1]: ADDED})

    def promise(self, sessions: Mapping[str, DurableSession], answers: Mapping[str, DurableOutput]) -> None:
        """Note what is reported to be durable."""
        promised = self.case.promised
        for name, session in sessions.items():
            for (time,) in session.committed.frontier.elements:
                promised[name] = max(promised.get(name, 0), time)
        for name, answer in answers.items():
            for (time,) in answer.frontier.elements:
                promised[name] = max(promised.get(name, 0), time)

    def change(self, worker: Worker, session: DurableSession, name: str) -> None:
        epoch = session.epoch
        for record, diff in changes(self.case.seed, name, epoch, self.width)[worker.index :: worker.peers]:
            session.update(*record, diff=diff)
        if worker.index == 0:
            session.at("source", epoch + 1)
        session.advance_to(epoch + 1)

    def close(self, session: DurableSession, name: str) -> None:
        self.case.may_leave_out.add(name)
        session.close()


def wait(worker: Worker, condition: Callable[[], bool], life: Life) -> None:
    """Step until a condition holds."""
    end = clock.monotonic() + PATIENCE
    worker.step_while(lambda: not condition() and clock.monotonic() < end)
    if not condition():
        raise life.case.wrong("a run did not end")
