"""What the job `topics` checks, prints, writes and draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from topics_plan import Plan
from tweets import NONE

from differential.extra import needed_for
from differential.jobs import counted
from differential.jobs.outputs import Outputs, Result
from differential.jobs.picture import BLUE, ORANGE, beside, nothing
from differential.jobs.status import CheckError

if TYPE_CHECKING:
    from topics import Program


def from_scratch(plan: Plan, user: int, epoch: int) -> int | None:
    """Return the top hashtag of a user's component after an epoch, computed by SciPy; None if it has no hashtag."""
    with needed_for("--check"):
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components
    author, mentioned, tag = plan.tweets.batch(0, plan.size * min(epoch + 1, plan.epochs))
    nodes, place = np.unique(np.concatenate([author, mentioned]), return_inverse=True)
    source, target = place.reshape(2, -1)
    graph = coo_array((np.ones(len(source), np.int8), (source, target)), shape=(len(nodes),) * 2).tocsr()
    _, labels = connected_components(graph, connection="weak")
    is_used = (tag != NONE) & (labels[source] == labels[np.searchsorted(nodes, user)])
    uses: Counter[int] = Counter(tag[is_used].tolist())
    return max(uses, key=lambda tag: (uses[tag], -tag), default=None)


def check(plan: Plan, program: Program) -> None:
    """Raise CheckError if an answer differs from the one computed from scratch."""
    for name, series in (("stale", program.stale), ("fresh", program.fresh)):
        for number, epoch in series.epochs.items():
            found, expected = series.tags.get(number), from_scratch(plan, plan.user(number), epoch)
            if found != expected:
                raise CheckError(f"{name} query {number} has the hashtag number {found}; from scratch it is {expected}")


def emit(outputs: Outputs, plan: Plan, program: Program, end: int) -> None:
    """Write how the top hashtags changed in the epochs before `end`, as far as they are final."""
    assert program.top is not None
    while end and program.top.less_than(end):
        end -= 1
    for delta in program.top.deltas(end):
        component, tag = (column.tolist() for column in delta.columns)
        outputs.change(
            delta.epoch, [(each, plan.stream.hashtag(tag)) for each, tag in zip(component, tag)], delta.diffs.tolist()
        )


HEADER = ("second", "user", "stale_epoch", "stale_hashtag", "stale_ms", "fresh_epoch", "fresh_hashtag", "fresh_ms")
TEXTS = ("stale_hashtag", "fresh_hashtag")


def records(plan: Plan, program: Program) -> Iterator[tuple[Any, ...]]:
    """Yield the second of each query, its user, and the epoch, hashtag and milliseconds of both answers.

    Hashtag and milliseconds are None if there was no answer, since nobody in the user's component used a hashtag.
    """
    for number in sorted(program.stale.epochs):
        answers: list[Any] = []
        for series in (program.stale, program.fresh):
            tag, seconds = series.tags.get(number), series.seconds.get(number)
            answers += [series.epochs[number], None if tag is None else plan.stream.hashtag(tag)]
            answers.append(None if seconds is None else round(1e3 * seconds, 3))
        yield round(plan.due(number), 3), plan.stream.user(plan.user(number)), *answers


def result(plan: Plan, program: Program) -> Result:
    """Return what is printed, written and drawn."""
    rows = [*records(plan, program)]
    total = plan.epochs * plan.size
    lines = [f"{counted(total, 'tweet')}, {counted(len(rows), 'query', 'queries')} of each kind", program.described()]
    names = ("median", "p95", "p99")
    series = {"stale": program.stale, "fresh": program.fresh}
    latency = {name: dict(zip(names, (round(ms, 4) for ms in each.percentiles()))) for name, each in series.items()}

    def latencies(axes: Any) -> None:
        title = "Latency of queries while tweets arrive"
        if not rows:
            return nothing(axes, title)
        for place, colour, text in ((4, ORANGE, "stale"), (7, BLUE, "fresh")):
            answered = [row for row in rows if row[place] is not None]
            if not answered:
                continue
            seconds, values = [row[0] for row in answered], np.array([row[place] for row in answered])
            axes.plot(seconds, values, linestyle="none", marker=".", markersize=4, color=colour, alpha=0.7)
            middle = float(np.median(values))
            beside(axes, middle, f"{text}:\nmedian\n{middle:.1f} ms", colour)
        axes.set_yscale("log")
        axes.set(title=title, xlabel="time of the query (s)", ylabel="latency (ms)")
        return None

    title = f"{plan.stream.label}: {counted(total, 'tweet')}"
    figures = {"tweets": total, "queries": len(rows), "latency_ms": latency}
    return Result(lines, figures, HEADER, rows, title, [latencies], shape=(6.4, 4.0), texts=TEXTS)
