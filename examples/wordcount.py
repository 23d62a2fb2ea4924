"""Count the words of texts, with an operator of its own over timely alone.

    timely run -n 2 examples/wordcount.py README.md
    tail -f /var/log/syslog | python examples/wordcount.py - --follow --changes -

An epoch is a part of the text of `--lines` lines. An exchange brings equal words together, on the worker named by their
hash. The counts of an epoch are emitted once the frontier has passed the epoch, that is, once no worker can send words
of it any more. Until then the operator holds a capability, the right to send at that epoch. Words are Python objects in
lists here; columns of numbers are many times faster. `docs/operators.md` explains how to write such an operator.

Words are letters, digits and underscores, in lower case. Without `--follow` the workers take the lines of files in
turn; worker 0 reads standard input, pipes, and what is followed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time as clock
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, cast

import numpy as np
from pace import Pace

from differential.jobs import at_least, counted
from differential.jobs.access import label_of
from differential.jobs.command_line import add_output, options_from, parser_of
from differential.jobs.interrupt import Interrupt
from differential.jobs.lines import TextLine, followed, is_for_one_worker, lines
from differential.jobs.outputs import Result, reporting
from differential.jobs.picture import latency_panels, nothing, points
from differential.jobs.status import CheckError, status_of
from timely import Capability, Exchange, Gather, InputPort, OutputPort, Stream, Time, Worker, execute, new_input

EPILOG = """\
examples:
  {program} README.md --top 20 --check
  {program} book.txt.gz notes.txt --csv counts.csv --plot words.svg
  {program} events.log --follow --top 3     (until Ctrl-C)
  timely run -n 2 {script} README.md   (two processes)
