"""What do people talk about? The top hashtag among all users connected with a user.

    python examples/topics.py --rate 8000 --seconds 20 --epoch 100 --plot latency.svg
    timely run -n 2 examples/topics.py

Users are connected if one mentions the other, or through others. The dataflow maintains the component of each user, the
number of uses of each hashtag in each component, and the top hashtag of each component. A query looks up the user's
component, and then the hashtag of that component. There are two kinds (the interactive query of Naiad, SOSP 2013,
section 6.4):

- A fresh query is at the current epoch: its answer includes all tweets up to the query, and waits for them.
- A stale query is at an epoch `--stale` seconds ago, which is final already, so the answer takes only a few steps.

Both use the same dataflow, at different times. Indexes keep exactly the times at which queries may still be made.
Tweets arrive by the clock, `--rate` a second, in an epoch every `--epoch` milliseconds; those of a file do so, too,
whatever their times. In each epoch one user is asked about, once fresh and once stale.
"""

from __future__ import annotations

import argparse
import sys
import time as clock
from collections.abc import Callable
from typing import Any

from topics_plan import Plan, Series, epochs_in, plan_of
from topics_report import check, emit, result
from tweets import NONE, Tweets, add_arguments

from differential import Arrangement, Collection, InputSession, Output, new_input
from differential.delta import Prefixes
from differential.graphs import weakly_connected_components
from differential.jobs import at_least
from differential.jobs.command_line import add_output, options_from, parser_of
from differential.jobs.gathered import Gathered
from differential.jobs.outputs import reporting
from differential.jobs.status import status_of
from timely import Worker, execute

EPILOG = """\
The answer has a record for each query: its second, the user, and the epoch, the hashtag and the milliseconds of the
stale and of the fresh query. The changes are those of the top hashtag of each component: (component, hashtag), where a
component is the least number of its users.

examples:
  {program} --rate 8000 --seconds 20 --check
  {program} --tweets tweets.tsv.gz --rate 1000 --csv queries.csv
  {program} --stale 0.5 --epoch 20 --plot latency.svg
  timely run -n 2 {script}   (two processes)
"""

PARTS = 64
"""The number of parts into which hashtags are divided: each part is ranked, then the best of all parts."""
MOST_TAGS = 1 << 31
"""An upper bound for the numbers of hashtags, more than memory holds of a file; as many uses have room beside it."""


def connected(tweets: Collection) -> Collection:
    """Return (user, component) of tweets (author, mentioned user, hashtag). Who mentions nobody mentions themselves."""
    return weakly_connected_components(tweets.map(lambda author, mentioned, tag: (author, mentioned)))


def top_hashtags(tweets: Collection, components: Collection) -> Collection:
    """Return (component, hashtag) with the hashtag of the most tweets of the component; the smallest of several."""
    uses = tweets.filter(lambda author, mentioned, tag: tag != NONE).map(lambda author, mentioned, tag: (author, tag))
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


