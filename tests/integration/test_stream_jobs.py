"""The jobs on streams of tweets are right, by brute force."""

from __future__ import annotations

from collections import Counter, defaultdict

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.examples_loading import example_module
from tests.oracle.grid import Update, contents, on_workers, run
from timely import Config, execute

k_exposure = example_module("k_exposure")
sliding_window = example_module("sliding_window")
top_hashtag = example_module("top_hashtag")
tweets = example_module("tweets")

USERS, TAGS = st.integers(0, 4), st.integers(0, 2)


def exposures(follows: set[tuple[int, int]], tagged: list[tuple[int, int, int]]) -> Counter[tuple[int, int]]:
    """Return how many users first used a hashtag after k exposures, given (epoch, author, hashtag)."""
    first: dict[tuple[int, int], int] = {}
    for epoch, author, tag in sorted(tagged):
        first.setdefault((author, tag), epoch)
    followed = defaultdict(set)
    for follower, other in follows:
        followed[follower].add(other)
    return Counter(
        (tag, sum(first.get((other, tag), epoch) < epoch for other in followed[author]))
        for (author, tag), epoch in first.items()
    )


@settings(max_examples=25, deadline=None)
@given(
    st.sets(st.tuples(USERS, USERS)),
    st.lists(st.tuples(st.integers(1, 4), USERS, TAGS), max_size=25),
    st.integers(1, 3),
)
def test_exposures_are_those_of_the_definition(
    follows: set[tuple[int, int]], tagged: list[tuple[int, int, int]], workers: int
) -> None:
    graph: list[Update] = [(pair, (0,), 1) for pair in sorted(follows)]
    uses: list[Update] = [((author, tag), (epoch,), 1) for epoch, author, tag in tagged]
    changes = run(k_exposure.exposures, graph, uses, workers=workers)
    for epoch in range(5):
        assert contents(changes, (epoch,)) == exposures(follows, [each for each in tagged if each[0] <= epoch])


@on_workers
def test_the_exposure_job_is_right_on_generated_tweets(workers: int) -> None:
    stream = tweets.Tweets(30, 6)
    results = execute(lambda worker: k_exposure.program(worker, stream, 4, 3, 50), Config(workers=workers))
    tagged = [(epoch, *pair) for epoch in range(3) for pair in zip(*map(list, stream.batch(50 * epoch, 50)[::2]))]
    expected: Counter[int] = Counter()
    for (_, k), number in exposures(set(zip(*map(list, stream.follows(4)))), tagged).items():
        expected[k] += number
    assert results[0][0] == expected
    assert len(expected) > 2
    assert len(results[0][1].latencies) == 3


@on_workers
@pytest.mark.parametrize("algorithm", ["weak", "strong"])
def test_components_of_a_window_are_those_of_its_mentions(algorithm: str, workers: int) -> None:
    stream, rate, window = tweets.Tweets(40, 1), 4, 5
    results = execute(
        lambda worker: sliding_window.program(worker, stream, algorithm, rate, window, 6), Config(workers=workers)
    )
    for slide, sizes in enumerate(results[0][0].sizes, start=1):
        graph = nx.DiGraph(zip(*map(list, stream.batch(slide * rate, window * rate)[:2])))
        if algorithm == "weak":
            parts = nx.weakly_connected_components(graph)
        else:
            parts = (part for part in nx.strongly_connected_components(graph) if len(part) > 1)
        assert sizes == Counter(map(len, parts))
    assert sum(sum(found.differences) for found, _ in results) > 50


@on_workers
def test_queries_are_answered_as_of_the_epoch_at_which_they_were_asked(workers: int) -> None:
    # With this many users not all are connected by the end, so the answers differ from one epoch to another.
    stream, size, stale = tweets.Tweets(5000, 40), 6, 4
    plan = top_hashtag.Plan(stream, size, 0.01, 16, stale)
    programs = execute(lambda worker: top_hashtag.Program(worker, plan).run(), Config(workers=workers))
    first = programs[0]
    for series in (first.stale, first.fresh):
        assert set(series.tags) == set(series.epochs) == set(series.seconds) == set(range(11))
        for number, epoch in series.epochs.items():
            author, mentioned, tag = (column.tolist() for column in stream.batch(0, size * min(epoch + 1, plan.epochs)))
            connected = nx.node_connected_component(nx.Graph(zip(author, mentioned)), plan.user(number))
            uses = Counter(tag for user, tag in zip(author, tag) if user in connected)
            assert series.tags[number] == max(uses, key=lambda tag: (uses[tag], -tag))
    # A delayed worker asks many queries at once, and each stale one takes an epoch of its own.
    assert first.stale.epochs[0] < first.fresh.epochs[0]
    assert all(first.stale.epochs[number] <= epoch for number, epoch in first.fresh.epochs.items())
    assert len(set(first.fresh.tags.values())) > 1
    assert [row.count("\t") for row in first.rows()] == [2] * 11


def test_generated_tweets_are_the_same_however_they_are_requested() -> None:
    stream = tweets.Tweets(100, 20)
    whole = stream.batch(0, 500)
    parts = [stream.batch(start, 125) for start in range(0, 500, 125)]
    assert all((np.concatenate(column) == each).all() for column, each in zip(zip(*parts), whole))
    assert [int(column.max()) < size for column, size in zip(whole, (100, 100, 20))] == [True] * 3
    assert np.bincount(whole[2]).argmax() == 0


@pytest.mark.parametrize("size", [1, 2, 10, 97, 100])
def test_shuffled_numbers_are_all_there(size: int) -> None:
    assert sorted(tweets.shuffled(np.arange(size), size).tolist()) == list(range(size))
