"""Queries on a stream of tweets, fresh and one second stale: `examples/topics.py`.

Tweets arrive by the clock. The first second and a half, in which most components form, is not measured. If the worker
cannot keep up, fresh queries wait longer and longer.
"""

from __future__ import annotations

import time as clock
from collections import Counter
from typing import Any

import numpy as np

from benchmarks.harness import WARM_UP, Case, Figures, Series, check, example
from timely import execute

KINDS = ("stale", "fresh")
DUE = "due s"
CHECKED = 10


def _case(rate: int, milliseconds: int, processes: int, quick: bool) -> Case:
    parameters = {"rate": rate, "users": 10_000, "milliseconds": milliseconds, "seconds": 6.0 if quick else 20.0}
    name = f"queries at {rate // 1000}k tweets a second" + (f", {processes} processes" if processes > 1 else "")
    # The figures of Naiad, at 32,000 tweets a second on 32 computers.
    limits = {"fresh, p95 ms": 1000.0, "stale, p95 ms": 10.0}
    return Case(name, "queries", parameters, processes, quick=quick, limits=limits)


CASES = [_case(2000, 20, 1, True), _case(8000, 50, 1, False), _case(32_000, 100, 1, False), _case(8000, 50, 2, False)]


def measure(rate: int, users: int, milliseconds: int, seconds: float) -> Figures:
    """Return the latencies of both kinds of queries, with one of each in every epoch of that many milliseconds."""
    warm, _, program = _run(rate, users, milliseconds, seconds)
    figures = {WARM_UP: warm}
    for kind in KINDS:
        latencies = getattr(program, kind).percentiles()
        figures |= dict(zip((f"{kind}, median ms", f"{kind}, p95 ms", f"{kind}, p99 ms"), latencies))
    return figures


def series(rate: int, users: int, milliseconds: int, seconds: float) -> Series:
    """Return when each query was due, in seconds, and the milliseconds that its two kinds took."""
    _, plan, program = _run(rate, users, milliseconds, seconds)
    numbers = sorted(program.fresh.seconds)
    taken = {kind: [1e3 * getattr(program, kind).seconds[number] for number in numbers] for kind in KINDS}
    return {DUE: [plan.due(number) for number in numbers]} | taken


def _run(rate: int, users: int, milliseconds: int, seconds: float) -> tuple[float, Any, Any]:
    """Return the seconds of the warm-up, the plan, and the program after checking some of its answers."""
    hashtags, tweets = example("topics"), example("tweets").Tweets
    begun = clock.perf_counter()
    execute(lambda worker: hashtags.Program(worker, hashtags.Plan(tweets(500, 50), 20, 0.01, 20, 3)).run())
    warm = clock.perf_counter() - begun
    length = milliseconds / 1000
    size, second = max(int(rate * length), 1), int(min(1.0, seconds / 4) / length)
    plan = hashtags.Plan(
        tweets(users, 1000), size, length, int(seconds / length), stale=second, first=second + second // 2
    )
    index, program = execute(lambda worker: (worker.index, hashtags.Program(worker, plan).run()))[0]
    for kind in KINDS:
        answers = getattr(program, kind)
        numbers = sorted(answers.tags)
        check(index > 0 or numbers == list(plan.queries()), f"a {kind} query was not answered")
        for number in numbers[:: max(len(numbers) // CHECKED, 1)]:
            expected = from_scratch(plan, plan.user(number), answers.epochs[number])
            check(answers.tags[number] == expected, f"query {number}: {answers.tags[number]}, not {expected}")
    return warm, plan, program


def from_scratch(plan: Any, user: int, epoch: int) -> int:
    """Return the top hashtag of a user's component after an epoch, computed by SciPy."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    author, mentioned, tag = plan.tweets.batch(0, plan.size * min(epoch + 1, plan.epochs))
    shape = (plan.tweets.users, plan.tweets.users)
    _, labels = connected_components(csr_matrix((np.ones(len(author)), (author, mentioned)), shape=shape))
    uses: Counter[int] = Counter(tag[labels[author] == labels[user]].tolist())
    return max(uses, key=lambda tag: (uses[tag], -tag))
