"""The first and last values of each key are right for rows of any columns, as these come and go."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection, new_input
from tests.thorough import examples
from timely import Config, Worker, execute
from timely.lowlevel import typed

Record = tuple[Any, ...]
Records = Counter[Record]

LIMITS = [sign * (1 << bits) + more for bits in (5, 9, 10, 14, 20, 30, 31, 62) for sign in (1, -1) for more in (-1, 0)]
"""Integers around those that still fit into a word with others."""

MIDNIGHT = datetime.datetime(2026, 1, 1)

VALUES: dict[str, list[Any]] = {
    "int64": [0, 1, 2, *LIMITS],
    "bool": [False, True],
    "float64": [-float("inf"), -2.5, 0.0, 5e-324, 1e300, float("inf"), float("nan")],
    "timestamp[us]": [None, MIDNIGHT, MIDNIGHT - datetime.timedelta(days=40000), MIDNIGHT + datetime.timedelta(days=1)],
    "int64?": [None, -5, 0, 1 << 40],
    "decimal(38, 2)": [None, Decimal("-2.50"), Decimal("0.00"), Decimal("2.50"), Decimal(10) ** 30],
    "text": ["", "a", "a\0", "ab", "name 10", "name 1", "\U0001f600", "x" * 20],
    "text?": [None, "", "a", "b"],
}


def rank(value: Any) -> Any:
    """Return what values of a column order by: NaN comes after all numbers, and null last."""
    return (value is None, value != value, 0 if value is None or value != value else value)


def ranks(record: Record) -> list[Any]:
    return [rank(value) for value in record]


def named(record: Record) -> Record:
    """Return a record that equals its like, NaN or not."""
    return tuple(["nan" if value != value else value for value in record])


class Operator(NamedTuple):
    """What an operator does to a collection, and to the sorted values of one key."""

    of_collection: Callable[[Collection], Collection]
    of_values: Callable[[list[Record]], list[Record]]


OPERATORS = {
    "min": Operator(lambda c: c.min(), lambda values: values[:1]),
    "max": Operator(lambda c: c.max(), lambda values: values[-1:]),
    "three last": Operator(lambda c: c.top_k(3), lambda values: values[-3:]),
    "two first": Operator(lambda c: c.top_k(2, smallest=True), lambda values: values[:2]),
    "argmin": Operator(
        lambda c: c.argmin(lambda key, *values: values[-1]),
        lambda values: [min(values, key=lambda value: (rank(value[-1]), ranks(value)))],
    ),
    "argmax": Operator(
        lambda c: c.argmax(lambda key, *values: values[-1]),
        lambda values: [max(values, key=lambda value: (rank(value[-1]), ranks(value)))],
    ),
}


class History(NamedTuple):
    """The types of a record's columns after the key, records, and of each epoch how often some of them come or go.

    The worker waits for an epoch if it is `watched`.
    """

    types: list[str]
    records: list[Record]
    epochs: list[tuple[dict[int, int], bool]]


@st.composite
def histories(draw: st.DrawFn) -> History:
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=8))
    record = st.tuples(st.integers(0, 1), *(st.sampled_from(VALUES[each]) for each in types))
    records = draw(st.lists(record, min_size=1, max_size=12))
    present, epochs = [0] * len(records), []
    for _ in range(draw(st.integers(1, 6))):
        changes = draw(st.dictionaries(st.integers(0, len(records) - 1), st.integers(-2, 2), max_size=8))
        for place, diff in changes.items():
            changes[place] = max(diff, -present[place])
            present[place] += changes[place]
        epochs.append((changes, draw(st.booleans())))
    return History(types, records, epochs)


def meaning(operator: Operator, records: Records) -> Records:
    result: Records = Counter()
    for key in {record[0] for record in records}:
        values = sorted((record[1:] for record in records.elements() if record[0] == key), key=ranks)
        result.update((key, *named(value)) for value in operator.of_values(values))
    return result


def run(operator: Operator, history: History, config: Config) -> list[Records]:
    """Return the contents of the result after each watched epoch, and at the end."""

    def program(worker: Worker) -> list[Records]:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            output = operator.of_collection(collection).output()
        found = []
        for epoch, (changes, is_watched) in enumerate([*history.epochs, ({}, True)]):
            for place, diff in changes.items():
                if worker.index == 0 and diff != 0:
                    key, *values = history.records[place]
                    columns = [typed([value], each) for value, each in zip(values, history.types)]
                    session.update([key], *columns, diff=diff)
            session.advance_to(epoch + 1)
            if is_watched:
                worker.step_while(lambda reached=epoch + 1: output.less_than(reached))  # type: ignore[misc]
                found.append(Counter({named(record): n for record, n in Counter(output.contents()).items()}))
        session.close()
        worker.step_while(lambda: not output.done())
        return found

    return execute(program, config)[0]


@pytest.mark.parametrize("config", [Config(), Config(workers=3)], ids=["1", "3"])
@pytest.mark.parametrize("name", OPERATORS)
@settings(deadline=None, max_examples=examples(80))
@given(history=histories())
def test_the_first_and_last_values_are_right_after_every_epoch(name: str, history: History, config: Config) -> None:
    operator, records, answers = OPERATORS[name], Counter[Record](), []
    for changes, is_watched in [*history.epochs, ({}, True)]:
        for place, diff in changes.items():
            records[history.records[place]] += diff
        records = +records
        if is_watched:
            answers.append(meaning(operator, records))
    assert run(operator, history, config) == answers
