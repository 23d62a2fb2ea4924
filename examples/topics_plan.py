"""The schedule of the job `topics`: when tweets arrive, who is asked about, and what was answered."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from pace import percentiles
from splitmix import splitmix
from tweets import NONE, Ints, Rows, TweetFile, Tweets, stream_of

from differential import Output
from differential.jobs import counted
from timely import Config
from timely.errors import DataError


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

    tweets: Tweets | Loaded
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
    def is_alone(self) -> bool:
        """Whether worker 0 sends all tweets; otherwise all workers divide them."""
        return self.stream.is_alone

    @property
    def stream(self) -> Tweets | TweetFile:
        """Where the tweets come from."""
        return self.tweets if isinstance(self.tweets, Tweets) else self.tweets.stream

    @property
    def _begin(self) -> int:
        return max(self.stale + 1, self.first)

    def user(self, number: int) -> int:
        """Return the user of a query: one who tweets in the first epoch."""
        author, _, _ = self.tweets.batch(int(splitmix(np.array([number]))[0]) % self.size, 1)
        return int(author[0])


class Loaded:
    """The tweets of a file in memory, with the interface of generated ones: `batch` returns the rows of tweets.

    The process of worker 0 reads them, and the others have none.
    """

    def __init__(self, stream: TweetFile, is_first: bool) -> None:
        self.stream = stream
        self._epochs = [*stream.epochs(1)] if is_first else []

    def __len__(self) -> int:
        return len(self._epochs)

    def batch(self, first: int, count: int) -> tuple[Ints, Ints, Ints]:
        """Return (author, mentioned user, hashtag) of `count` tweets, starting with tweet number `first`."""
        rows = self._epochs[first : first + count]
        author, mentioned, tag = (np.concatenate(column) for column in zip(*map(_columns, rows)))
        return author, mentioned, tag


def _columns(rows: Rows) -> tuple[Ints, Ints, Ints]:
    """Return the columns of a tweet, in which a row without a mention mentions its author."""
    return rows.author, np.where(rows.mentioned == NONE, rows.author, rows.mentioned), rows.tag


def epochs_in(seconds: float, length: float) -> int:
    """Return how many whole epochs of a length fit into some seconds.

    >>> epochs_in(0.6, 0.05), int(0.6 / 0.05)
    (12, 11)
    """
    return int(seconds / length + 1e-9)


def plan_of(options: argparse.Namespace) -> Plan:
    """Return the schedule that the options ask for; processes without worker 0 do not read a file.

    Raises DataError if a file of tweets is too short for the schedule.
    """
    length, stream = options.epoch / 1000, stream_of(options)
    size, stale = max(int(options.rate * length), 1), epochs_in(options.stale, length)
    if isinstance(stream, Tweets):
        return Plan(stream, size, length, epochs_in(options.seconds, length), stale)
    is_first = Config.from_environ().process == 0
    loaded = Loaded(stream, is_first)
    epochs = min(epochs_in(options.seconds, length), len(loaded) // size)
    if is_first and epochs <= stale + 1:
        raise DataError(
            f"{stream.label} has {counted(len(loaded), 'tweet')}, which end {epochs * length:g} s after the start, "
            f"before the first query {options.stale:g} s stale: reduce --rate or --stale"
        )
    return Plan(loaded, size, length, epochs, stale)
