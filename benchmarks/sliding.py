"""Sliding windows: components of the mentions in recent tweets, every second: `examples/window.py`."""

from __future__ import annotations

import time as clock
from collections import Counter
from typing import Any

import numpy as np

from benchmarks.exposures import latencies
from benchmarks.harness import WARM_UP, Case, Figures, Series, check, example
from timely import execute

MEDIAN, DIFFERENCES = "median ms an epoch", "median differences of a slide"
EACH, EACH_DIFFERENCES = "ms", "differences"


def _case(name: str, algorithm: str, users: int, rate: int, window: int, quick: bool, processes: int = 1) -> Case:
    parameters = {"algorithm": algorithm, "users": users, "rate": rate, "window": window, "slides": 200}
    # What weakly connected components in Naiad took for a slide of one second.
    limits = {MEDIAN: 24.4} if algorithm == "weak" else {}
    return Case(f"sliding {name}", "sliding", parameters, processes, quick=quick, limits=limits)


CASES = [
    _case("WCC, 60 s of 100 tweets", "weak", 10_000, 100, 60, True),
    _case("SCC, 60 s of 100 tweets", "strong", 10_000, 100, 60, True),
    _case("WCC, 1 h of 100 tweets", "weak", 1_000_000, 100, 3600, False),
    _case("WCC, 60 s of 1000 tweets", "weak", 100_000, 1000, 60, False),
    _case("SCC, 60 s of 1000 tweets", "strong", 100_000, 1000, 60, False),
    _case("WCC, 60 s of 1000 tweets, 2 processes", "weak", 100_000, 1000, 60, False, 2),
]


def measure(algorithm: str, users: int, rate: int, window: int, slides: int) -> Figures:
    """Return the figures of that many slides. The differences are those of the first worker."""
    warm, found, pace = _run(algorithm, users, rate, window, slides)
    return {WARM_UP: warm} | latencies(pace) | {DIFFERENCES: float(np.median(found.differences))}


def series(algorithm: str, users: int, rate: int, window: int, slides: int) -> Series:
    """Return the milliseconds and the differences of each slide, on the first worker."""
    _, found, pace = _run(algorithm, users, rate, window, slides)
    return {EACH: [1e3 * seconds for seconds in pace.latencies], EACH_DIFFERENCES: [*map(float, found.differences)]}


def _run(algorithm: str, users: int, rate: int, window: int, slides: int) -> tuple[float, Any, Any]:
    """Return the seconds of the warm-up, the slides after checking some of their answers, and their pace."""
    program, tweets = example("window").program, example("tweets").Tweets
    begun = clock.perf_counter()
    execute(lambda worker: program(worker, tweets(500, 1), algorithm, 100, 5, 5))
    warm = clock.perf_counter() - begun
    stream = tweets(users, 1)
    index, found, pace = execute(
        lambda worker: (worker.index, *program(worker, stream, algorithm, rate, window, slides))
    )[0]
    if not index:
        for slide in (0, slides // 2, slides - 1):
            expected = from_scratch(stream, algorithm, rate, slide + 1, window)
            check(found.sizes[slide] == expected, f"wrong at slide {slide}: {found.sizes[slide]}, not {expected}")
    return warm, found, pace


def from_scratch(stream: Any, algorithm: str, rate: int, begin: int, window: int) -> Counter[int]:
    """Return the number of components of each size in the window that begins at a second, computed by SciPy."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    source, target, _ = stream.batch(begin * rate, window * rate)
    shape = (stream.users, stream.users)
    graph = csr_matrix((np.ones(len(source)), (source, target)), shape=shape)
    _, labels = connected_components(graph, connection=algorithm)
    if algorithm == "weak":
        labels = labels[np.union1d(source, target)]
    members = np.bincount(labels).tolist()
    return Counter(size for size in members if size > (algorithm == "strong"))
