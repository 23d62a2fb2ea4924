"""One case: an operator, a function that misbehaves or columns in odd forms, and the permitted outcomes.

A case is drawn from its number alone. It runs a small program of a few epochs, in which other operators read the same
collection, as a stream and as an arrangement. Whatever the function does, the answers are those of plain Python, or
the run ends with an error of this library that names the line; and it ends.
"""

from __future__ import annotations

import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import FrameType
from typing import Any

import numpy as np

import timely
from differential import new_input
from tests.fuzz.hostile import columns as forms
from tests.fuzz.hostile.functions import HOSTILE, Around, Hostility, Verdict
from tests.fuzz.hostile.targets import TARGETS, Records, Target
from timely import Config, Worker, execute
from timely.errors import OperatorError, TimelyError

SECONDS = 20
EPOCHS = 3


class Fault(AssertionError):
    """A case has an outcome that no case may have."""


@dataclass
class Case:
    """The choices drawn from a number."""

    number: int
    target: Target
    hostility: Hostility
    workers: int
    epochs: list[list[tuple[int, int]]]
    removals: list[list[tuple[int, int]]]
    form: forms.Form
    random: Random = field(repr=False)

    def __str__(self) -> str:
        removed = sum(map(len, self.removals))
        return (
            f"{self.target.name}, whose function {self.hostility.name!r}; input {self.form.__name__}, {self.workers} "
            f"worker(s), epochs {self.epochs}, {removed} removed"
        )

    @classmethod
    def drawn(cls, number: int) -> Case:
        """Return the case of a number."""
        random = Random(number)
        target, hostility = random.choice(TARGETS), random.choice(HOSTILE)
        epochs = [[_pair(random) for _ in range(random.choice((0, 1, 1, 2, 7)))] for _ in range(EPOCHS)]
        epochs[0] = epochs[0] or [_pair(random)]
        removals: list[list[tuple[int, int]]] = [[]]
        there: Counter[tuple[int, int]] = Counter()
        for epoch in range(1, EPOCHS):
            there.update(epochs[epoch - 1])
            gone = [] if target.on_streams else [pair for pair in there.elements() if random.random() < 0.3]
            there.subtract(gone)
            removals.append(gone)
        workers = random.choice((1, 1, 1, 1, 2))
        form = random.choice(forms.EXACT) if random.random() < 0.5 else forms.plain
        return cls(number, target, hostility, workers, epochs, removals, form, random)

    @property
    def records(self) -> Records:
        """The contents of the collection in the end."""
        total: Records = Counter(pair for epoch in self.epochs for pair in epoch)
        total.subtract(pair for epoch in self.removals for pair in epoch)
        return +total

    @property
    def verdict(self) -> Verdict:
        """The permitted outcomes."""
        hostility, target = self.hostility, self.target
        if hostility.sizes and (target.any_length or target.no_result):
            return Verdict.EITHER
        if hostility.returns and target.no_result:
            return Verdict.RIGHT
        if self.form is forms.Lazy and target.on_streams:
            return Verdict.EITHER  # one value that is not a scalar
        return hostility.verdict

    def run(self) -> str:
        """Return the outcome, `right` or `refused`; raise `Fault` if it is neither, or is not permitted."""
        called: list[None] = []
        found: list[Found] = []

        def program(worker: Worker) -> None:
            found.append((_stream_program if self.target.on_streams else _collection_program)(self, worker, called))

        try:
            with _within(SECONDS), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                execute(program, Config(workers=self.workers))
        except TimelyError as error:
            outcome = Verdict.REFUSED
            self._check_error(error)
        except Exception as error:
            raise Fault(f"{self}: an error that is none of ours: {type(error).__name__}: {error}") from error
        else:
            outcome = Verdict.RIGHT
            self._check_answers(found)
        if called and self.verdict not in (outcome, Verdict.EITHER):
            raise Fault(f"{self}: it is {outcome.value} and ought to be {self.verdict.value}")
        return outcome.value

    def _check_error(self, error: TimelyError) -> None:
        if isinstance(error, OperatorError) and "hostile/" not in str(error):
            raise Fault(f"{self}: no line of the program is named: {error}") from error
        if self.verdict is Verdict.RIGHT:
            raise Fault(f"{self}: refused: {error}") from error

    def _check_answers(self, found: list[Found]) -> None:
        records, meaning = self.records, self.target.meaning
        parts = [Counter(epoch) for epoch in self.epochs] if self.target.each_time else [records]
        expected = +sum(map(meaning, parts), Counter()), records, +Counter(key for key, _ in records.elements())
        answers = tuple(sum(shares, Counter()) for shares in zip(*found))
        for what, ours, theirs in zip(("the operator", "a sibling", "a sibling's index"), answers, expected):
            if self.target.on_streams and what == "a sibling's index":
                continue
            if ours != theirs:
                raise Fault(f"{self}: {what} has {dict(ours)}, not {dict(theirs)}")


