"""Tweets, generated or from a file, in columns: the time, the author, a user that it mentions, and a hashtag.

Users and hashtags are integers. A tweet is one row or several: its mentions and its hashtags stand in the rows one by
one, and where there are fewer of one kind than of the other, the rest is `NONE`.

**Generated** tweets are the same in every run and for any number of workers. Each has one mention and one hashtag, and
its time is its number. Approximately by Zipf's law, number n is picked with a probability proportional to 1 / (n + 1),
independently for author, mentioned user and hashtag. Users who are often mentioned write often, and are followed by
many.

**A file** has a line for each tweet, of three fields separated by tabs: the time in whole seconds, which never
decreases, the user, and the text. Hashtags and mentions are the words of the text that begin with `#` and `@`, of
letters, digits and underscores, whatever their case; the rest of the text is ignored. Blank lines and lines that begin
with `#` are skipped.

    1700000000	ada	Notes on the #engine, for @charles and @mary
    1700000003	charles	@ada #engine #gears
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice, zip_longest
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from splitmix import splitmix

from differential.jobs import at_least
from differential.jobs.access import label_of
from differential.jobs.lines import TextLine, lines

Ints = NDArray[np.int64]

NONE = -1
"""The mentioned user, or the hashtag, of a row that has none."""

FORMAT = """\
the tweets: a file with a line for each, of a time in whole seconds, a user and a text, separated by tabs, also
compressed; the text's #hashtags and @mentions count; '-' is standard input; without it, tweets are generated"""


class Rows(NamedTuple):
    """Rows of tweets: columns of equal length."""

    time: Ints
    author: Ints
    mentioned: Ints
    tag: Ints
    tweets: int
    """How many tweets these are."""

    def mentions(self) -> tuple[Ints, Ints]:
        """Return (author, mentioned user) of the rows that have a mention."""
        kept = self.mentioned != NONE
        return self.author[kept], self.mentioned[kept]

    def uses(self) -> tuple[Ints, Ints]:
        """Return (author, hashtag) of the rows that have a hashtag."""
        kept = self.tag != NONE
        return self.author[kept], self.tag[kept]


class Stream(Protocol):
    """A stream of tweets, as the jobs read it."""

    is_alone: bool
    """Whether worker 0 reads all tweets; otherwise all workers read all tweets, and divide them."""

    @property
    def label(self) -> str:
        """Return what to call the tweets."""

    def epochs(self, size: int, count: int | None = None) -> Iterator[Rows]:
        """Yield epochs of `size` tweets, at most `count` of them; the last one may be smaller."""

    def seconds(self, rate: int, count: int | None = None) -> Iterator[Rows]:
        """Yield the tweets of each second that has any, at most of `count` seconds; `rate` are generated in one."""

    def user(self, number: int) -> str:
        """Return the name of a user."""

    def hashtag(self, number: int) -> str:
        """Return the name of a hashtag."""


@dataclass(frozen=True)
class Tweets:
    """Generated tweets of that many users, with that many hashtags."""

    users: int
    tags: int
    is_alone = False

    @property
    def label(self) -> str:
        """Return what to call the tweets."""
        return f"generated tweets of {self.users:,} users"

    def batch(self, first: int, count: int) -> tuple[Ints, Ints, Ints]:
        """Return (author, mentioned user, hashtag) of `count` tweets, starting with tweet number `first`."""
        numbers = 3 * np.arange(first, first + count)
        author = shuffled(zipf(numbers, self.users), self.users)
        mentioned = shuffled(zipf(numbers + 1, self.users), self.users)
        return author, mentioned, zipf(numbers + 2, self.tags)

    def epochs(self, size: int, count: int | None = None) -> Iterator[Rows]:
        """Yield epochs of `size` tweets, `count` of them."""
        for epoch in range(count or 0):
            yield Rows(np.arange(epoch * size, (epoch + 1) * size), *self.batch(epoch * size, size), size)

    def seconds(self, rate: int, count: int | None = None) -> Iterator[Rows]:
        """Yield the tweets of each of `count` seconds, `rate` in each."""
        for second, rows in enumerate(self.epochs(rate, count)):
            yield rows._replace(time=np.full(rate, second))

    def follows(self, each: int) -> tuple[Ints, Ints]:
        """Return (follower, followed) without duplicates, up to `each` for each user."""
        draws = np.arange(self.users * each)
        follower, followed = draws // each, shuffled(zipf(-1 - draws, self.users), self.users)
        pairs = np.sort(follower * self.users + followed)
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
        return pairs // self.users, pairs % self.users

    def user(self, number: int) -> str:
        """Return the name of a user."""
        return str(number)

    def hashtag(self, number: int) -> str:
        """Return the name of a hashtag."""
        return str(number)