"""

WAIT = 0.05
"""Seconds between two looks at texts that are followed."""


def count_words(words: Stream) -> Stream:
    """Return (word, number of occurrences so far) for each word of an epoch, when the epoch is complete."""

    def constructor(capability: Capability) -> Callable[[InputPort, OutputPort], None]:
        capability.drop()
        epochs: dict[Time, tuple[Capability, Counter[str]]] = {}
        total: Counter[str] = Counter()

        def logic(input: InputPort, output: OutputPort) -> None:
            for right, batch in input:
                if right.time not in epochs:
                    epochs[right.time] = right.retain(), Counter()
                epochs[right.time][1].update(cast(list[str], batch))
            for time in sorted(epochs):
                if not input.frontier.less_equal(time):
                    held, counts = epochs.pop(time)
                    total.update(counts)
                    with held:
                        output.give(held, [(word, total[word]) for word in counts])

        return logic

    return words.unary_frontier(Exchange(), constructor, name="count_words")


def words_of(text: str) -> list[str]:
    """Return the words of a text."""
    return re.findall(r"\w+", text.lower())


class Program:
    """The part of one worker: the dataflow, and the lines that it reads. Worker 0 receives the counts."""

    def __init__(self, worker: Worker) -> None:
        self.counts: dict[str, int] = {}
        self.pace = Pace()
        self.lines = 0
        self._worker = worker
        self._new: list[tuple[str, int]] = []
        with worker.dataflow("wordcount") as scope:
            self._text, words = new_input(scope, name="words")
            counts = count_words(words)
            counts.sink(Gather(0), self._keep, name="keep")
            self._probe = counts.probe()

    def take(self, texts: list[str], mine: list[str]) -> list[tuple[str, int, int]]:
        """Complete an epoch of these lines, of which this worker sends its own; return the changed counts.

        Each is a word, its count before and its count now. Only worker 0 receives any.
        """
        with self.pace.epoch(len(texts)):
            self._text.send_batch([word for text in mine for word in words_of(text)])
            self._text.advance_to(self._text.epoch + 1)
            self._worker.step_while(lambda: self._probe.less_than(self._text.epoch))
        self.lines += len(texts)
        new, self._new = self._new, []
        changed = [(word, self.counts.get(word, 0), count) for word, count in sorted(new)]
        self.counts.update(new)
        return changed

    def wait(self) -> None:
        """Step while no line arrives."""
        self._worker.step()
        clock.sleep(WAIT)

    def finish(self) -> None:
        """Close the input, and step until all workers have done so."""
        self._text.close()
        while self._worker.step_or_park():
            pass

    def _keep(self, input: InputPort) -> None:
        for _, batch in input:
            self._new += cast(list[tuple[str, int]], batch)


def epochs(texts: Iterable[TextLine | None], size: int, wait: Callable[[], None]) -> Iterator[list[str]]:
    """Yield epochs of up to `size` lines: what has arrived, if no more lines arrive at once."""
    epoch: list[str] = []
    for line in texts:
        if line is not None:
            epoch.append(line.text)
        if epoch and (line is None or len(epoch) == size):
            yield epoch
            epoch = []
        elif line is None:
            wait()
    if epoch:
        yield epoch


def count(worker: Worker, options: argparse.Namespace, interrupt: Interrupt) -> None:
    """Count the words of all texts on one worker; worker 0 prints and writes the answer."""
    is_first, files = worker.index == 0, options.files
    is_alone = options.follow or any(map(is_for_one_worker, files))
    program, total = Program(worker), Counter[str]()
    texts: Iterable[TextLine | None] = ()
    if is_first or not is_alone:
        texts = followed(files, interrupt.has_come) if options.follow else chain.from_iterable(map(lines, files))
    with reporting("wordcount", worker, options) as (outputs, display):
        display.begin("counting", None)
        interrupt.expect()
        for number, epoch in enumerate(epochs(texts, options.lines, program.wait)):
            mine = epoch if is_alone else epoch[worker.index :: worker.peers]
            changed = program.take(epoch, mine)
            display.advance(program.lines, program.lines, "lines")
            if is_first:
                records = [
                    (word, each) for word, before, now in changed for each in ([before] if before else []) + [now]
                ]
                diffs = [diff for _, before, _ in changed for diff in ([-1] if before else []) + [1]]
                outputs.change(number, records, diffs)
                if options.check:
                    total.update(word for text in epoch for word in words_of(text))
                if options.follow and not outputs.has_changes:
                    outputs.print(f"after {counted(program.lines, 'line')}: {ranking(program.counts, options.top)}")
        program.finish()
        if is_first:
            if options.check:
                check(program.counts, total)
            outputs.finish(result(program, options))


def check(found: Mapping[str, int], expected: Mapping[str, int]) -> None:
    """Raise CheckError if a count differs from the one computed from scratch."""
    for word in sorted(found.keys() | expected.keys()):
        if found.get(word) != expected.get(word):
            raise CheckError(f"{word!r} occurs {expected.get(word, 0)} times, not {found.get(word, 0)}")


def ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return words and their counts, the most frequent first; ties in the order of words."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def ranking(counts: Mapping[str, int], top: int) -> str:
    """Return the most frequent words as a short text."""
    return ", ".join(f"{word} {number:,}" for word, number in islice(ranked(counts), top))


def result(program: Program, options: argparse.Namespace) -> Result:
    """Return what is printed, written and drawn."""
    every = ranked(program.counts)
    total = sum(program.counts.values())
    shown = [f"{number:8,}  {word}" for word, number in every[: options.top]]
    summary = f"{counted(total, 'word')}, {len(every):,} of them distinct, in {counted(program.lines, 'line')}"
    figures = {"lines": program.lines, "words": total, "distinct": len(every), **program.pace.figures()}

    def ranks(axes: Any) -> None:
        if not every:
            return nothing(axes, "Frequency of words")
        points(axes, np.arange(1, len(every) + 1), np.array([number for _, number in every]))
        axes.set(title="Frequency of words", xlabel="rank of the word", ylabel="occurrences")
        return None

    latency = latency_panels(program.pace.milliseconds(), "epoch") if len(program.pace.latencies) > 1 else []
    name = label_of(options.files[0]) if len(options.files) == 1 else f"{len(options.files)} texts"
    title = f"{name}: {counted(total, 'word')}"
    return Result([*shown, summary], figures, ("word", "occurrences"), every, title, [ranks, *latency], texts=("word",))


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = parser_of(str(__doc__), EPILOG)
    add = parser.add_argument
    add("files", metavar="FILE", nargs="+", help="a text, also compressed (.gz, .zst, .bz2); '-' is standard input")
    add("--top", type=at_least(0), default=10, metavar="N", help="print the N most frequent words (default 10)")
    add("--lines", type=at_least(1), default=1000, metavar="N", help="lines in an epoch (default 1000)")
    add(
        "--follow",
        action="store_true",
        help="wait for more lines at the end of files, until Ctrl-C; an epoch then ends when no more lines arrive",
    )
    add(
        "--check", action="store_true", help="compute the last answer from scratch in plain Python, and compare the two"
    )
    add_output(parser, plot="draw the frequencies, and the latencies of epochs (.svg, .png, .pdf)")
    options = options_from(parser, arguments)
    if options.files.count("-") > 1:
        parser.error("standard input can be read only once")
    return options


def main() -> int:
    """Run the program with the options of the command line; return the exit status."""
    options = options_of()

    def body() -> None:
        with Interrupt(options.follow) as interrupt:
            execute(lambda worker: count(worker, options, interrupt))

    return status_of("wordcount", body)


if __name__ == "__main__":
    sys.exit(main())
