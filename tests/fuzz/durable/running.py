"""Run a random program of durable collections several times, and compare what is durable with its twin after each run.

Each run draws its inputs, its answers and their options, the epochs that it makes, and how it ends: it closes its
inputs, fails between two changes, fails at an operation of the store, or is replaced by another run. Requests to the
store are lost or late. Afterwards each collection must be, at each time that can be read, what the changes of the
epochs that are durable amount to; what was final after an earlier run must be the same; and no input may leave out an
epoch, unless a run has closed it.
"""

from __future__ import annotations

import threading
import time as clock
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

from differential.durable import DurableSession, Shard, State, compaction, durable_input, persist, writer
from differential.durable.manifest import Manifest
from tests.fuzz.durable.answers import ANSWERS, CHANGED, INPUTS, Contents, Record, changes, contents, nonzero
from tests.simulation.stores import Crash, Seeded, SimulatedStore
from timely import Config, Worker, execute
from timely.errors import FencedError, OperatorError, StateError, StoreError

PATIENCE = 20.0
"""Seconds after which a run that does not end has failed."""
REFUSALS = ("are compacted up to", "has the state of an operator at", "no state of the same frontier", "is missing")
"""What a program may be refused for: what it needs is gone, or another program has replaced it."""


class Wrong(AssertionError):
    """What is durable is not what the twin has."""


class Memory:
    """A place in memory, whose stores fail as `seeded` decides."""

    def __init__(self, seeded: Seeded) -> None:
        self.seeded = seeded
        self.stores: dict[str, SimulatedStore] = {}

    def names(self) -> list[str]:
        return sorted(name for name, store in self.stores.items() if store.present() is not None)

    def store(self, name: str) -> SimulatedStore:
        return self.stores.setdefault(name, SimulatedStore(self.seeded))

    def manifest(self, name: str) -> Manifest | None:
        data = self.stores[name].present() if name in self.stores else None
        return None if data is None else Manifest.from_bytes(data, name)

    @contextmanager
    def calm(self) -> Iterator[None]:
        """Let all appends end and all late requests take effect, and nothing fail meanwhile."""
        seeded = self.seeded
        before, seeded.failing, seeded.crashing = (seeded.failing, seeded.crashing), 0.0, 0.0
        for thread in threading.enumerate():
            if thread.name.startswith(("append to", "snapshot of")):
                thread.join(PATIENCE)
        for store in self.stores.values():
            store.settle()
        yield
        seeded.failing, seeded.crashing = before


