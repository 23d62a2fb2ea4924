"""How often do people see a hashtag before they use it themselves?

    python examples/kexposure.py --users 50000 --plot exposures.svg
    timely run -n 2 examples/kexposure.py --tweets tweets.tsv --epoch 1000

A user is k-exposed to a hashtag when k of the users that they follow have used it. For each hashtag, this program
counts how many users first used it after k exposures (Romero, Meeder and Kleinberg, WWW 2011; since Kineograph and
Naiad this has been a benchmark of stream processors). An exposure counts if its epoch is before that of the first use,
that is, if it was in an earlier batch of tweets.

Only first uses matter, and each is looked up once, when it happens: whom does the user follow, and which of these have
used the hashtag before? This is a delta query (`differential.delta`), which keeps no table of exposures.

Who follows whom is generated with generated tweets. In a file of tweets, a user follows whom their tweets mention, from
that epoch on.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from pace import Pace
from tweets import Ints, TweetFile, Tweets, add_arguments, stream_of

from differential import Collection, new_input
from differential.delta import AltNeu, Prefixes
from differential.jobs import at_least, counted
from differential.jobs.command_line import add_output, options_from, parser_of
from differential.jobs.gathered import Delta, Gathered
from differential.jobs.outputs import Result, reporting
from differential.jobs.picture import latency_panels, nothing, points
from differential.jobs.status import CheckError, status_of
from timely import Worker, execute

EPILOG = """\
The answer has a record (hashtag, k, users) for each hashtag and number of exposures.

examples:
  {program} --count 1000000 --epoch 10000
  {program} --tweets tweets.tsv.gz --check --csv exposures.csv
  {program} --tweets - --epoch 100 --changes - < tweets.tsv
  timely run -n 2 {script} --users 1000000   (two processes)
