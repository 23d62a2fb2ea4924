"""Who talks with whom? Components of the mentions in a window that slides every second.

    python examples/window.py --users 100000 --rate 1000 --plot window.svg
    timely run -n 2 examples/window.py --strong

Each epoch is one second of the tweets' time. A mention is in the graph for `--window` seconds (`Collection.window`), so
at each slide the mentions of one second enter and those of another leave. The answers are the number and the sizes of
the weakly connected components or, with `--strong`, of the strongly connected components of more than one user. Only
what a slide affects is computed again. The output shows the latency of slides and their differences: the rows added to
indexes, inside loops too.

Generated tweets first fill a window, which is not measured. A file of tweets is measured from its first second, and
slides once for each second in which there are tweets.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pace import Pace
from tweets import Rows, TweetFile, Tweets, add_arguments, stream_of

from differential import new_input
from differential.extra import needed_for
from differential.graphs import strongly_connected_components, weakly_connected_components
from differential.jobs import at_least, counted
from differential.jobs.command_line import add_output, options_from, parser_of
from differential.jobs.gathered import Gathered
from differential.jobs.outputs import Outputs, Result, reporting
from differential.jobs.picture import BLUE, ORANGE, beside, latency_panels, nothing
from differential.jobs.status import CheckError, status_of
from differential.trace.events import BatchInserted
from timely import Worker, execute

EPILOG = """\
The answer has a record (users, components) for each size of a component.

examples:
  {program} --strong --rate 1000 --check
  {program} --tweets tweets.tsv.gz --window 3600 --plot window.svg
  {program} --tweets - --changes - < tweets.tsv
  timely run -n 2 {script} --users 1000000   (two processes)
"""

ALGORITHMS = {"weak": weakly_connected_components, "strong": strongly_connected_components}

Sizes = dict[int, int]
"""The number of components of each size."""


@dataclass
class Slides:
    """The results of each slide: on worker 0 its second and the sizes, on all workers the differences."""

    seconds: list[int] = field(default_factory=list)
    sizes: list[Sizes] = field(default_factory=list)
    differences: list[int] = field(default_factory=list)


class Program:
    """The part of one worker: the dataflow, and the seconds fed into it."""

    def __init__(self, worker: Worker, algorithm: str, window: int) -> None:
        self.found = Slides()
        self.pace = Pace()
        self._worker = worker
        self._rows = 0
        self._first: int | None = None
        worker.log.listen(self._count, BatchInserted)
        with worker.dataflow("sliding window") as scope:
            self._session, mentions = new_input(scope, name="mentions")
            labels = ALGORITHMS[algorithm](mentions.window(window))
            self.answer = Gathered(labels.map(lambda user, label: label).count().map(lambda label, size: size).count())

    def slide(self, rows: Rows, index: int = 0, peers: int = 1, is_measured: bool = True) -> None:
        """Insert this worker's share of the mentions of a second; wait until its answer is final if it is measured."""
        second = int(rows.time[0])
        self._first = second if self._first is None else self._first
        if not is_measured:
            return self._send(rows, index, peers)
        self._finish()
        self._rows = 0
        with self.pace.epoch(rows.tweets):
            self._send(rows, index, peers)
            self._finish()
        self.found.seconds.append(second)
        self.found.differences.append(self._rows)
        return None

    @property
    def epoch(self) -> int:
        """The epoch before which everything was sent."""
        return self._session.epoch

    def label(self, epoch: int) -> int:
        """Return the second that an epoch stands for."""
        return epoch + (self._first or 0)

    def close(self) -> None:
        """Close the input, and step until all workers have done so."""
        self._session.close()
        self._worker.step_while(lambda: not self.answer.is_done)

    def _send(self, rows: Rows, index: int, peers: int) -> None:
        author, mentioned = rows.mentions()
        epoch = int(rows.time[0]) - (self._first or 0)
        self._session.advance_to(epoch)
        self._session.insert(author[index::peers], mentioned[index::peers])
        self._session.advance_to(epoch + 1)

    def _finish(self) -> None:
        self._worker.step_while(lambda: self.answer.less_than(self._session.epoch))

    def _count(self, events: Sequence[Any]) -> None:
        self._rows += sum(event.rows for event in events)


def program(worker: Worker, tweets: Tweets, algorithm: str, rate: int, window: int, slides: int) -> tuple[Slides, Pace]:
    """Fill a window, then slide it that many times; return the results of the slides, and their pace."""
    running = Program(worker, algorithm, window)
    sizes: Sizes = {}
    for number, rows in enumerate(tweets.seconds(rate, window + slides)):
        running.slide(rows, worker.index, worker.peers, number >= window)
        if number >= window:
            sizes = added(sizes, running)
            running.found.sizes.append(sizes)
    running.close()
    return running.found, running.pace


def added(sizes: Sizes, running: Program, outputs: Outputs | None = None) -> Sizes:
    """Return, on worker 0, the sizes after all changes since the last call, which are written to the outputs."""
    changed = Counter(sizes)
    for delta in running.answer.deltas(running.epoch):
        size, number = (column.tolist() for column in delta.columns)
        for each, count, diff in zip(size, number, delta.diffs.tolist()):
            changed[each] += count * diff
        if outputs is not None:
            outputs.change(running.label(delta.epoch), list(zip(size, number)), delta.diffs.tolist())
    return {size: number for size, number in sorted(changed.items()) if number}


