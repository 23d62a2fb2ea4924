"""How often do people see a hashtag before they use it themselves? Keep the answer up to date as tweets arrive.

    python examples/k_exposure.py --tweets 1000000
    timely run -n 2 examples/k_exposure.py --users 1000000

A user is k-exposed to a hashtag when k of the users that they follow have used it. For each hashtag, this program
counts how many users first used it after k exposures (Romero, Meeder and Kleinberg, WWW 2011; since Kineograph and
Naiad this has been a benchmark of stream processors). An exposure counts if its epoch is before that of the first use,
that is, if it was in an earlier batch of tweets.

Only first uses matter, and each is looked up once, when it happens: whom does the user follow, and which of these have
used the hashtag before? This is a delta query (`differential.delta`), which keeps no table of exposures.
"""

from __future__ import annotations

import argparse

from options import at_least
from pace import Pace
from tweets import Tweets, add_arguments

from differential import Collection, new_input
from differential.delta import AltNeu, Prefixes
from timely import Worker, execute


def exposures(follows: Collection, tweets: Collection) -> Collection:
    """Return (hashtag, k) for each user who has used the hashtag, the first time after k exposures.

    `follows` holds (follower, followed), each once; `tweets` holds (author, hashtag), and only grows.
    """
    uses = tweets.map(lambda user, tag: (user, tag), keys=2).distinct()
    firsts = Prefixes.of(uses).map(lambda user, tag: (user, tag))
    followed = firsts.half_join(follows.arrange_by_key(), lambda user, tag, other: (other, tag, user), keys=2)
    before = followed.half_join(uses.arrange_by_key(), lambda other, tag, user: (user, tag), AltNeu.ALT, keys=2)
    # Each first use is added once, so that those without an exposure are counted, too.
    numbers = before.results().concat(uses).count()
    return numbers.map(lambda user, tag, number: (tag, number - 1), keys=2)


def program(
    worker: Worker, tweets: Tweets, follows: int, epochs: int, size: int, progress: bool = False
) -> tuple[dict[int, int], Pace]:
    """Stream epochs of `size` tweets; return, on worker 0, the number of first uses by exposures; and the pace."""
    with worker.dataflow("k-exposure") as scope:
        edges, graph = new_input(scope, name="follows")
        session, stream = new_input(scope, name="tweets")
        first_uses = exposures(graph, stream)
        by_tag = first_uses.count().probe()
        whole = first_uses.map(lambda tag, k: k).count().output()

    def finish(epoch: int) -> None:
        session.advance_to(epoch)
        worker.step_while(lambda: by_tag.less_than(epoch) or whole.less_than(epoch))

    follower, followed = tweets.follows(follows)
    edges.insert(follower[worker.index :: worker.peers], followed[worker.index :: worker.peers])
    edges.close()
    finish(1)
    pace = Pace("tweets", (lambda: described(dict(list(whole.contents())))) if progress and not worker.index else None)
    for epoch in range(epochs):
        author, _, tag = tweets.batch(epoch * size, size)
        with pace.epoch(size):
            session.insert(author[worker.index :: worker.peers], tag[worker.index :: worker.peers])
            finish(epoch + 2)
    session.close()
    worker.step_while(lambda: not whole.done())
    return dict(list(whole.contents())), pace


def described(numbers: dict[int, int]) -> str:
    """Return a short text with the shares of first uses by exposures."""
    total = max(sum(numbers.values()), 1)
    shares = ", ".join(f"{k}: {numbers.get(k, 0) / total:.1%}" for k in range(4))
    return f"{total:,} first uses, after k exposures: {shares}"


def main() -> None:
    """Run the program with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tweets", type=at_least(1), default=500_000, help="number of tweets, in whole epochs (default 500,000)"
    )
    add_arguments(parser, users=20_000, tags=10_000)
    parser.add_argument("--follows", type=at_least(1), default=20, help="most users that a user follows (default 20)")
    parser.add_argument("--epoch", type=at_least(1), default=50_000, help="tweets in an epoch (default 50,000)")
    options = parser.parse_args()
    tweets, size = Tweets(options.users, options.tags), min(options.epoch, options.tweets)
    epochs = options.tweets // max(size, 1)
    results = execute(lambda worker: program(worker, tweets, options.follows, epochs, size, progress=True))
    numbers, pace = results[0]
    if numbers:
        print("first uses by exposures:", ", ".join(f"{k}: {number:,}" for k, number in sorted(numbers.items())))
        print(pace.summary())


if __name__ == "__main__":
    main()
