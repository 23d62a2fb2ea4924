"""Generated tweets: the same in every run and for any number of workers.

A tweet has an author, somebody it mentions, and a hashtag. Users and hashtags are whole numbers; by Zipf's law, about,
the one numbered n is picked with a probability in proportion to 1 / (n + 1): author, mentioned user and hashtag each by
themselves. Whoever is often mentioned writes often, and is followed by many.
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
    """Tweets of so many users about so many hashtags."""

    users: int
    tags: int

    def batch(self, first: int, count: int) -> tuple[Ints, Ints, Ints]:
        """Return (author, mentioned user, hashtag) of `count` tweets, from the one numbered `first` on."""
        numbers = 3 * np.arange(first, first + count)
        author = shuffled(zipf(numbers, self.users), self.users)
        mentioned = shuffled(zipf(numbers + 1, self.users), self.users)
        return author, mentioned, zipf(numbers + 2, self.tags)

    def follows(self, each: int) -> tuple[Ints, Ints]:
        """Return (follower, followed): up to `each` for each user, none twice."""
        draws = np.arange(self.users * each)
        follower, followed = draws // each, shuffled(zipf(-1 - draws, self.users), self.users)
        pairs = np.sort(follower * self.users + followed)
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
        return pairs // self.users, pairs % self.users


def add_arguments(parser: ArgumentParser, users: int, tags: int) -> None:
    """Let a command line say how many users and hashtags there are, if not so many."""
    parser.add_argument(
        "--users", type=at_least(1), default=users, help=f"how many users there are (default {users:,})"
    )
    parser.add_argument(
        "--tags", type=at_least(1), default=tags, help=f"how many hashtags there are (default {tags:,})"
    )


def zipf(numbers: Ints, size: int) -> Ints:
    """Return for each number a random one below `size`, the same for the same, small ones more often."""
    uniform = splitmix(numbers) / 2.0**64
    ranks: Ints = np.expm1(uniform * np.log1p(size)).astype(np.int64)
    return np.minimum(ranks, size - 1)


def shuffled(ranks: Ints, size: int) -> Ints:
    """Return numbers below `size` in another order, so that small ones are no more frequent than others."""
    step = next(step for step in range(int(0.618 * size) | 1, 2 * size + 2) if np.gcd(step, size) == 1)
    return ranks * step % size