class Program:
    """The part of one worker: the dataflow, and the clock that drives it."""

    def __init__(self, worker: Worker, plan: Plan, has_changes: bool = False) -> None:
        """Build the dataflow; with `has_changes`, worker 0 receives the top hashtags of all components."""
        self._worker = worker
        self._plan = plan
        self.stale, self.fresh = Series(), Series()
        with worker.dataflow("top hashtag") as scope:
            self._tweets, tweets = new_input(scope, name="tweets")
            components = connected(tweets)
            top = top_hashtags(tweets, components)
            by_user, by_component = components.arrange_by_key(), top.arrange_by_key()
            self.top = Gathered(top) if has_changes else None

            def asked(name: str) -> tuple[InputSession, Output]:
                session, queries = new_input(scope, name=name)
                return session, answered(queries, by_user, by_component).output()

            self._stale, self._stale_answers = asked("stale queries")
            self._fresh, self._fresh_answers = asked("fresh queries")

    def run(self, report: Callable[[Program], None] = lambda _: None) -> Program:
        """Send all tweets and all queries when they are due; return when all queries are answered.

        `report` is called now and then, with the program as it is.
        """
        plan, waiting = self._plan, self._plan.queries()
        if plan.is_alone and self._worker.index:
            return self._follow()
        begun = clock.perf_counter()
        while self._tweets.epoch < plan.epochs or waiting:
            now = clock.perf_counter() - begun
            # Epochs that became due while others were under way are sent together, and take little longer than one.
            is_free = not self._fresh_answers.less_than(self._tweets.epoch)
            while is_free and self._tweets.epoch < plan.epochs and now >= (self._tweets.epoch + 1) * plan.seconds:
                self._feed()
            while waiting and (now >= plan.due(waiting[0]) or self._tweets.epoch == plan.epochs):
                self._ask(waiting.popleft())
            self._step(begun)
            report(self)
        self._close()
        while not self._is_done():
            self._step(begun)
        self._step(begun)
        return self

    def _follow(self) -> Program:
        """Send nothing; return when all queries of worker 0 are answered."""
        self._close()
        self._worker.step_while(lambda: not self._is_done())
        return self

    def _close(self) -> None:
        for session in (self._tweets, self._stale, self._fresh):
            session.close()

    def _is_done(self) -> bool:
        return self._stale_answers.done() and self._fresh_answers.done()

    def described(self) -> str:
        """Return a short text with the latencies of queries."""
        return "; ".join(
            f"{name}: median {median:.1f} ms, p95 {p95:.1f}, p99 {p99:.1f}"
            for name, series in (("stale", self.stale), ("fresh", self.fresh))
            for median, p95, p99 in (series.percentiles(),)
        )

    @property
    def sent(self) -> int:
        """How many tweets were sent, by all workers."""
        return self._tweets.epoch * self._plan.size

    @property
    def final(self) -> int:
        """The epoch before which all answers are final."""
        epoch = self._tweets.epoch
        while epoch and self._fresh_answers.less_than(epoch):
            epoch -= 1
        return epoch

    def _feed(self) -> None:
        """Send this worker's share of the tweets of the epoch, and end the epoch."""
        plan, worker, epoch = self._plan, self._worker, self._tweets.epoch
        columns = plan.tweets.batch(epoch * plan.size, plan.size)
        index, peers = (0, 1) if plan.is_alone else (worker.index, worker.peers)
        self._tweets.insert(*(column[index::peers] for column in columns))
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


def run(worker: Worker, plan: Plan, options: argparse.Namespace) -> None:
    """Answer the queries on one worker; worker 0 prints and writes the answers."""
    is_first = worker.index == 0
    with reporting("topics", worker, options) as (outputs, display):
        # A small run compiles and loads all code before the clock starts.
        Program(worker, Plan(Tweets(500, 50), 10, 0.01, 10, 3)).run()
        display.begin("following tweets", plan.epochs * plan.size)
        program = Program(worker, plan, options.changes_to is not None)

        def report(running: Program) -> None:
            display.advance(running.sent, running.sent, "tweets")
            if running.top is not None:
                end = running.final
                emit(outputs, plan, running, end)

        program.run(report)
        if program.top is not None:
            worker.step_while(lambda: program.top is not None and not program.top.is_done)
            emit(outputs, plan, program, plan.epochs)
        if is_first:
            if options.check:
                check(plan, program)
            outputs.finish(result(plan, program))


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = parser_of(str(__doc__), EPILOG)
    add: Callable[..., Any] = add_arguments(parser, users=10_000, tags=1_000)
    add("--rate", type=at_least(1), default=2_000, metavar="N", help="tweets in a second (default 2,000)")
    add("--seconds", type=at_least(0.0), default=8.0, help="seconds for which tweets arrive, at most (default 8)")
    add("--epoch", type=at_least(1), default=50, metavar="MS", help="milliseconds in an epoch (default 50)")
    own = parser.add_argument
    own("--stale", type=at_least(0.0), default=1.0, help="seconds that stale queries look back (default 1)")
    own("--check", action="store_true", help="compute the answer of each query from scratch with SciPy, and compare")
    add_output(
        parser,
        csv="write the queries and their answers to FILE",
        plot="draw the latencies (.svg, .png, .pdf)",
    )
    options = options_from(parser, arguments)
    length = options.epoch / 1000
    if options.tags > MOST_TAGS or epochs_in(options.seconds, length) <= epochs_in(options.stale, length) + 1:
        parser.error(f"tweets must arrive for longer than --stale, and have at most {MOST_TAGS:,} hashtags")
    return options


def main() -> int:
    """Run the program with the options of the command line; return the exit status."""
    options = options_of()

    def body() -> None:
        plan = plan_of(options)
        execute(lambda worker: run(worker, plan, options))

    return status_of("topics", body)


if __name__ == "__main__":
    sys.exit(main())
