"""The job `kexposure` counts exposures as their definition does."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.examples_loading import example_module
from tests.integration.jobs.programs import (
    TWEETS,
    answered,
    as_text,
    drawn,
    epochs,
    on_two_processes,
    refused,
    table,
)
from tests.integration.jobs.tweeting import Tweet, write_tweets
from tests.oracle.grid import Update, contents, run

kexposure = example_module("kexposure")
tweets = example_module("tweets")

USERS, TAGS = st.integers(0, 4), st.integers(0, 2)


def exposures(follows: set[tuple[int, int]], posted: list[tuple[int, int, int]]) -> Counter[tuple[int, int]]:
    """Return how many users first used a hashtag after k exposures, given (epoch, author, hashtag)."""
    first: dict[tuple[int, int], int] = {}
    for epoch, author, tag in sorted(posted):
        first.setdefault((author, tag), epoch)
    followed = defaultdict(set)
    for follower, other in follows:
        followed[follower].add(other)
    return Counter(
        (tag, sum(first.get((other, tag), epoch) < epoch for other in followed[author]))
        for (author, tag), epoch in first.items()
    )


@pytest.mark.lengthy
@settings(max_examples=25, deadline=None)
@given(
    st.sets(st.tuples(USERS, USERS)),
    st.lists(st.tuples(st.integers(1, 4), USERS, TAGS), max_size=25),
    st.integers(1, 3),
)
def test_exposures_are_those_of_the_definition(
    follows: set[tuple[int, int]], posted: list[tuple[int, int, int]], workers: int
) -> None:
    graph: list[Update] = [(pair, (0,), 1) for pair in sorted(follows)]
    uses: list[Update] = [((author, tag), (epoch,), 1) for epoch, author, tag in posted]
    changes = run(kexposure.exposures, graph, uses, workers=workers)
    for epoch in range(5):
        assert contents(changes, (epoch,)) == exposures(follows, [each for each in posted if each[0] <= epoch])


GENERATED = "--users", "30", "--tags", "6", "--follows", "4", "--count", "150", "--epoch", "50"


@pytest.mark.lengthy
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_generated_tweets_are_answered(workers: int, tmp_path: Path) -> None:
    changes, answer = tmp_path / "changes", tmp_path / "answer.csv"
    given = "--changes", changes, "--csv", answer, "--check"
    output = answered("kexposure", *GENERATED, *given, workers=workers)
    assert "150 tweets in" in output
    stream = tweets.Tweets(30, 6)
    posted = [(epoch, *pair) for epoch in range(3) for pair in zip(*map(list, stream.batch(50 * epoch, 50)[::2]))]
    follows = set(zip(*map(list, stream.follows(4))))
    found = epochs(changes)
    assert set(found) == {1, 2, 3}
    for epoch, records in found.items():
        expected = exposures(follows, [each for each in posted if each[0] < epoch])
        assert records == as_text((tag, k, users) for (tag, k), users in expected.items())
    assert set(table(answer)) == found[3]


def of_file(posted: list[Tweet], size: int) -> dict[int, Counter[tuple[str, int]]]:
    """Return the answer after each epoch of tweets, in which a user follows whom they have mentioned."""
    answers: dict[int, Counter[tuple[str, int]]] = {}
    used: dict[str, dict[str, int]] = defaultdict(dict)
    follows: dict[str, set[str]] = defaultdict(set)
    answer: Counter[tuple[str, int]] = Counter()
    for epoch, start in enumerate(range(0, len(posted), size)):
        part = posted[start : start + size]
        for tweet in part:
            follows[tweet.author].update(tweet.mentions)
        new = {(tweet.author, tag) for tweet in part for tag in tweet.tags if tag not in used[tweet.author]}
        for author, tag in new:
            answer[tag, sum(tag in used[other] for other in follows[author])] += 1
        for author, tag in new:
            used[author][tag] = epoch
        answers[epoch] = answer.copy()
    return answers


@pytest.mark.lengthy
@pytest.mark.parametrize(("seed", "size", "workers"), [(1, 1, 1), (2, 5, 2), (3, 7, 3)])
def test_tweets_of_a_file_are_answered(tmp_path: Path, seed: int, size: int, workers: int) -> None:
    changes = tmp_path / "changes"
    posted = write_tweets(tmp_path / "tweets", seed, 60)
    given = "--tweets", tmp_path / "tweets", "--epoch", str(size), "--changes", changes, "--check"
    assert "60 tweets in" in answered("kexposure", *given, workers=workers)
    expected = of_file(posted, size)
    for epoch, records in epochs(changes).items():
        assert records == as_text((tag, k, users) for (tag, k), users in expected[epoch].items())
    assert max(k for _, k in expected[max(expected)]) > 1


@pytest.mark.lengthy
def test_two_processes_read_standard_input(tmp_path: Path) -> None:
    posted = write_tweets(tmp_path / "tweets", 4, 40)
    text = (tmp_path / "tweets").read_text()
    given = "--tweets", "-", "--epoch", "6", "--check", "--csv", tmp_path / "answer.csv"
    ended = on_two_processes("kexposure", *given, input=text)
    assert ended.status == 0, ended.error
    last = of_file(posted, 6)
    assert set(table(tmp_path / "answer.csv")) == as_text((*pair, users) for pair, users in last[max(last)].items())


@pytest.mark.lengthy
def test_a_difference_from_scratch_is_reported() -> None:
    with pytest.raises(kexposure.CheckError, match=r"\('a', 1, 2\) should not be in the answer"):
        kexposure.check([("a", 0, 1), ("a", 1, 2)], [("a", 0, 1)])
    with pytest.raises(kexposure.CheckError, match=r"\('b', 0, 1\) is missing from the answer"):
        kexposure.check([], [("b", 0, 1)])


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\tada", "expected 3 fields separated by tabs (time, user, text), found 2: '1\\tada'"),
        ("noon\tada\t#a", "the time is not a whole number of seconds but 'noon': 'noon\\tada\\t#a'"),
        ("1\tada smith\t#a", "the user is not a word of letters, digits and underscores but 'ada smith'"),
        ("0\tada\t#a", "its time is before 9, that of the line before: '0\\tada\\t#a'"),
    ],
)
@pytest.mark.parametrize("name", ["kexposure", "window", "topics"])
def test_a_line_that_is_no_tweet_is_named(tmp_path: Path, name: str, line: str, message: str) -> None:
    path = tmp_path / "tweets"
    path.write_text(f"{TWEETS}{line}\n")
    assert refused(name, "--tweets", path).startswith(f"{name}: {path}, line 8: {message}")


@pytest.mark.lengthy
def test_the_picture_has_axes(tmp_path: Path) -> None:
    assert drawn("kexposure", tmp_path / "picture.svg", *GENERATED).count('<g id="axes_') == 3


@pytest.mark.lengthy
def test_generated_tweets_are_the_same_however_they_are_asked_for() -> None:
    stream = tweets.Tweets(100, 20)
    whole = stream.batch(0, 500)
    parts = [rows[1:4] for rows in stream.epochs(125, 4)]
    assert all((np.concatenate(column) == each).all() for column, each in zip(zip(*parts), whole))
    assert [int(column.max()) < size for column, size in zip(whole, (100, 100, 20))] == [True] * 3
    assert Counter(whole[2].tolist()).most_common(1)[0][0] == 0


@pytest.mark.lengthy
@pytest.mark.parametrize("size", [1, 2, 10, 97, 100])
def test_shuffled_numbers_are_all_there(size: int) -> None:
    assert sorted(tweets.shuffled(np.arange(size), size).tolist()) == list(range(size))
