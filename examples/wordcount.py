"""Count the words of a text, with timely alone: an exchange brings equal words together, a frontier reports completion.

    timely run -n 2 examples/wordcount.py README.md

An epoch is a part of the text of `--lines` lines. The workers take its lines in turn, and each word is counted by the
worker named by its hash. The counts of an epoch are emitted once the frontier has passed the epoch, that is, once no
worker can send words of it any more. Until then the operator holds a capability, the right to send at that epoch. Words
are Python objects in lists here; columns of numbers are many times faster. `docs/operators.md` explains how to write
such an operator.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import cast

from options import at_least

from timely import Capability, Exchange, Gather, InputPort, OutputPort, Stream, Time, Worker, execute, fail, new_input
from timely.errors import DataError


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


def program(worker: Worker, lines: list[str], size: int) -> dict[str, int]:
    """Count the words of all lines; return, on worker 0, each word's count."""
    result: dict[str, int] = {}

    def keep(input: InputPort) -> None:
        for _, batch in input:
            result.update(cast(list[tuple[str, int]], batch))

    with worker.dataflow("wordcount") as scope:
        text, words = new_input(scope, name="words")
        counts = count_words(words)
        counts.sink(Gather(0), keep, name="keep")
        probe = counts.probe()

    for epoch, start in enumerate(range(0, len(lines), size)):
        mine = lines[start + worker.index : start + size : worker.peers]
        text.send_batch([word for line in mine for word in re.findall(r"\w+", line.lower())])
        text.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(text.epoch))
    text.close()
    while worker.step_or_park():
        pass
    return result


def lines_of(path: Path) -> list[str]:
    """Return the lines of a text. Raises `DataError` if the file cannot be read or is not text."""
    try:
        data = path.read_bytes()
        return data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {data.count(10, 0, error.start) + 1}: not UTF-8 text") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def main() -> int:
    """Run the program on the given file; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--lines", type=at_least(1), default=1000, help="lines in an epoch (default 1000)")
    options = parser.parse_args()
    try:
        lines = lines_of(options.file)
    except DataError as error:
        return fail(f"wordcount: {error}")
    counts, *_ = execute(lambda worker: program(worker, lines, options.lines))
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]:
        print(f"{count:8,}  {word}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