def from_scratch(mentions: Sequence[Rows], algorithm: str) -> Sizes:
    """Return the sizes of the components of mentions, computed by SciPy."""
    with needed_for("--check"):
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components
    ends = [np.concatenate(column) for column in zip(*(rows.mentions() for rows in mentions))]
    nodes, place = np.unique(np.concatenate(ends), return_inverse=True)
    if not len(nodes):
        return {}
    source, target = place.reshape(2, -1)
    graph = coo_array((np.ones(len(source), np.int8), (source, target)), shape=(len(nodes),) * 2).tocsr()
    _, labels = connected_components(graph, connection=algorithm)
    size, number = np.unique(np.bincount(labels), return_counts=True)
    return {each: many for each, many in zip(size.tolist(), number.tolist()) if each > (algorithm == "strong")}


def run(worker: Worker, options: argparse.Namespace) -> None:
    """Follow the tweets on one worker; worker 0 prints and writes the answer."""
    tweets, is_first = stream_of(options), worker.index == 0
    is_alone, algorithm = tweets.is_alone, "strong" if options.strong else "weak"
    filling = 0 if is_alone else options.window
    recent: deque[Rows] = deque()
    sizes: Sizes = {}
    with reporting("window", worker, options) as (outputs, display):
        running = Program(worker, algorithm, options.window)
        slides = 200 if options.slides is None and not is_alone else options.slides
        source = tweets.seconds(options.rate, None if slides is None else slides + filling)
        display.begin("sliding", slides)
        share = (0, 1) if is_alone else (worker.index, worker.peers)
        for number, rows in enumerate(source if is_first or not is_alone else ()):
            running.slide(rows, *share, number >= filling)
            if not is_first:
                continue
            recent.append(rows)
            while recent[0].time[0] <= rows.time[0] - options.window:
                recent.popleft()
            if number >= filling:
                sizes = added(sizes, running, outputs)
                running.found.sizes.append(sizes)
                display.advance(number - filling, number - filling, "slides")
                if options.check:
                    check(sizes, from_scratch(recent, algorithm), int(rows.time[0]))
        running.close()
        differences = total_of(worker, running.found.differences)
        if is_first:
            outputs.finish(result(tweets, running, differences))


def total_of(worker: Worker, differences: Sequence[int]) -> list[int]:
    """Return, on worker 0, the differences of each slide on all workers, which a dataflow of its own adds up."""
    with worker.dataflow("differences") as scope:
        session, counts = new_input(scope)
        total = counts.sum().output()
    if differences:
        session.insert(np.arange(len(differences)), np.array(differences))
    session.close()
    worker.step_while(lambda: not total.done())
    return [count for _, count in sorted(total.contents())]


def check(found: Sizes, expected: Sizes, second: int) -> None:
    """Raise CheckError if the sizes differ from those computed from scratch."""
    for size in sorted(found.keys() | expected.keys()):
        if found.get(size) != expected.get(size):
            right, wrong = expected.get(size, 0), found.get(size, 0)
            raise CheckError(f"at second {second} there are {right} components of {size} users, not {wrong}")


def described(sizes: Sizes) -> str:
    """Return a short text about the components."""
    if not sizes:
        return "no components"
    return f"{counted(sum(sizes.values()), 'component')}, the largest of {max(sizes):,} users"


def result(tweets: Tweets | TweetFile, running: Program, differences: Sequence[int]) -> Result:
    """Return what is printed, written and drawn."""
    found, pace = running.found, running.pace
    sizes = found.sizes[-1] if found.sizes else {}
    typical = float(np.median(differences)) if differences else 0.0
    lines = [
        described(sizes),
        f"{counted(len(pace.latencies), 'slide')}; {pace.summary('tweets')}",
        f"differences of a slide: median {typical:,.0f}",
    ]
    figures: dict[str, Any] = {"components": sum(sizes.values()), "largest": max(sizes, default=0)}
    figures |= {"tweets": pace.items, "median_differences": typical, **pace.figures()}

    def time_line(axes: Any) -> None:
        if not found.sizes:
            return nothing(axes, "Components in the window")
        numbers = [sum(each.values()) for each in found.sizes]
        largest = [max(each, default=0) for each in found.sizes]
        for values, colour, text in ((numbers, BLUE, "components"), (largest, ORANGE, "users in\nthe largest")):
            axes.plot(found.seconds, values, color=colour, linewidth=1.5)
            beside(axes, values[-1], text, colour)
        axes.set_ylim(bottom=0)
        axes.set(title="Components in the window", xlabel="time (s)", ylabel="number")
        return None

    panels: list[Callable[[Any], None]] = [time_line]
    if len(pace.latencies) > 1:
        panels += latency_panels(pace.milliseconds(), "slide")
    title = f"{tweets.label}: {counted(pace.items, 'tweet')}"
    return Result(lines, figures, ("users", "components"), list(sizes.items()), title, panels)


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = parser_of(str(__doc__), EPILOG)
    add = parser.add_argument
    add("--strong", action="store_true", help="strongly connected components instead of weakly connected ones")
    window = "seconds for which a mention counts (default 60)"
    add("--window", type=at_least(1), default=60, metavar="SECONDS", help=window)
    slides = "stop after N slides (default 200 after the first window, or all seconds of a file)"
    add("--slides", type=at_least(1), metavar="N", help=slides)
    add("--check", action="store_true", help="compute the answer of each slide from scratch with SciPy, and compare")
    group: Callable[..., Any] = add_arguments(parser, users=10_000, tags=None)
    group("--rate", type=at_least(1), default=100, metavar="N", help="generated tweets in a second (default 100)")
    add_output(
        parser,
        plot="draw the components over time, and the latencies of slides (.svg, .png, .pdf)",
    )
    return options_from(parser, arguments)


def main() -> int:
    """Run the program with the options of the command line; return the exit status."""
    options = options_of()
    return status_of("window", lambda: execute(lambda worker: run(worker, options)))


if __name__ == "__main__":
    sys.exit(main())
