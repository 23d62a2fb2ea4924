"""The job `window` has the components of the mentions in its window, at every slide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from tests.examples_loading import example_module
from tests.integration.jobs.programs import answered, as_text, drawn, epochs, on_two_processes, table
from tests.integration.jobs.tweeting import write_tweets
from timely import Config, execute

tweets = example_module("tweets")
window = example_module("window")

KINDS = pytest.mark.parametrize("kind", ["weak", "strong"])


def sizes(mentions: Iterable[tuple[Any, Any]], kind: str) -> Counter[int]:
    """Return the number of components of each size."""
    graph = nx.DiGraph(mentions)
    if kind == "weak":
        return Counter(map(len, nx.weakly_connected_components(graph)))
    return Counter(len(part) for part in nx.strongly_connected_components(graph) if len(part) > 1)


@pytest.mark.lengthy
@KINDS
@pytest.mark.parametrize("workers", [1, 3])
def test_components_of_a_window_are_those_of_its_mentions(kind: str, workers: int) -> None:
    stream, rate, length = tweets.Tweets(40, 1), 4, 5
    results = execute(lambda worker: window.program(worker, stream, kind, rate, length, 6), Config(workers=workers))
    for slide, found in enumerate(results[0][0].sizes, start=1):
        assert found == sizes(zip(*map(list, stream.batch(slide * rate, length * rate)[:2])), kind)
    assert len(results[0][0].sizes) == 6
    assert sum(sum(found.differences) for found, _ in results) > 50


@pytest.mark.lengthy
@KINDS
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_file_slides_by_the_times_of_its_tweets(tmp_path: Path, kind: str, workers: int) -> None:
    posted = write_tweets(tmp_path / "tweets", workers, 60, users=12, gap=4)
    changes, answer = tmp_path / "changes", tmp_path / "answer.csv"
    given = ["--tweets", tmp_path / "tweets", "--window", "3", "--changes", changes, "--csv", answer, "--check"]
    answered("window", *given, *(["--strong"] if kind == "strong" else []), workers=workers)

    def expected(second: int) -> set[tuple[str, ...]]:
        recent = [tweet for tweet in posted if second - 3 < tweet.time <= second]
        return as_text(sizes([(tweet.author, each) for tweet in recent for each in tweet.mentions], kind).items())

    found, now = epochs(changes), set()
    for second in range(posted[0].time, posted[-1].time + 1):
        now = found.get(second, now)
        assert now == expected(second), second
    assert set(table(answer)) == now
    assert set(found) <= set(range(posted[0].time, posted[-1].time + 1))


@pytest.mark.lengthy
def test_two_processes_answer_as_one_does(tmp_path: Path) -> None:
    given = "--users", "60", "--rate", "10", "--window", "5", "--slides", "8"
    answered("window", *given, "--csv", tmp_path / "one.csv")
    ended = on_two_processes("window", *given, "--csv", tmp_path / "two.csv", "--check")
    assert ended.status == 0, ended.error
    assert "8 slides; 80 tweets" in ended.output
    stream = tweets.Tweets(60, 1)
    last = as_text(sizes(zip(*map(list, stream.batch(80, 50)[:2])), "weak").items())
    assert set(table(tmp_path / "two.csv")) == set(table(tmp_path / "one.csv")) == last


@pytest.mark.lengthy
def test_a_file_without_tweets_has_no_components(tmp_path: Path) -> None:
    (tmp_path / "tweets").write_text("# nothing\n")
    assert answered("window", "--tweets", tmp_path / "tweets", "--check").startswith("no components\n0 slides;")


@pytest.mark.lengthy
def test_fewer_slides_can_be_taken(tmp_path: Path) -> None:
    write_tweets(tmp_path / "tweets", 1, 60)
    assert "\n4 slides;" in answered("window", "--tweets", tmp_path / "tweets", "--slides", "4", "--check")


@pytest.mark.lengthy
def test_a_difference_from_scratch_is_reported() -> None:
    with pytest.raises(window.CheckError, match="at second 7 there are 2 components of 3 users, not 1"):
        window.check({3: 1, 4: 1}, {3: 2, 4: 1}, 7)


@pytest.mark.lengthy
def test_the_picture_has_axes(tmp_path: Path) -> None:
    given = "--users", "60", "--rate", "10", "--window", "5", "--slides", "8"
    assert drawn("window", tmp_path / "picture.svg", *given).count('<g id="axes_') == 3
