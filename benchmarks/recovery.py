"""k-exposure by an operator with private state: what durability costs, and how soon it goes on after a crash.

The operator keeps who has used which hashtag (see `examples/kexposure.py`). No sum of its input tells the answer: an
exposure counts if it came before the first use. There are three modes, as in Naiad (SOSP 2013, section 6.3). `nothing`
is durable: after a crash all tweets are sent again. With `inputs`, the tweets and the answer are durable, and the
operator receives all tweets again. With `snapshots`, the state is kept too, and only tweets since the last one happen
again. A restart is from opening the state to the answer of one further epoch, which is then durable.
"""

from __future__ import annotations

import tempfile
import time as clock
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.exposures import from_scratch
from benchmarks.graphs import Ints
from benchmarks.harness import WARM_UP, Case, Figures, Series, check, example
from differential import Updates, new_input
from differential.operators.linear import linear
from timely import Worker, execute

MODES = ("nothing", "inputs", "snapshots")
RATE, CPU, RESTART, RESTART_CPU = "tweets/s", "tweets/CPU s", "restart s", "restart CPU s"
EACH = "ms"
EVERY = 20
"""So many epochs are between two snapshots."""
NEVER = 1 << 40
Changes = tuple[tuple[Any, ...], Any]


class Exposures:
    """First uses of hashtags by users, and how many there are after each number of exposures."""

    def __init__(self, follows: tuple[Ints, Ints], tags: int) -> None:
        self._follower, self._followed = follows
        self._tags = tags
        self.uses = np.zeros(0, np.int64)
        """The pairs of user and hashtag, as numbers, in order."""
        self.numbers = np.zeros(0, np.int64)

    def update(self, time: int, columns: tuple[Any, ...], diffs: Any) -> Changes:
        """Take the tweets of an epoch: (user, hashtag)."""
        uses = np.unique(columns[0] * self._tags + columns[1])
        uses = uses[~self._has(uses)]
        user, tag = uses // self._tags, uses % self._tags
        begin, end = np.searchsorted(self._follower, user), np.searchsorted(self._follower, user, "right")
        which = np.repeat(np.arange(len(uses)), end - begin)
        first = np.cumsum(end - begin) - (end - begin)
        others = self._followed[np.arange(len(which)) - np.repeat(first - begin, end - begin)]
        exposed = np.bincount(which, self._has(others * self._tags + tag[which]), len(uses)).astype(np.int64)
        more = np.bincount(exposed)
        before = np.pad(self.numbers, (0, max(0, len(more) - len(self.numbers))))
        self.numbers = before + np.pad(more, (0, len(before) - len(more)))
        self.uses = np.insert(self.uses, np.searchsorted(self.uses, uses), uses)
        changed = np.flatnonzero(before != self.numbers)
        return _records(changed, self.numbers[changed], 1, *_records(changed, before[changed], -1))

    def snapshot(self) -> dict[str, Ints]:
        """Return the state."""
        return {"uses": self.uses, "numbers": self.numbers}

    def restore(self, states: Sequence[Any], index: int, peers: int) -> Changes:
        """Take the state, on the only worker."""
        (state,) = states
        self.uses, self.numbers = state["uses"], state["numbers"]
        return _records(np.arange(len(self.numbers)), self.numbers, 1)

    def _has(self, uses: Ints) -> Any:
        if not len(self.uses):
            return np.zeros(len(uses), np.bool_)
        return self.uses[np.minimum(np.searchsorted(self.uses, uses), len(self.uses) - 1)] == uses


def _records(k: Ints, numbers: Ints, diff: int, columns: Any = None, diffs: Any = None) -> Changes:
    """Return changes of (k, number), without those of the number 0; after others, if there are any."""
    k, numbers = k[numbers > 0], numbers[numbers > 0]
    made = (k, numbers), np.full(len(k), diff, np.int64)
    if columns is None:
        return made
    joined = tuple(np.concatenate(parts) for parts in zip(columns, made[0]))
    return joined, np.concatenate([diffs, made[1]])


def _case(tweets: str, mode: str, epochs: int, quick: bool, function: str = "measure") -> Case:
    parameters = {"mode": mode, "users": 100_000, "tags": 10_000, "follows": 20, "epochs": epochs, "size": 10_000}
    return Case(f"recovery {tweets} tweets, {mode}", "recovery", parameters, quick=quick, function=function)


CASES = [
    _case(tweets, mode, epochs, quick)
    for tweets, epochs, quick in (("1M", 100, True), ("5M", 500, False))
    for mode in MODES
]


