"""Word count over a text file, epoch by epoch: each worker reads its share of an epoch's lines.

Words of a batch are counted where they are read, then the counts go to the worker that a hash of the word names. The
words' frequencies follow Zipf's law.
"""

from __future__ import annotations

import tempfile
import time as clock
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graphs import Ints, splitmix
from benchmarks.harness import Case, Figures, Reference, check
from timely import Columns, Exchange, InputPort, OutputPort, Worker, execute
from timely.container import records

RATE, EPOCH = "M words/s", "median ms an epoch"
WORDS_PER_LINE = 10


def _case(name: str, words: int, epochs: int, processes: int, quick: bool, reference: float, target: float) -> Case:
    parameters = {"words": words, "distinct": 100_000, "epochs": epochs}
    references = {RATE: Reference.of(reference, target)}
    return Case(f"wordcount {name}", "wordcount", parameters, processes, quick=quick, references=references)


CASES = [
    _case("1M words", 1_000_000, 10, 1, True, 2.35, 3 / 2.35),
    _case("1M words, 2 processes", 1_000_000, 10, 2, True, 2.9, 1.7 * 3 / 2.9),
    _case("10M words", 10_000_000, 100, 1, False, 2.35, 3 / 2.35),
    _case("10M words, 2 processes", 10_000_000, 100, 2, False, 2.9, 1.7 * 3 / 2.9),
    _case("1M words, 1000 an epoch", 1_000_000, 1000, 1, False, 0.05, 20),
]


def measure(words: int, distinct: int, epochs: int) -> Figures:
    """Return the figures of counting so many words of so many different ones."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "text"
        expected = write(path, words, distinct)
        return execute(lambda worker: _program(worker, path, words, epochs, expected))[0]


def write(path: Path, words: int, distinct: int) -> Ints:
    """Write a text; return how often each word occurs in it."""
    # Word r of `distinct`, from 1 on, has a probability in proportion to 1 / r.
    shares = np.cumsum(1 / np.arange(1, distinct + 1))
    uniform = splitmix(np.arange(words)) / 2.0**64
    ranks = np.searchsorted(shares / shares[-1], uniform)
    with path.open("w") as file:
        for line in np.array_split(ranks, max(1, words // 100_000)):
            spelled = [f"w{rank}" for rank in line.tolist()]
            file.writelines(
                " ".join(spelled[start : start + WORDS_PER_LINE]) + "\n"
                for start in range(0, len(spelled), WORDS_PER_LINE)
            )
    return np.bincount(ranks, minlength=distinct)


def _combined(batch: Any) -> Columns:
    """Return the different words of a batch, and how often each occurs."""
    counts = Counter(batch)
    return Columns((np.array(list(counts)), np.fromiter(counts.values(), np.int64, len(counts))))


def _program(worker: Worker, path: Path, words: int, epochs: int, expected: Ints) -> Figures:
    totals: Counter[str] = Counter()

    def count(input: InputPort, output: OutputPort) -> None:
        for _, batch in input.drain():
            for word, number in records(batch):
                totals[word] += number

    with worker.dataflow("wordcount") as scope:
        text, parts = scope.new_input("text")
        probe = parts.unary(Exchange(lambda word, _: word), count, name="count").probe()
        ended, sums = scope.new_input("sums")
        found: list[tuple[int, int]] = []
        sums.broadcast().inspect(found.append)

    lines = words // WORDS_PER_LINE // epochs
    seconds = []
    with path.open() as file:
        for epoch in range(epochs):
            begun = clock.perf_counter()
            mine = [line for number, line in zip(range(lines), file) if number % worker.peers == worker.index]
            text.send_batch(_combined("".join(mine).split()))
            text.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(text.epoch))
            seconds.append(clock.perf_counter() - begun)
    text.close()
    ended.send(len(totals), sum(totals.values()))
    ended.close()
    while worker.step_or_park():
        pass
    check(all(expected[int(word[1:])] == number for word, number in totals.items()), "a word was counted wrongly")
    check(sum(different for different, _ in found) == np.count_nonzero(expected), "words are missing, or in two places")
    return {RATE: 1e-6 * words / sum(seconds), EPOCH: 1e3 * float(np.median(seconds))}
