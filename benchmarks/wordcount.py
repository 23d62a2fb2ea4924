"""Word count over a text file, epoch by epoch; the workers read epochs in turn.

All epochs have the same number of bytes, so about the same number of words. Each batch of words is counted where it is
read, and the counts are sent to the worker named by a hash of the word. Two halves of an epoch, read by two workers,
would have a quarter more different words to send. The frequencies of words follow Zipf's law. A worker reads `ahead`
epochs ahead of the counts: none to measure latency, and 16 to measure the rate, so that each worker is busy with an
epoch of its own. Workers that are *apart* show the cost of the exchange: each adds up what it reads, and they exchange
only progress. The rate is given by the clock and by the processor time of the first process, which other work on the
machine affects less.
"""

from __future__ import annotations

import tempfile
import time as clock
from collections import Counter
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.graphs import Ints, splitmix
from benchmarks.harness import Case, Figures, check
from benchmarks.words import count_words
from timely import Columns, Exchange, InputPort, OutputPort, Pipeline, Worker, execute, new_input
from timely.data.container import of_columns
from timely.data.text import WORD

RATE, EPOCH, CPU = "M words/s", "median ms an epoch", "M words by CPU time/s"
WORDS_PER_LINE = 10


def _case(
    name: str,
    words: int,
    epochs: int,
    processes: int,
    quick: bool,
    least: float | None,
    *,
    ahead: int = 16,
    apart: bool = False,
) -> Case:
    parameters = {"words": words, "distinct": 100_000, "epochs": epochs, "ahead": ahead, "apart": apart}
    limits = {} if least is None else {RATE: least}
    return Case(f"wordcount {name}", "wordcount", parameters, processes, quick=quick, limits=limits)


CASES = [
    _case("1M words", 1_000_000, 10, 1, True, 3.0),
    _case("1M words, 2 processes", 1_000_000, 10, 2, True, 5.1),
    _case("10M words", 10_000_000, 100, 1, False, 3.0),
    _case("10M words, 2 processes", 10_000_000, 100, 2, False, 5.1),
    _case("10M words, 2 processes apart", 10_000_000, 100, 2, False, None, apart=True),
    _case("1M words, 1000 an epoch", 1_000_000, 1000, 1, False, 1.0, ahead=0),
]


def measure(words: int, distinct: int, epochs: int, ahead: int, apart: bool = False) -> Figures:
    """Return the figures of counting `words` words, `distinct` of them different, read `ahead` epochs ahead.

    Workers that are `apart` do not exchange their counts.
    """
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "text"
        expected = write(path, words, distinct)
        return execute(lambda worker: _program(worker, path, words, epochs, ahead, apart, expected))[0]


def write(path: Path, words: int, distinct: int) -> Ints:
    """Write a text; return the number of occurrences of each word in it."""
    # Word r of `distinct`, from 1 on, has a probability proportional to 1 / r.
    shares = np.cumsum(1 / np.arange(1, distinct + 1))
    uniform = splitmix(np.arange(words)) / 2.0**64
    ranks = np.searchsorted(shares / shares[-1], uniform)
    with path.open("w") as file:
        for piece in np.array_split(ranks, max(1, words // 100_000)):
            spelled = [f"w{rank}" for rank in piece.tolist()]
            file.writelines(
                " ".join(spelled[start : start + WORDS_PER_LINE]) + "\n"
                for start in range(0, len(spelled), WORDS_PER_LINE)
            )
    return np.bincount(ranks, minlength=distinct)


def lines(data: mmap, part: int, parts: int) -> bytes:
    """Return the lines of a text that begin in one of `parts` equal parts of its bytes."""
    begin, end = (data.find(b"\n", max(len(data) * place // parts - 1, 0)) + 1 for place in (part, part + 1))
    return data[begin if part else 0 : end]


class Totals:
    """The occurrences of each word: sorted columns for words of up to eight bytes, as numbers, and a dict for others.

    Each word costs a search among numbers instead of a Python object.
    """

    def __init__(self) -> None:
        self._words = np.empty(0, np.uint64)
        self._counts = np.empty(0, np.int64)
        self._long: Counter[bytes] = Counter()

    def add(self, words: NDArray[np.bytes_], counts: Ints) -> None:
        """Add to the counts of different words."""
        if words.dtype.itemsize > WORD:
            is_long = np.strings.str_len(words) > WORD
            for word, count in zip(words[is_long].tolist(), counts[is_long].tolist()):
                self._long[word] += count
            words, counts = words[~is_long], counts[~is_long]
        numbers = words.astype(f"S{WORD}").view(np.uint64)
        if not len(self._words):
            order = np.argsort(numbers)
            self._words, self._counts = numbers[order], counts[order]
            return
        places = np.searchsorted(self._words, numbers)
        is_known = self._words[np.minimum(places, len(self._words) - 1)] == numbers
        self._counts[places[is_known]] += counts[is_known]
        new = np.flatnonzero(~is_known)
        if len(new):
            new = new[np.argsort(numbers[new])]
            self._words = np.insert(self._words, places[new], numbers[new])
            self._counts = np.insert(self._counts, places[new], counts[new])

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Yield each word and its count."""
        yield from zip(self._words.view(f"S{WORD}").tolist(), self._counts.tolist())
        yield from self._long.items()


def _program(worker: Worker, path: Path, words: int, epochs: int, ahead: int, apart: bool, expected: Ints) -> Figures:
    totals = Totals()

    def count(input: InputPort, output: OutputPort) -> None:
        for _, batch in input.drain():
            totals.add(*of_columns(batch))

    with worker.dataflow("wordcount") as scope:
        text, parts = new_input(scope, name="text")
        pact = Pipeline() if apart else Exchange(lambda word, _: word)
        probe = parts.unary(pact, count, name="count").probe()
        ended, sums = new_input(scope, name="sums")
        found: list[tuple[int, int]] = []
        sums.broadcast().inspect(found.append)

    seconds, begun, busy = [], clock.perf_counter(), clock.process_time()
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        text.advance_to(min(worker.index, epochs))
        for epoch in range(worker.index, epochs, worker.peers):
            since = clock.perf_counter()
            text.send_batch(Columns(count_words(lines(data, epoch, epochs))))
            text.advance_to(min(epoch + worker.peers, epochs))
            worker.step_while(lambda: probe.less_than(text.epoch - ahead))
            seconds.append(clock.perf_counter() - since)
        worker.step_while(lambda: probe.less_than(text.epoch))
    passed, busy = clock.perf_counter() - begun, clock.process_time() - busy
    text.close()
    counted = dict(totals.items())
    ended.send(len(counted), sum(counted.values()))
    ended.close()
    while worker.step_or_park():
        pass
    check(sum(number for _, number in found) == words, "words are missing or were counted twice")
    if not apart:
        right = all(expected[int(word[1:])] == number for word, number in counted.items())
        check(right, "a word was counted wrongly")
        different = sum(different for different, _ in found)
        check(different == np.count_nonzero(expected), "words are missing, or counted on two workers")
    latency = {} if ahead else {EPOCH: 1e3 * float(np.median(seconds))}
    return {RATE: 1e-6 * words / passed, **latency, CPU: 1e-6 * words / busy}
