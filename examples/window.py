"""Keep the components of recent mentions up to date: a window over a stream of tweets that slides every second.

    python examples/sliding_window.py --users 100000 --rate 1000
    timely run -n 2 examples/sliding_window.py --strong

Each epoch is one second, in which `--rate` tweets arrive. A mention is in the graph for `--window` seconds
(`Collection.window`), so at each slide the mentions of one second enter and those of another leave. The answers are the
number and the sizes of the weakly connected components or, with `--strong`, of the strongly connected components of
more than one user. Only what a slide affects is computed again. The output shows the latency of slides and their
differences: the rows added to indexes, inside loops too.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from options import at_least
from pace import Pace
from tweets import Tweets

from differential import new_input
from differential.graphs import strongly_connected_components, weakly_connected_components
from differential.trace.events import BatchInserted
from timely import Worker, execute

ALGORITHMS = {"weak": weakly_connected_components, "strong": strongly_connected_components}


@dataclass
class Slides:
    """The results of each slide: on worker 0 the number of components of each size, on all workers the differences."""

    sizes: list[dict[int, int]] = field(default_factory=list)
    differences: list[int] = field(default_factory=list)


def program(
    worker: Worker, tweets: Tweets, algorithm: str, rate: int, window: int, slides: int, progress: bool = False
) -> tuple[Slides, Pace]:
    """Fill a window, then slide it that many times; return the results of the slides, and their pace."""
    found = Slides()
    rows = 0

    def count(events: Sequence[Any]) -> None:
        nonlocal rows
        rows += sum(event.rows for event in events)

    worker.log.listen(count, BatchInserted)
    with worker.dataflow("sliding window") as scope:
        session, mentions = new_input(scope, name="mentions")
        labels = ALGORITHMS[algorithm](mentions.window(window))
        sizes = labels.map(lambda user, label: label).count().map(lambda label, size: size).count().output()

    def send(number: int) -> None:
        author, mentioned, _ = tweets.batch(number * rate, rate)
        session.insert(author[worker.index :: worker.peers], mentioned[worker.index :: worker.peers])
        session.advance_to(number + 1)

    def finish() -> None:
        worker.step_while(lambda: sizes.less_than(session.time))

    for number in range(window):
        send(number)
    finish()
    is_first = worker.index == 0
    pace = Pace("slides", (lambda: described(found.sizes[-1])) if progress and is_first else None)
    for number in range(window, window + slides):
        rows = 0
        with pace.epoch(1):
            send(number)
            finish()
            found.sizes.append(dict(list(sizes.contents())))
        found.differences.append(rows)
    session.close()
    worker.step_while(lambda: not sizes.done())
    return found, pace


def described(sizes: dict[int, int]) -> str:
    """Return a short text about the components."""
    return f"{sum(sizes.values()):,} components, the largest of {max(sizes, default=0):,} users"


def main() -> None:
    """Run the program with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strong", action="store_true", help="strongly connected components instead of weakly")
    parser.add_argument("--users", type=at_least(1), default=10_000, help="number of users (default 10,000)")
    parser.add_argument("--rate", type=at_least(1), default=100, help="tweets in a second (default 100)")
    parser.add_argument(
        "--window", type=at_least(1), default=60, help="seconds for which a mention counts (default 60)"
    )
    parser.add_argument(
        "--slides", type=at_least(1), default=200, help="number of slides after the window is full (default 200)"
    )
    options = parser.parse_args()
    tweets, algorithm = Tweets(options.users, tags=1), "strong" if options.strong else "weak"

    def run(worker: Worker) -> tuple[int, Slides, Pace]:
        found = program(worker, tweets, algorithm, options.rate, options.window, options.slides, progress=True)
        return worker.index, *found

    results = execute(run)
    first, found, pace = results[0]
    if first == 0:
        differences = np.sum([slides.differences for _, slides, _ in results], axis=0)
        print(described(found.sizes[-1]))
        print(pace.summary())
        print(f"differences of a slide, on this process's workers: median {np.median(differences):,.0f}")


if __name__ == "__main__":
    main()