class TweetFile:
    """Tweets of a file. Users and hashtags are numbered as they first appear, on worker 0, which reads them."""

    is_alone = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._users: dict[str, int] = {}
        self._tags: dict[str, int] = {}
        self._names: tuple[list[str], list[str]] = ([], [])

    @property
    def label(self) -> str:
        """Return what to call the tweets."""
        return label_of(self._path)

    def epochs(self, size: int, count: int | None = None) -> Iterator[Rows]:
        """Yield epochs of `size` tweets, at most `count` of them; the last one may be smaller."""
        tweets = self._tweets()
        while (count is None or count > 0) and (part := list(islice(tweets, size))):
            yield _rows(part)
            count = None if count is None else count - 1

    def seconds(self, rate: int, count: int | None = None) -> Iterator[Rows]:
        """Yield the tweets of each second that has any, at most of `count` seconds; `rate` is not used."""
        by_second = groupby(self._tweets(), lambda tweet: tweet[0][0])
        for _, tweets in islice(by_second, count):
            yield _rows([*tweets])

    def user(self, number: int) -> str:
        """Return the name of a user."""
        return self._names[0][number]

    def hashtag(self, number: int) -> str:
        """Return the name of a hashtag."""
        return self._names[1][number]

    def _tweets(self) -> Iterator[list[tuple[int, int, int, int]]]:
        """Yield the rows of each tweet. Raises DataError at the first line that is none."""
        last: int | None = None
        for line in lines(self._path):
            if not line.text.strip() or line.text.startswith("#"):
                continue
            time, user, text = _fields(line)
            if last is not None and time < last:
                raise line.fault(f"its time is before {last}, that of the line before")
            last = time
            author = self._number(user, self._users, 0)
            mentions = [self._number(name, self._users, 0) for name in re.findall(r"(?<!\w)@(\w+)", text)]
            tags = [self._number(name, self._tags, 1) for name in re.findall(r"(?<!\w)#(\w+)", text)]
            pairs = list(zip_longest(mentions, tags, fillvalue=NONE)) or [(NONE, NONE)]
            yield [(time, author, mentioned, tag) for mentioned, tag in pairs]

    def _number(self, name: str, numbers: dict[str, int], kind: int) -> int:
        folded = name.casefold()
        if folded not in numbers:
            numbers[folded] = len(numbers)
            self._names[kind].append(folded)
        return numbers[folded]


def _fields(line: TextLine) -> tuple[int, str, str]:
    """Return time, user and text of a line. Raises DataError if it has another form."""
    fields = line.text.split("\t", 2)
    if len(fields) != 3:
        raise line.fault(f"expected 3 fields separated by tabs (time, user, text), found {len(fields)}")
    time, user, text = fields
    if not re.fullmatch(r"-?[0-9]{1,18}", time, re.ASCII):
        raise line.fault(f"the time is not a whole number of seconds but {time!r}")
    if not re.fullmatch(r"@?\w+", user):
        raise line.fault(f"the user is not a word of letters, digits and underscores but {user!r}")
    return int(time), user.removeprefix("@"), text


def _rows(tweets: list[list[tuple[int, int, int, int]]]) -> Rows:
    rows = [row for tweet in tweets for row in tweet]
    time, author, mentioned, tag = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    return Rows(time, author, mentioned, tag, len(tweets))


def add_arguments(parser: ArgumentParser, users: int, tags: int | None) -> Callable[..., object]:
    """Add the options about tweets, with these defaults; return `add_argument` of their group, to add more."""
    add = parser.add_argument_group("tweets").add_argument
    add("--tweets", metavar="FILE", help=FORMAT)
    add("--users", type=at_least(1), default=users, help=f"number of users of generated tweets (default {users:,})")
    if tags is not None:
        add("--tags", type=at_least(1), default=tags, help=f"number of hashtags of generated tweets (default {tags:,})")
    return add


def stream_of(options: Namespace) -> Tweets | TweetFile:
    """Return the tweets that the options ask for."""
    if options.tweets is not None:
        return TweetFile(options.tweets)
    return Tweets(options.users, getattr(options, "tags", 1))


def zipf(numbers: Ints, size: int) -> Ints:
    """Return a pseudo-random number below `size` for each number, small ones more often."""
    uniform = splitmix(numbers) / 2.0**64
    ranks: Ints = np.expm1(uniform * np.log1p(size)).astype(np.int64)
    return np.minimum(ranks, size - 1)


def shuffled(ranks: Ints, size: int) -> Ints:
    """Return the ranks permuted among the numbers below `size`, so that small numbers are no more frequent."""
    step = next(step for step in range(int(0.618 * size) | 1, 2 * size + 2) if np.gcd(step, size) == 1)
    return ranks * step % size
