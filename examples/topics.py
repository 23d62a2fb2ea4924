"""Ask for the top hashtag among all users connected with a user, while tweets arrive.

    python examples/top_hashtag.py --rate 8000 --seconds 20 --epoch 100
    timely run -n 2 examples/top_hashtag.py

Users are connected if one mentions the other, or through others. The dataflow maintains the component of each user, the
number of uses of each hashtag in each component, and the top hashtag of each component. A query looks up the user's
component, and then the hashtag of that component. There are two kinds (the interactive query of Naiad, SOSP 2013,
section 6.4):

- A fresh query is at the current epoch: its answer includes all tweets up to the query, and waits for them.
- A stale query is at an epoch `--stale` seconds ago, which is final already, so the answer takes only a few steps.

Both use the same dataflow, at different times. Indexes keep exactly the times at which queries may still be made.
Tweets arrive by the clock, `--rate` a second, in an epoch every `--epoch` milliseconds.
"""

from __future__ import annotations

import argparse
import time as clock
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from bfs import splitmix
from options import at_least, new_file
from pace import percentiles
from tweets import Tweets, add_arguments

from differential import Arrangement, Collection, InputSession, Output, new_input
from differential.delta import Prefixes
from differential.graphs import weakly_connected_components
from timely import Worker, execute

PARTS = 64
"""The number of parts into which hashtags are divided: each part is ranked, then the best of all parts."""
MOST_TAGS = 1 << 20
"""An upper bound for the numbers of hashtags."""


def connected(tweets: Collection) -> Collection:
    """Return (user, component) of tweets (author, mentioned user, hashtag)."""
    return weakly_connected_components(tweets.map(lambda author, mentioned, tag: (author, mentioned)))


def top_hashtags(tweets: Collection, components: Collection) -> Collection:
    """Return (component, hashtag) with the hashtag of the most tweets of the component; the smallest of several."""
    uses = tweets.map(lambda author, mentioned, tag: (author, tag))
    counts = uses.join_map(components, lambda author, tag, component: (component, tag), keys=2).count()
    # The number of uses and the hashtag are combined into one number, and the largest is the answer.
    ranked = counts.map(
        lambda component, tag, number: (component, tag % PARTS, (number + 1) * MOST_TAGS - 1 - tag), keys=2
    )
    best = ranked.max().map(lambda component, part, rank: (component, rank)).max()
    return best.map(lambda component, rank: (component, MOST_TAGS - 1 - rank % MOST_TAGS))


def answered(queries: Collection, components: Arrangement, top: Arrangement) -> Collection:
    """Return (number, hashtag) for queries (user, number), as of the time of each query."""
    located = Prefixes.of(queries).half_join(components, lambda user, number, component: (component, number))
    return located.half_join(top, lambda component, number, tag: (number, tag)).results()


@dataclass
class Series:
    """Queries of one kind, by number: the epoch of each, its answer, and the seconds it took."""

    epochs: dict[int, int] = field(default_factory=dict)
    tags: dict[int, int] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)

    def take(self, output: Output, ages: Callable[[int], float]) -> None:
        """Record the answers that have become final."""
        for (number, tag), _, _ in output.changes():
            self.tags[number] = tag
            self.seconds[number] = ages(number)

    def percentiles(self) -> tuple[float, float, float]:
        """Return the median, 95th and 99th percentile in milliseconds."""
        return percentiles(self.seconds.values())


@dataclass(frozen=True)
class Plan:
    """The schedule: a query of each kind in the middle of each epoch, once an epoch is old enough for stale ones."""

    tweets: Tweets
    size: int
    """Tweets in an epoch."""
    seconds: float
    """The length of an epoch in seconds."""
    epochs: int
    stale: int
    """The number of epochs that stale queries look back."""
    first: int = 0
    """The epoch of the first query, if later than the first possible one."""

    def queries(self) -> deque[int]:
        """Return the numbers of the queries."""
        return deque(range(max(self.epochs - self._begin, 0)))

    def due(self, number: int) -> float:
        """Return the time at which a query is made, in seconds."""
        return (self._begin + number + 0.5) * self.seconds

    @property
    def _begin(self) -> int:
        return max(self.stale + 1, self.first)

    def user(self, number: int) -> int:
        """Return the user of a query: one who tweets in the first epoch."""
        author, _, _ = self.tweets.batch(int(splitmix(np.array([number]))[0]) % self.size, 1)
        return int(author[0])