Found = tuple[Records, Records, Counter[int]]


def _collection_program(case: Case, worker: Worker, called: list[None]) -> Found:
    with worker.dataflow() as scope:
        session, collection = new_input(scope)
        reading: list[Any] = []
        around = Around(case.random, worker, session, _Later(reading))
        hostile = _counted(case.hostility.disguise(case.target.benign, around), called)
        result = case.target.build(collection, hostile).output()
        sibling = collection.map(lambda key, value: (key, value)).output()
        index = collection.count().output()
        reading.append(sibling)
    for epoch, (new, gone) in enumerate(zip(case.epochs, case.removals)):
        for pairs, change in ((new, session.insert), (gone, session.remove)):
            if pairs and worker.index == 0:
                _changed_by_columns(case, pairs, change)
        session.advance_to(epoch + 1)
        worker.step_while(lambda epoch=epoch: index.less_than(epoch + 1))  # type: ignore[misc]
    session.close()
    worker.step_while(lambda: not (result.done() and sibling.done() and index.done()))
    counts = Counter(dict(index.contents().keys()))
    return Counter(result.contents()), Counter(sibling.contents()), counts


def _stream_program(case: Case, worker: Worker, called: list[None]) -> Found:
    made: Records = Counter()
    seen: Records = Counter()
    with worker.dataflow() as scope:
        session, stream = timely.new_input(scope, name="numbers")
        around = Around(case.random, worker, session, _Later([]))
        hostile = _counted(case.hostility.disguise(case.target.benign, around), called)
        result = case.target.build(stream, hostile).inspect(lambda record: made.update([record])).probe()
        sibling = stream.map(lambda key, value: (key, value)).inspect(lambda record: seen.update([record])).probe()
    for epoch, new in enumerate(case.epochs):
        if new and worker.index == 0:
            _changed_by_columns(case, new, session.send)
        session.advance_to(epoch + 1)
        worker.step_while(lambda epoch=epoch: sibling.less_than(epoch + 1))  # type: ignore[misc]
    session.close()
    worker.step_while(lambda: not (result.done() and sibling.done()))
    return made, seen, Counter()


def _changed_by_columns(case: Case, pairs: list[tuple[int, int]], change: Callable[..., Any]) -> None:
    """Make a change by columns in the case's form, and write to the columns afterwards."""
    columns = [case.form([pair[place] for pair in pairs]) for place in range(2)]
    change(*columns)
    for column in columns:
        if isinstance(column, np.ndarray) and column.flags.writeable:
            np.asarray(column)[:] = 99
        elif isinstance(column, list):
            column[:] = [99] * len(column)


def _counted(function: Callable[..., Any], called: list[None]) -> Callable[..., Any]:
    def counted(*arguments: Any) -> Any:
        called.append(None)
        return function(*arguments)

    return counted


class _Later:
    """A placeholder for what is not built yet."""

    def __init__(self, made: list[Any]) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made[0], name)


def _pair(random: Random) -> tuple[int, int]:
    return random.randrange(5), random.randrange(5)


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    """Raise `Fault` in the main thread if it takes longer."""

    def late(signum: int, frame: FrameType | None) -> None:
        raise Fault(f"it has not ended after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