"""


class Epoch(NamedTuple):
    """What arrives in an epoch: pairs (follower, followed), each once, uses (author, hashtag), and how many tweets."""

    follows: tuple[Ints, Ints]
    uses: tuple[Ints, Ints]
    tweets: int

    def share(self, index: int, peers: int) -> Epoch:
        """Return the part of worker `index` of `peers`."""
        follows, uses = ((first[index::peers], second[index::peers]) for first, second in (self.follows, self.uses))
        return Epoch(follows, uses, self.tweets)


NOBODY = np.zeros(0, np.int64), np.zeros(0, np.int64)


def exposures(follows: Collection, tweets: Collection) -> Collection:
    """Return (hashtag, k) for each user who has used the hashtag, the first time after k exposures.

    `follows` holds (follower, followed), each once; `tweets` holds (author, hashtag). Both only grow.
    """
    uses = tweets.map(lambda user, tag: (user, tag), keys=2).distinct()
    firsts = Prefixes.of(uses).map(lambda user, tag: (user, tag))
    followed = firsts.half_join(follows.arrange_by_key(), lambda user, tag, other: (other, tag, user), keys=2)
    before = followed.half_join(uses.arrange_by_key(), lambda other, tag, user: (user, tag), AltNeu.ALT, keys=2)
    # Each first use is added once, so that those without an exposure are counted, too.
    numbers = before.results().concat(uses).count()
    return numbers.map(lambda user, tag, number: (tag, number - 1), keys=2)


def epochs_of(tweets: Tweets | TweetFile, follows: int, size: int, count: int | None) -> Iterator[Epoch]:
    """Yield the epochs: first who follows whom in generated tweets, then tweets, `size` in each epoch."""
    if isinstance(tweets, Tweets):
        yield Epoch(tweets.follows(follows), NOBODY, 0)
    seen: set[tuple[int, int]] = set()
    for rows in tweets.epochs(size, count):
        new: list[tuple[int, int]] = []
        if tweets.is_alone:
            mentions = dict.fromkeys(zip(*(column.tolist() for column in rows.mentions())))
            new = [pair for pair in mentions if pair not in seen]
            seen.update(new)
        pairs = np.array(new, np.int64).reshape(-1, 2).T
        yield Epoch((pairs[0], pairs[1]), rows.uses(), rows.tweets)


class Program:
    """The part of one worker: the dataflow, and the epochs fed into it."""

    def __init__(self, worker: Worker, by_hashtag: bool = False) -> None:
        """Build the dataflow; with `by_hashtag`, worker 0 receives the counts of each hashtag."""
        self.pace = Pace()
        self._worker = worker
        with worker.dataflow("k-exposure") as scope:
            self._follows, graph = new_input(scope, name="follows")
            self._tweets, stream = new_input(scope, name="tweets")
            first_uses = exposures(graph, stream)
            counts = first_uses.count()
            self._by_tag = counts.probe()
            self.gathered = Gathered(counts) if by_hashtag else None
            self._whole = first_uses.map(lambda tag, k: k).count().output()

    def take(self, epoch: Epoch) -> None:
        """Complete an epoch, of which this worker sends what is given."""
        if epoch.tweets:
            with self.pace.epoch(epoch.tweets):
                self._take(epoch)
        else:
            self._take(epoch)

    def whole(self) -> dict[int, int]:
        """Return, on worker 0, the number of first uses after k exposures, by k."""
        return dict(list(self._whole.contents()))

    def deltas(self) -> list[Delta]:
        """Return, on worker 0, how the counts of hashtags changed in the last epoch."""
        return [] if self.gathered is None else self.gathered.deltas(self._tweets.epoch)

    def finish(self) -> None:
        """Close the inputs, and step until all workers have done so."""
        self._follows.close()
        self._tweets.close()
        self._worker.step_while(lambda: not self._whole.done())

    def _take(self, epoch: Epoch) -> None:
        self._follows.insert(*epoch.follows)
        self._tweets.insert(*epoch.uses)
        end = self._tweets.epoch + 1
        self._follows.advance_to(end)
        self._tweets.advance_to(end)
        self._worker.step_while(lambda: self._by_tag.less_than(end) or self._whole.less_than(end))


def program(worker: Worker, epochs: Iterable[Epoch], by_hashtag: bool = False) -> Program:
    """Stream epochs, which this worker shares with all others; return the program at the end."""
    running = Program(worker, by_hashtag)
    for epoch in epochs:
        running.take(epoch.share(worker.index, worker.peers))
    running.finish()
    return running


def from_scratch(epochs: Iterable[Epoch]) -> Counter[tuple[int, int]]:
    """Return how many users first used each hashtag after k exposures, by (hashtag, k), in plain Python."""
    follows: dict[int, set[int]] = defaultdict(set)
    first: dict[tuple[int, int], int] = {}
    answer: Counter[tuple[int, int]] = Counter()
    for number, epoch in enumerate(epochs):
        for follower, followed in zip(*(column.tolist() for column in epoch.follows)):
            follows[follower].add(followed)
        new = set(zip(*(column.tolist() for column in epoch.uses))) - first.keys()
        first.update(dict.fromkeys(new, number))
        for user, tag in new:
            answer[tag, sum(first.get((other, tag), number) < number for other in follows[user])] += 1
    return answer


def run(worker: Worker, options: argparse.Namespace) -> None:
    """Follow the tweets on one worker; worker 0 prints and writes the answer."""
    tweets, is_first = stream_of(options), worker.index == 0
    kept: list[Epoch] = []
    with reporting("kexposure", worker, options) as (outputs, display):
        wants_all = bool(options.csv or options.changes_to or options.check)
        running = Program(worker, wants_all)
        display.begin("following tweets", options.count if options.tweets is None else None)
        size = min(options.epoch, options.count) if options.tweets is None else options.epoch
        count = None if options.tweets is not None else options.count // size
        source = epochs_of(tweets, options.follows, size, count) if is_first or not tweets.is_alone else ()
        for epoch in source:
            running.take(epoch if tweets.is_alone else epoch.share(worker.index, worker.peers))
            display.advance(running.pace.items, running.pace.items, "tweets")
            if is_first and options.check:
                kept.append(epoch)
            for delta in running.deltas():
                outputs.change(delta.epoch, records(tweets, delta.columns), delta.diffs.tolist())
        running.finish()
        if is_first:
            answer = [] if running.gathered is None else records(tweets, running.gathered.answer().columns)
            if options.check:
                check(answer, [(tweets.hashtag(tag), k, users) for (tag, k), users in from_scratch(kept).items()])
            outputs.finish(result(tweets, running, answer))


def records(tweets: Tweets | TweetFile, columns: Any) -> list[tuple[str, int, int]]:
    """Return (hashtag, k, users), with the names of hashtags."""
    return [(tweets.hashtag(tag), k, users) for tag, k, users in zip(*(column.tolist() for column in columns))]


def check(found: list[tuple[str, int, int]], expected: list[tuple[str, int, int]]) -> None:
    """Raise CheckError if the answer differs from the one computed from scratch."""
    for record in sorted(set(found) ^ set(expected)):
        which = "should not be in the answer" if record in set(found) else "is missing from the answer"
        raise CheckError(f"the answer is wrong: (hashtag, k, users) = {record} {which}")


def result(tweets: Tweets | TweetFile, running: Program, answer: list[tuple[str, int, int]]) -> Result:
    """Return what is printed, written and drawn."""
    numbers, pace = dict(sorted(running.whole().items())), running.pace
    shares = ", ".join(f"{k}: {number:,}" for k, number in numbers.items())
    lines = [f"first uses by exposures: {shares or 'none'}", pace.summary("tweets")]

    def curve(axes: Any) -> None:
        title = "Exposures before the first use of a hashtag"
        if not numbers:
            return nothing(axes, title)
        points(axes, np.array(list(numbers)), np.array(list(numbers.values())))
        axes.set(title=title, xlabel="k (followed users who used it before)", ylabel="first uses (users and hashtags)")
        return None

    panels: list[Callable[[Any], None]] = [curve]
    if len(pace.latencies) > 1:
        panels += latency_panels(pace.milliseconds(), "epoch")
    figures = {"tweets": pace.items, "first_uses": {str(k): number for k, number in numbers.items()}, **pace.figures()}
    title = f"{tweets.label}: {counted(pace.items, 'tweet')}"
    return Result(lines, figures, ("hashtag", "k", "users"), answer, title, panels, texts=("hashtag",))


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = parser_of(str(__doc__), EPILOG)
    add: Callable[..., Any] = add_arguments(parser, users=20_000, tags=10_000)
    count = "number of generated tweets, in whole epochs (default 500,000)"
    add("--count", type=at_least(1), default=500_000, metavar="N", help=count)
    follows = "most users that a user of generated tweets follows (default 20)"
    add("--follows", type=at_least(1), default=20, metavar="N", help=follows)
    add("--epoch", type=at_least(1), default=50_000, metavar="N", help="tweets in an epoch (default 50,000)")
    parser.add_argument(
        "--check", action="store_true", help="compute the last answer from scratch in plain Python, and compare the two"
    )
    add_output(parser, plot="draw the exposures, and the latencies of epochs (.svg, .png, .pdf)")
    return options_from(parser, arguments)


def main() -> int:
    """Run the program with the options of the command line; return the exit status."""
    options = options_of()
    return status_of("kexposure", lambda: execute(lambda worker: run(worker, options)))


if __name__ == "__main__":
    sys.exit(main())