class Program:
    """The part of one worker: the dataflow, and the clock that drives it."""

    def __init__(self, worker: Worker, plan: Plan) -> None:
        self._worker = worker
        self._plan = plan
        self.stale, self.fresh = Series(), Series()
        with worker.dataflow("top hashtag") as scope:
            self._tweets, tweets = new_input(scope, name="tweets")
            components = connected(tweets)
            by_user, by_component = components.arrange_by_key(), top_hashtags(tweets, components).arrange_by_key()

            def asked(name: str) -> tuple[InputSession, Output]:
                session, queries = new_input(scope, name=name)
                return session, answered(queries, by_user, by_component).output()

            self._stale, self._stale_answers = asked("stale queries")
            self._fresh, self._fresh_answers = asked("fresh queries")

    def run(self, report: Callable[[str], None] | None = None) -> Program:
        """Send all tweets and all queries when they are due; return when all queries are answered."""
        plan, waiting = self._plan, self._plan.queries()
        begun = clock.perf_counter()
        report_at = 2.0
        while self._tweets.epoch < plan.epochs or waiting:
            now = clock.perf_counter() - begun
            # Epochs that became due while others were under way are sent together, and take little longer than one.
            is_free = not self._fresh_answers.less_than(self._tweets.epoch)
            while is_free and self._tweets.epoch < plan.epochs and now >= (self._tweets.epoch + 1) * plan.seconds:
                self._feed()
            while waiting and (now >= plan.due(waiting[0]) or self._tweets.epoch == plan.epochs):
                self._ask(waiting.popleft())
            self._step(begun)
            if report is not None and now > report_at:
                report(f"{self._tweets.epoch * plan.size:,} tweets after {now:.1f} s | {self.described()}")
                report_at = now + 2.0
        for session in (self._tweets, self._stale, self._fresh):
            session.close()
        while not (self._stale_answers.done() and self._fresh_answers.done()):
            self._step(begun)
        self._step(begun)
        return self

    def described(self) -> str:
        """Return a short text with the latencies of queries."""
        return "; ".join(
            f"{name}: median {median:.1f} ms, p95 {p95:.1f}, p99 {p99:.1f}"
            for name, series in (("stale", self.stale), ("fresh", self.fresh))
            for median, p95, p99 in (series.percentiles(),)
        )

    def rows(self) -> Iterator[str]:
        """Yield the time of each query in seconds, and the milliseconds of both answers, separated by tabs."""
        for number, stale in sorted(self.stale.seconds.items()):
            yield f"{self._plan.due(number):.3f}\t{1e3 * stale:.3f}\t{1e3 * self.fresh.seconds[number]:.3f}"

    def _feed(self) -> None:
        """Send this worker's share of the tweets of the epoch, and end the epoch."""
        plan, worker, epoch = self._plan, self._worker, self._tweets.epoch
        columns = plan.tweets.batch(epoch * plan.size, plan.size)
        self._tweets.insert(*(column[worker.index :: worker.peers] for column in columns))
        self._tweets.advance_to(epoch + 1)
        self._fresh.advance_to(epoch + 1)
        self._stale.advance_to(max(self._stale.epoch, epoch + 1 - plan.stale))

    def _ask(self, number: int) -> None:
        """Make a query of both kinds. A stale one has an epoch of its own, so that it waits for nothing else."""
        if self._worker.index == 0:
            user = self._plan.user(number)
            for series, session in ((self.stale, self._stale), (self.fresh, self._fresh)):
                series.epochs[number] = session.epoch
                session.insert(user, number)
                session.flush()
        self._stale.advance_to(min(self._stale.epoch + 1, self._tweets.epoch))

    def _step(self, begun: float) -> None:
        """Step the worker, wait a moment if nothing is ready, and record the answers."""

        def age(number: int) -> float:
            return clock.perf_counter() - begun - self._plan.due(number)

        self._worker.step_or_park(self._plan.seconds / 20)
        self.stale.take(self._stale_answers, age)
        self.fresh.take(self._fresh_answers, age)


def main() -> None:
    """Run the program with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, users=10_000, tags=1_000)
    parser.add_argument("--rate", type=at_least(1), default=2_000, help="tweets in a second (default 2,000)")
    parser.add_argument(
        "--seconds", type=at_least(0.0), default=8.0, help="seconds for which tweets arrive (default 8)"
    )
    parser.add_argument("--epoch", type=at_least(1), default=50, help="milliseconds in an epoch (default 50)")
    parser.add_argument(
        "--stale", type=at_least(0.0), default=1.0, help="seconds that stale queries look back (default 1)"
    )
    parser.add_argument(
        "--series", type=new_file, metavar="FILE", help="write (second of the query, ms stale, ms fresh) to FILE"
    )
    options = parser.parse_args()
    length, tweets = options.epoch / 1000, Tweets(options.users, options.tags)
    size, epochs, stale = max(int(options.rate * length), 1), int(options.seconds / length), int(options.stale / length)
    plan = Plan(tweets, size, length, epochs, stale)
    if options.tags > MOST_TAGS or not plan.queries():
        parser.error(f"tweets must arrive for longer than --stale, and have at most {MOST_TAGS:,} hashtags")
    # A small run compiles and loads all code before the clock starts.
    execute(lambda worker: Program(worker, Plan(tweets, 10, 0.01, 10, 3)).run())
    first, *_ = execute(lambda worker: Program(worker, plan).run(print if worker.index == 0 else None))
    if first.stale.tags:
        print(f"{epochs * size:,} tweets, {len(first.stale.tags):,} queries of each kind")
        print(first.described())
        if options.series is not None:
            options.series.write_text("".join(f"{row}\n" for row in first.rows()))


if __name__ == "__main__":
    main()