def measure(mode: str, users: int, tags: int, follows: int, epochs: int, size: int) -> Figures:
    """Return the figures of a mode, after checking its answer against one from whole columns."""
    warm, seconds, figures = _run(mode, users, tags, follows, epochs, size)
    median, p95 = np.percentile(seconds, (50, 95)) * 1e3
    return {WARM_UP: warm, **figures, "median ms an epoch": float(median), "p95 ms": float(p95)}


def series(mode: str, users: int, tags: int, follows: int, epochs: int, size: int) -> Series:
    """Return the milliseconds of each epoch, and those of the restart."""
    _, seconds, figures = _run(mode, users, tags, follows, epochs, size)
    return {EACH: [1e3 * each for each in seconds], RESTART: [figures[RESTART]]}


class _Ran(NamedTuple):
    """What a run took: the seconds of each epoch, all of them from opening the state on, and its processor time."""

    epochs: list[float]
    seconds: float
    cpu: float
    numbers: dict[Any, int]


def _run(mode: str, users: int, tags: int, follows: int, epochs: int, size: int) -> tuple[float, list[float], Figures]:
    """Return the seconds of the warm-up and of each epoch, and the other figures, after checking the answer."""
    tweets = example("tweets").Tweets
    begun = clock.perf_counter()
    small = tweets(1000, 100)
    with tempfile.TemporaryDirectory() as directory:
        execute(lambda worker: _program(worker, mode, directory, small, follows, 12, 100))
    warm = clock.perf_counter() - begun
    stream = tweets(users, tags)
    with tempfile.TemporaryDirectory() as directory:
        ran = execute(lambda worker: _program(worker, mode, directory, stream, follows, epochs, size))[0]
        again = execute(lambda worker: _program(worker, mode, directory, stream, follows, epochs + 1, size))[0]
    author, _, tag = stream.batch(0, (epochs + 1) * size)
    expected = from_scratch(stream.follows(follows), author, tag, np.arange((epochs + 1) * size) // size)
    found = dict(list(again.numbers))
    check(found == +expected, f"first uses by exposures: {found}, from scratch {expected}")
    total = epochs * size
    figures = {RATE: total / sum(ran.epochs), CPU: total / ran.cpu, RESTART: again.seconds, RESTART_CPU: again.cpu}
    return warm, ran.epochs, figures


def _program(worker: Worker, mode: str, directory: str, stream: Any, follows: int, epochs: int, size: int) -> _Ran:
    """Follow the tweets up to an epoch: all, or those that the state does not have."""
    graph = stream.follows(follows)
    begun, used = clock.perf_counter(), clock.process_time()
    session, is_open, answer = _built(worker, mode, directory, lambda: Exposures(graph, stream.tags))
    seconds = []
    for epoch in range(session.epoch, epochs):
        author, _, tag = stream.batch(epoch * size, size)
        started = clock.perf_counter()
        session.insert(author, tag)
        session.advance_to(epoch + 1)
        worker.step_while(lambda: is_open(session.epoch))
        seconds.append(clock.perf_counter() - started)
    ran = _Ran(seconds, clock.perf_counter() - begun, clock.process_time() - used, answer())
    session.close()
    return ran


def _built(worker: Worker, mode: str, directory: str, make: Callable[[], Exposures]) -> tuple[Any, Any, Any]:
    """Return the session, whether the answer may change before a time, and how to read it."""
    if mode == "nothing":
        with worker.dataflow() as scope:
            session, tweets = new_input(scope)
            output = linear(tweets, _batches(make()), name="exposures").output()
        return session, output.less_than, output.contents
    # Imported here, so that the help of the benchmarks does not need pyarrow.
    from differential.durable import State, durable_input, persist, stateful

    state = State.open(worker, directory)
    with worker.dataflow() as scope:
        durable, tweets = durable_input(scope, state.shard("tweets", keep=0), ahead=True)
        every = EVERY if mode == "snapshots" else NEVER
        exposures = stateful(tweets, make, state.shard("uses"), every=every, name="exposures")
        shard = state.shard("answer", fields=["k", "users"], keep=0)
        answer = persist(exposures, shard)
    return durable, lambda time: not answer.is_durable(time), shard.shard.read


def _batches(logic: Exposures) -> Callable[[Updates], Updates]:
    """Return what takes batches as they come: on one worker, each is an epoch."""

    def transform(updates: Updates) -> Updates:
        (time,) = updates.times[0].tolist()
        columns, diffs = logic.update(time, updates.columns, updates.each_diff())
        return Updates.at((time,), columns, diffs)

    return transform
