"""k-exposure on a stream of tweets: `examples/kexposure.py`, in which every tweet has a hashtag."""

from __future__ import annotations

import time as clock
from collections import Counter
from typing import Any

import numpy as np

from benchmarks.graphs import Ints
from benchmarks.harness import WARM_UP, Case, Figures, Series, check, example
from timely import execute

RATE, CPU = "tweets/s", "tweets by CPU time/s"
EACH = "ms"


def _case(name: str, epochs: int, size: int, processes: int, quick: bool) -> Case:
    parameters = {"users": 100_000, "tags": 10_000, "follows": 20, "epochs": epochs, "size": size}
    return Case(f"exposures {name}", "exposures", parameters, processes, quick=quick, limits={RATE: 500_000})


CASES = [
    _case("1M tweets", 20, 50_000, 1, True),
    _case("5M tweets", 100, 50_000, 1, False),
    _case("5M tweets, 2 processes", 100, 50_000, 2, False),
    _case("1M tweets, 1000 an epoch", 1000, 1000, 1, False),
]


def measure(users: int, tags: int, follows: int, epochs: int, size: int) -> Figures:
    """Return the figures for epochs of `size` tweets."""
    warm, pace = _run(users, tags, follows, epochs, size)
    return {WARM_UP: warm, RATE: pace.rate, CPU: pace.items / pace.busy} | latencies(pace)


def series(users: int, tags: int, follows: int, epochs: int, size: int) -> Series:
    """Return the milliseconds of each epoch of `size` tweets."""
    _, pace = _run(users, tags, follows, epochs, size)
    return {EACH: [1e3 * seconds for seconds in pace.latencies]}


def _run(users: int, tags: int, follows: int, epochs: int, size: int) -> tuple[float, Any]:
    """Return the seconds of the warm-up, and the pace of the stream after checking its answer."""
    job, tweets = example("kexposure"), example("tweets").Tweets
    begun = clock.perf_counter()
    execute(lambda worker: job.program(worker, job.epochs_of(tweets(1000, 100), follows, 1000, 3)))
    warm = clock.perf_counter() - begun
    stream = tweets(users, tags)
    index, running = execute(
        lambda worker: (worker.index, job.program(worker, job.epochs_of(stream, follows, size, epochs)))
    )[0]
    pace = running.pace
    if not index:
        numbers = running.whole()
        author, _, tag = stream.batch(0, epochs * size)
        expected = from_scratch(stream.follows(follows), author, tag, np.arange(epochs * size) // size)
        check(numbers == expected, f"first uses by exposures: {numbers}, from scratch {expected}")
    return warm, pace


def latencies(pace: Any) -> Figures:
    """Return the latencies of epochs, and their processor time, which other work on the machine affects less."""
    figures = dict(zip(("median ms an epoch", "p95 ms", "p99 ms"), pace.percentiles()))
    return figures | {"mean CPU ms an epoch": 1e3 * pace.busy / len(pace.latencies)}


def from_scratch(follows: tuple[Ints, Ints], author: Ints, tag: Ints, epoch: Ints) -> Counter[int]:
    """Return the number of first uses after k exposures, for each k, computed from whole columns."""
    follower, followed = follows
    most = int(tag.max()) + 1
    uses, rows = np.unique(author * most + tag, return_index=True)
    first = epoch[rows]
    user, used = uses // most, uses % most
    begin, end = np.searchsorted(follower, user), np.searchsorted(follower, user, "right")
    which = np.repeat(np.arange(len(uses)), end - begin)
    others = followed[np.arange(len(which)) + np.repeat(begin - np.cumsum(end - begin) + (end - begin), end - begin)]
    wanted = others * most + used[which]
    place = np.minimum(np.searchsorted(uses, wanted), len(uses) - 1)
    is_before = (uses[place] == wanted) & (first[place] < first[which])
    exposed = np.bincount(which, is_before, len(uses)).astype(np.int64)
    return Counter(dict(enumerate(np.bincount(exposed).tolist())))
