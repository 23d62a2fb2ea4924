"""Generated tweets: the same in every run and for any number of workers.

A tweet has an author, a user that it mentions, and a hashtag. Users and hashtags are integers. Approximately by Zipf's
law, number n is picked with a probability proportional to 1 / (n + 1), independently for author, mentioned user and
hashtag. Users who are often mentioned write often, and are followed by many.
"""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass

import numpy as np
from bfs import splitmix
from numpy.typing import NDArray
from options import at_least

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Tweets:
    """Tweets of that many users, with that many hashtags."""

    users: int
    tags: int

    def batch(self, first: int, count: int) -> tuple[Ints, Ints, Ints]:
        """Return (author, mentioned user, hashtag) of `count` tweets, starting with tweet number `first`."""
        numbers = 3 * np.arange(first, first + count)
        author = shuffled(zipf(numbers, self.users), self.users)
        mentioned = shuffled(zipf(numbers + 1, self.users), self.users)
        return author, mentioned, zipf(numbers + 2, self.tags)

    def follows(self, each: int) -> tuple[Ints, Ints]:
        """Return (follower, followed) without duplicates, up to `each` for each user."""
        draws = np.arange(self.users * each)
        follower, followed = draws // each, shuffled(zipf(-1 - draws, self.users), self.users)
        pairs = np.sort(follower * self.users + followed)
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
        return pairs // self.users, pairs % self.users


def add_arguments(parser: ArgumentParser, users: int, tags: int) -> None:
    """Add the options for the numbers of users and hashtags, with these defaults."""
    parser.add_argument("--users", type=at_least(1), default=users, help=f"number of users (default {users:,})")
    parser.add_argument("--tags", type=at_least(1), default=tags, help=f"number of hashtags (default {tags:,})")


def zipf(numbers: Ints, size: int) -> Ints:
    """Return a pseudo-random number below `size` for each number, small ones more often."""
    uniform = splitmix(numbers) / 2.0**64
    ranks: Ints = np.expm1(uniform * np.log1p(size)).astype(np.int64)
    return np.minimum(ranks, size - 1)


def shuffled(ranks: Ints, size: int) -> Ints:
    """Return the ranks permuted among the numbers below `size`, so that small numbers are no more frequent."""
    step = next(step for step in range(int(0.618 * size) | 1, 2 * size + 2) if np.gcd(step, size) == 1)
    return ranks * step % size
