"""What programs compute: each answer as a collection, and as plain Python on the changes of all epochs up to a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from differential import Collection
from differential.durable import State, stateful
from timely.lowlevel import destinations, hash_columns

INPUTS = ("left", "right", "grow", "more")
"""The inputs. Of the last two nothing is removed."""

Record = tuple[int, ...]
Contents = dict[Record, int]
Epochs = Mapping[str, Mapping[int, Sequence[tuple[Record, int]]]]
"""The changes of each epoch of each input."""


ADDED = 7
"""What records have in the third column if they are older than this."""


def changes(seed: int, name: str, epoch: int, width: int) -> list[tuple[Record, int]]:
    """Return the changes of an epoch of an input, which are the same in every run, with two or three columns."""
    random = Random(f"{seed} {name} {epoch}")
    signs = [1] if name in ("grow", "more") else [1, -1]
    records = [(random.randrange(3), random.randrange(3)) for _ in range(random.randrange(4))]
    made = [(record, random.choice(signs)) for record in dict.fromkeys(records)]
    return made if width == 2 else [((*record, random.randrange(3)), diff) for record, diff in made]


class Touched:
    """For each first column, the number of epochs that have changes of it: not a function of the contents."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def update(self, time: int, columns: tuple[Any, ...], diffs: Any) -> Any:
        made: list[tuple[int, int, int]] = []
        for key in sorted(set(columns[0].tolist())):
            before = self.counts.get(key, 0)
            self.counts[key] = before + 1
            made += [(key, before, -1)] * bool(before) + [(key, before + 1, 1)]
        key, count, diff = np.array(made, np.int64).reshape(-1, 3).T
        return (key, count), diff

    def snapshot(self) -> dict[str, Any]:
        return {"counts": np.array(sorted(self.counts.items()), np.int64).reshape(-1, 2)}

    def restore(self, states: Sequence[Any], index: int, peers: int) -> Any:
        rows = np.concatenate([state["counts"] for state in states])
        mine = rows[destinations(hash_columns((rows[:, 0],)), peers) == index]
        self.counts = dict(mine.tolist())
        return (mine[:, 0], mine[:, 1]), np.ones(len(mine), np.int64)


class Answer(NamedTuple):
    """An answer: the inputs that it needs, how a program computes it, and what it is at a time.

    `define` receives the state, the inputs by name, and the number of epochs between snapshots; `evaluate` the changes,
    a time, and the time at which its operator with private state began.
    """

    inputs: tuple[str, ...]
    define: Callable[[State, dict[str, Collection], int], Collection]
    evaluate: Callable[[Epochs, int, int], Contents]
    snapshot: str | None = None
    is_whole: bool = False
    """Whether it has all columns of its inputs, not the first two."""


def contents(epochs: Epochs, name: str, time: int, width: int = 2) -> Counter[Record]:
    """Return what an input has at a time, in its first columns."""
    total: Counter[Record] = Counter()
    for epoch, made in epochs[name].items():
        if epoch <= time:
            for record, diff in made:
                total[record[:width]] += diff
    return total


def nonzero(total: Mapping[Record, int]) -> Contents:
    return {record: diff for record, diff in total.items() if diff}


def together(*names: str) -> Answer:
    def evaluate(epochs: Epochs, time: int, _: int) -> Contents:
        total: Counter[Record] = Counter()
        for name in names:
            for record, diff in contents(epochs, name, time).items():
                total[record] += diff
        return nonzero(total)

    def define(_: State, inputs: dict[str, Collection], __: int) -> Collection:
        collection = inputs[names[0]]
        for name in names[1:]:
            collection = collection.concat(inputs[name])
        return collection

    return Answer(names, define, evaluate)


def doubled(*names: str) -> Answer:
    """Return the answer of a program that has changed: each record occurs twice as often."""
    once = together(*names)

    def define(state: State, inputs: dict[str, Collection], every: int) -> Collection:
        collection = once.define(state, inputs, every)
        return collection.concat(collection)

    def evaluate(epochs: Epochs, time: int, start: int) -> Contents:
        return {record: 2 * diff for record, diff in once.evaluate(epochs, time, start).items()}

    return Answer(names, define, evaluate)


def counted(epochs: Epochs, time: int, _: int) -> Contents:
    total: Counter[int] = Counter()
    for (key, _), diff in contents(epochs, "grow", time).items():
        total[key] += diff
    return dict.fromkeys(total.items(), 1)


def joined(epochs: Epochs, time: int, _: int) -> Contents:
    total: Counter[Record] = Counter()
    for (key, one), diff in contents(epochs, "left", time).items():
        for (other, two), times in contents(epochs, "right", time).items():
            if key == other:
                total[key, one, two] += diff * times
    return nonzero(total)


def reached(epochs: Epochs, time: int, _: int) -> Contents:
    edges = {*contents(epochs, "grow", time), *contents(epochs, "more", time)}
    found = {source for source, _ in edges if source == 0}
    while more := {target for source, target in edges if source in found} - found:
        found |= more
    return {(node,): 1 for node in found}


def reach(_: State, inputs: dict[str, Collection], __: int) -> Collection:
    edges = inputs["grow"].concat(inputs["more"])
    roots = edges.filter(lambda source, _: source == 0).map(lambda source, _: source).distinct()
    return roots.iterate(lambda inner: inner.join_map(edges, lambda _, target: target).concat(roots).distinct())


def touched(*names: str) -> Answer:
    snapshot = "-".join(("touched", *names))

    def evaluate(epochs: Epochs, time: int, start: int) -> Contents:
        found = {
            (max(epoch, start), record[0])
            for name in names
            for epoch, made in epochs[name].items()
            for record, _ in made
        }
        counts = Counter(key for epoch, key in found if epoch <= time)
        return dict.fromkeys(counts.items(), 1)

    def define(state: State, inputs: dict[str, Collection], every: int) -> Collection:
        collection = together(*names).define(state, inputs, every)
        return stateful(collection, Touched, state.shard(snapshot), every=every)

    return Answer(names, define, evaluate, snapshot)


ANSWERS: dict[str, Answer] = {
    "a-left": together("left"),
    "a-grow": together("grow"),
    "b-both": together("left", "right"),
    "counted": Answer(("grow",), lambda _, inputs, __: inputs["grow"].map(lambda key, _: key).count(), counted),
    "joined": Answer(("left", "right"), lambda _, inputs, __: inputs["left"].join(inputs["right"]), joined),
    "reached": Answer(("grow", "more"), reach, reached),
    "z-touched": touched("grow"),
    "z-touched-too": touched("more", "grow"),
}
WHOLE = "whole"
ANSWERS[WHOLE] = Answer(
    ("right",),
    lambda _, inputs, __: inputs["right"],
    lambda epochs, time, _: nonzero(contents(epochs, "right", time, 3)),
    is_whole=True,
)
CHANGED = {"a-left": doubled("left"), "b-both": doubled("left", "right")}
"""What some of them are after the program has changed; they are corrected at the first time that is not final."""