class Case:
    """A random program, and what its twin knows of its runs."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.place = Memory(Seeded(seed))
        self.epochs: dict[str, dict[int, list[tuple[Record, int]]]] = {name: {} for name in INPUTS}
        self.starts: dict[str, int] = {}
        self.final: dict[str, dict[int, Contents]] = {name: {} for name in ANSWERS}
        self.answers = dict(ANSWERS)
        self.may_leave_out: set[str] = set()
        self.story: list[str] = []

    def run(self) -> None:
        """Run the program several times. Raises Wrong, with what happened, at the first difference."""
        with patch.object(writer, "_FIRST_PAUSE", 0.0), patch.object(compaction, "RUN", self.random.choice([2, 8])):
            for _ in range(self.random.randrange(2, 7)):
                if self.random.random() < 0.3:
                    self.answers = {**self.answers, **self.random.choice([ANSWERS, CHANGED])}
                self.live(may_nest=True)
                with self.place.calm():
                    self.compare()

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
                with self.place.calm():
                    self.compare_seen(life)
        except (Crash, FencedError, StoreError) as error:
            end = f"{type(error).__name__} {error}"
        except (OperatorError, StateError) as error:
            if not (self.is_failure(error) or any(reason in str(error) for reason in REFUSALS)):
                raise self.wrong(str(error)) from error
            end = str(error)
        self.story.append(f"  {end:.300}")

    def is_failure(self, error: BaseException) -> bool:
        """Return whether an error is that of a store, or that of a program that was replaced."""
        return isinstance(error.__cause__, (Crash, FencedError, StoreError))

    def compare(self) -> None:
        """Compare all collections with the twin."""
        for name in INPUTS:
            manifest = self.place.manifest(name)
            is_new = manifest is not None and not self.epochs[name] and not manifest.parts
            for epoch in range(manifest.upper if manifest else 0):
                self.epochs[name].setdefault(epoch, [] if is_new else changes(self.seed, name, epoch))
            if manifest is not None:
                self.compare_one(name, manifest, lambda time, name=name: nonzero(contents(self.epochs, name, time)))
        for name, answer in self.answers.items():
            manifest = self.place.manifest(name)
            if manifest is None:
                continue
            start = self.start(answer.snapshot)
            final = self.final[name]
            expected = {
                time: final[time] if time in final else answer.evaluate(self.epochs, time, start)
                for time in range(manifest.since, manifest.upper)
            }
            self.final[name] = self.compare_one(name, manifest, expected.__getitem__)

    def start(self, snapshot: str | None) -> int:
        """Return the time at which an operator with private state began; a crash may have left it without state."""
        manifest = None if snapshot is None else self.place.manifest(snapshot)
        if snapshot is None or manifest is None:
            return 0
        if not manifest.states:
            self.starts[snapshot] = manifest.since
        return self.starts[snapshot]

    def compare_seen(self, life: Life) -> None:
        """Compare the answers that a run has seen at its end with those that it has made durable."""
        for name in life.answers:
            seen: Counter[Record] = Counter()
            for each in life.seen:
                seen.update(each[name])
            manifest = self.place.manifest(name)
            if manifest is not None and manifest.since < manifest.upper and name not in CHANGED:
                found = Shard(name, self.place.store(name)).read()
                if nonzero(seen) != found:
                    raise self.wrong(f"a run has seen {nonzero(seen)} of {name}, and {found} is durable")

    def compare_one(self, name: str, manifest: Manifest, expected: Callable[[int], Contents]) -> dict[int, Contents]:
        """Compare one collection at all times as of which it can be read; return what it has."""
        found = {}
        shard = Shard(name, self.place.store(name))
        shard.verify()
        for time in range(manifest.since, manifest.upper):
            found[time] = shard.read(time)
            if found[time] != expected(time):
                raise self.wrong(f"{name} is {found[time]} as of {time}, and should be {expected(time)}")
        return found

    def begins(self, name: str, session: DurableSession, manifest: Manifest | None) -> None:
        """Note where an input begins: it may leave out epochs only if it is new, or a run has closed it."""
        durable = 0 if manifest is None else manifest.upper
        if session.epoch > durable and name not in self.may_leave_out and manifest is not None:
            raise self.wrong(f"{name} is durable before {durable} and begins at {session.epoch}")
        for epoch in range(durable, session.epoch):
            self.epochs[name][epoch] = []

    def wrong(self, problem: str) -> Wrong:
        return Wrong("\n".join([f"seed {self.seed}: {problem}", *self.story]))


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
        self.steps = [random.choice([*self.inputs, "step", "wait"]) for _ in range(random.randrange(24))]
        self.ending = random.choice(["close", "close", "fail", "replaced" if may_nest else "fail"])
        self.seen: list[dict[str, Contents]] = []
        """What each worker has of the answers at the end, of the records that it received."""
        self.closed_early = random.choice([None, None, *self.inputs])

    def __repr__(self) -> str:
        shown = {name: value for name, value in vars(self).items() if name not in ("case", "seen")}
        shown["keep"] = {name: self.keep[name] for name in (*self.inputs, *self.answers)}
        return f"{shown}"

    def program(self, worker: Worker) -> None:
        """Make changes, and wait for what is drawn."""
        case = self.case
        state = State.open(worker, case.place, replay=self.replay)
        with worker.dataflow() as scope:
            made = {
                name: durable_input(scope, state.shard(name, keep=self.keep[name]), ahead=self.ahead[name])
                for name in self.inputs
            }
            sessions = {name: session for name, (session, _) in made.items()}
            collections = {name: collection for name, (_, collection) in made.items()}
            answers, outputs = {}, {}
            for name in self.answers:
                answer = case.answers[name].define(state, collections, self.every[name])
                how = "correct" if name in CHANGED else "raise"
                answers[name] = persist(answer, state.shard(name, keep=self.keep[name]), on_difference=how)
                outputs[name] = answer.output(signed=True)
        if worker.index == 0:
            for name in self.answers:
                snapshot = ANSWERS[name].snapshot
                if snapshot is not None and snapshot not in state.manifests:
                    case.starts[snapshot] = state.begin()
            for name, session in sessions.items():
                case.begins(name, session, state.manifests.get(name))
        for number, step in enumerate(self.steps):
            if step == self.closed_early and number > 6 and step in sessions:
                self.close(sessions.pop(step), step)
            elif step in sessions:
                self.change(worker, sessions[step], step)
            elif step == "wait":
                wait(worker, lambda: all(session.is_durable(session.epoch) for session in sessions.values()), self)
            worker.step()
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
        self.seen.append({name: output.contents() for name, output in outputs.items()})

    def change(self, worker: Worker, session: DurableSession, name: str) -> None:
        epoch = session.epoch
        for record, diff in changes(self.case.seed, name, epoch)[worker.index :: worker.peers]:
            session.update(*record, diff=diff)
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
