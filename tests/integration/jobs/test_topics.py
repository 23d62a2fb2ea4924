"""The job `topics` answers each query as of its epoch."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from differential import Collection, example
from tests.examples_loading import example_module
from tests.integration.jobs.programs import answered, drawn, epochs, on_two_processes, refused, table
from tests.integration.jobs.tweeting import Tweet, write_tweets
from timely import Config, Scope, execute

topics = example_module("topics")
report = example_module("topics_report")
tweets = example_module("tweets")


def test_hashtags_may_be_millions() -> None:
    def program(scope: Scope) -> Collection:
        used = Collection.of(scope, np.ones(3, np.int64), np.ones(3, np.int64), np.array([9_000_000, 9_000_000, 7]))
        return topics.top_hashtags(used, Collection.of(scope, 1, 1))  # type: ignore[no-any-return]

    assert example(program) == [((1, 9_000_000), 1)]


@pytest.mark.parametrize("workers", [1, 3])
def test_queries_are_answered_as_of_the_epoch_they_were_asked_at(workers: int) -> None:
    # Of so many users not all are connected by the end, so answers differ whenever a worker comes to ask.
    stream, size, stale = tweets.Tweets(5000, 40), 6, 4
    plan = topics.Plan(stream, size, 0.01, 16, stale)
    programs = execute(lambda worker: topics.Program(worker, plan).run(), Config(workers=workers))
    first = programs[0]
    for series in (first.stale, first.fresh):
        assert set(series.tags) == set(series.epochs) == set(series.seconds) == set(range(11))
        for number, epoch in series.epochs.items():
            author, mentioned, tag = (column.tolist() for column in stream.batch(0, size * min(epoch + 1, plan.epochs)))
            connected = nx.node_connected_component(nx.Graph(zip(author, mentioned)), plan.user(number))
            uses = Counter(tag for user, tag in zip(author, tag) if user in connected)
            assert series.tags[number] == max(uses, key=lambda tag: (uses[tag], -tag))
    # A worker that is kept waiting asks many at once, and each stale one takes an epoch of its own.
    assert first.stale.epochs[0] < first.fresh.epochs[0]
    assert all(first.stale.epochs[number] <= epoch for number, epoch in first.fresh.epochs.items())
    assert len(set(first.fresh.tags.values())) > 1
    report.check(plan, first)
    first.fresh.tags[3] += 1
    with pytest.raises(report.CheckError, match="fresh query 3 has the hashtag number"):
        report.check(plan, first)


def top(posted: list[Tweet], user: str) -> str:
    """Return the hashtag of the most tweets of a user's component; of several, that which was numbered first."""
    graph = nx.Graph([(tweet.author, each) for tweet in posted for each in [*tweet.mentions, tweet.author]])
    connected = nx.node_connected_component(graph, user)
    order = list(dict.fromkeys(tag for tweet in posted for tag in tweet.tags))
    uses = Counter(tag for tweet in posted if tweet.author in connected for tag in tweet.tags)
    return min(uses, key=lambda tag: (-uses[tag], order.index(tag)), default="")


@pytest.mark.parametrize("workers", [1, 2])
def test_tweets_of_a_file_are_asked_about(tmp_path: Path, workers: int) -> None:
    posted = write_tweets(tmp_path / "tweets", 1, 80, users=40, tags=9)
    answer, changes = tmp_path / "answer.csv", tmp_path / "changes"
    given = ["--tweets", tmp_path / "tweets", "--rate", "200", "--epoch", "20", "--stale", "0.1", "--check"]
    output = answered("topics", *given, "--csv", answer, "--changes", changes, workers=workers)
    assert output.startswith("80 tweets, 14 queries of each kind\n")
    rows = table(answer)
    assert len(rows) == 14
    for _, user, *answers in rows:
        for epoch, tag in (answers[:2], answers[3:5]):
            assert tag == top(posted[: 4 * (int(epoch) + 1)], user)
    assert last(changes) == top_of_components(posted)


def last(changes: Path) -> set[tuple[str, ...]]:
    """Return the records after all changes."""
    found = epochs(changes)
    return found[max(found)]


def top_of_components(posted: list[Tweet]) -> set[tuple[str, ...]]:
    """Return (component, top hashtag) of all components in which somebody uses a hashtag."""
    numbers = {name: number for number, name in enumerate(names(posted))}
    graph = nx.Graph([(tweet.author, each) for tweet in posted for each in [*tweet.mentions, tweet.author]])
    parts = nx.connected_components(graph)
    found = {(str(min(numbers[user] for user in part)), top(posted, next(iter(part)))) for part in parts}
    return {record for record in found if record[1]}


def names(posted: list[Tweet]) -> list[str]:
    """Return the users in the order of their appearance."""
    return list(dict.fromkeys(name for tweet in posted for name in [tweet.author, *tweet.mentions]))


@pytest.mark.lengthy
def test_two_processes_answer(tmp_path: Path) -> None:
    given = "--users", "50", "--rate", "400", "--seconds", "0.6", "--epoch", "50", "--stale", "0.1"
    ended = on_two_processes("topics", *given, "--json", tmp_path / "report.json", "--check")
    assert ended.status == 0, ended.error
    found = json.loads((tmp_path / "report.json").read_text())
    assert (found["tweets"], found["queries"], found["job"]) == (240, 9, "topics")
    assert found["latency_ms"]["stale"].keys() == {"median", "p95", "p99"}


def test_a_file_that_is_too_short_is_refused(tmp_path: Path) -> None:
    write_tweets(tmp_path / "tweets", 1, 20)
    assert "has 20 tweets, which end 0 s after the start" in refused("topics", "--tweets", tmp_path / "tweets")


@pytest.mark.lengthy
@pytest.mark.parametrize("is_read_from", ["standard input", "a file"])
def test_two_processes_answer_about_tweets_that_one_reads(tmp_path: Path, is_read_from: str) -> None:
    posted = write_tweets(tmp_path / "tweets", 1, 80, users=40, tags=9)
    text = (tmp_path / "tweets").read_text()
    answer, changes = tmp_path / "answer.csv", tmp_path / "changes"
    source: str | Path = "-" if is_read_from == "standard input" else tmp_path / "tweets"
    given = ["--tweets", source, "--rate", "200", "--epoch", "20", "--stale", "0.1", "--check", "--csv", answer]
    ended = on_two_processes("topics", *given, "--changes", changes, input=text, workers=2)
    assert ended.status == 0, ended.error
    assert ended.output.startswith("80 tweets, 14 queries of each kind\n")
    assert "the answer from scratch is the same" in ended.output
    rows = table(answer)
    assert len(rows) == 14
    for _, user, *answers in rows:
        for epoch, tag in (answers[:2], answers[3:5]):
            assert tag == top(posted[: 4 * (int(epoch) + 1)], user)
    assert last(changes) == top_of_components(posted)


def test_two_processes_name_what_is_wrong_with_tweets() -> None:
    ended = on_two_processes("topics", "--tweets", "-", input="1\tada\t#a\n")
    assert ended.status == 1
    assert ended.error.startswith("[0] topics: standard input has 1 tweet, which end 0 s after the start")


@pytest.mark.lengthy
def test_the_picture_has_axes(tmp_path: Path) -> None:
    given = "--users", "50", "--rate", "400", "--seconds", "0.6", "--epoch", "50", "--stale", "0.1"
    assert drawn("topics", tmp_path / "picture.svg", *given).count('<g id="axes_') == 1
