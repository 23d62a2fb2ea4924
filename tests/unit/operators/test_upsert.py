"""Tests of upsert inputs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from differential import UpsertSession, new_upsert_input
from timely import Worker, execute_directly
from timely.errors import BuildError, DataError
from timely.lowlevel import typed


def changes_of(statements: Callable[[UpsertSession], None], keys: int = 1) -> list[object]:
    """Return the changes due to upserts in the first epoch, which hold from the second on."""

    def program(worker: Worker) -> list[object]:
        with worker.dataflow() as scope:
            session, collection = new_upsert_input(scope, keys=keys)
            output = collection.output()
        session.advance_to(1)
        statements(session)
        session.close()
        worker.step_while(lambda: not output.done())
        return [*output.changes()]

    return execute_directly(program)


def test_the_last_upsert_of_an_epoch_holds_within_columns_too() -> None:
    def statements(session: UpsertSession) -> None:
        session.set(1, 5)
        session.set(np.array([1, 2, 1]), np.array([6, 7, 8]))
        session.unset(2)

    assert changes_of(statements) == [((1, 8), (1,), 1)]


def test_the_last_upsert_holds_even_if_a_session_stays_at_its_time() -> None:
    def statements(session: UpsertSession) -> None:
        session.set(1, 5)
        session.set(1, 6)
        session.advance_to(1)
        session.set(1, 7)

    assert changes_of(statements) == [((1, 7), (1,), 1)]


def test_repeating_an_upsert_changes_nothing() -> None:
    def statements(session: UpsertSession) -> None:
        for epoch in range(2, 6):
            session.set("a", 0.5)
            session.advance_to(epoch)

    assert changes_of(statements) == [(("a", 0.5), (1,), 1)]


def test_a_key_may_be_present_without_a_value() -> None:
    def statements(session: UpsertSession) -> None:
        session.set(1, 2)
        session.set(3, 4)
        session.advance_to(7)
        session.unset(np.array([1, 5]), np.array([2, 5]))

    assert changes_of(statements, keys=2) == [((1, 2), (1,), 1), ((3, 4), (1,), 1), ((1, 2), (7,), -1)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (lambda session: session.unset(1, 2), "keys without values"),
        (lambda session: session.set(), "0 field"),
        (lambda session: session.set((1, 2), 7), r"^\(1, 2\) is a tuple beside 7: a record is given field by field"),
        (lambda session: session.set(7, (1, 2)), r"^\(1, 2\) is a tuple beside 7: a record is given field by field"),
        (lambda session: session.set((1, 2), "ab"), r"^\(1, 2\) is a tuple beside 'ab': a record is"),
        (lambda session: session.set((1, 2), dt.date(2026, 1, 1)), r"^\(1, 2\) is a tuple beside datetime.date"),
        (lambda session: (session.set("tea", 3), session.unset(5)), "always of one kind"),
        (lambda session: (session.unset(5), session.set("tea", 3)), "always of one kind"),
    ],
)
def test_an_upsert_of_another_form_is_refused(statement: Callable[[UpsertSession], None], message: str) -> None:
    with pytest.raises(DataError, match=message):
        changes_of(statement)


def test_a_value_that_stays_nan_does_not_change() -> None:
    def statements(session: UpsertSession) -> None:
        session.set(1, float("nan"))
        session.advance_to(3)
        session.set(1, -float("nan"))
        session.advance_to(4)
        session.set(1, 2.5)

    assert changes_of(statements) == [((1, np.nan), (1,), 1), ((1, 2.5), (4,), 1), ((1, np.nan), (4,), -1)]


def test_times_of_two_coordinates_are_refused() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow(outer=2) as scope:
            new_upsert_input(scope)

    with pytest.raises(BuildError, match="totally ordered"):
        execute_directly(program)


DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
MOMENTS = [dt.datetime(2026, 1, 1, 12), dt.datetime(2026, 1, 2)]
KEYS: list[Any] = [
    DAYS,
    MOMENTS,
    [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS],
    [dt.timedelta(1), dt.timedelta(2)],
    ["a", "b"],
    [b"a", b"b"],
    [0.5, 1.5],
    [True, False],
    np.array(["2026-01-01", "2026-01-02"], "M8[ns]"),
    typed([Decimal("1.10"), Decimal("2.20")], "decimal(18, 2)"),
    typed([7, None], "int64?"),
    typed([None, "a"], "text?"),
]


@pytest.mark.parametrize("keys", KEYS, ids=repr)
def test_keys_of_every_type_are_set_and_unset_column_by_column(keys: Any) -> None:
    def statements(session: UpsertSession) -> None:
        session.set(keys, [1, 2])
        session.set(keys, [3, 4])
        session.unset(keys[:1])
        session.set(keys[:0], [])

    _, other = keys
    assert changes_of(statements) == [((other, 4), (1,), 1)]


@pytest.mark.parametrize("keys", KEYS[:8], ids=repr)
def test_keys_of_every_type_are_set_and_unset_one_by_one(keys: Any) -> None:
    one, other = keys

    def statements(session: UpsertSession) -> None:
        session.set(one, 1)
        session.set(other, 2)
        session.set(one, 3)
        session.set(other, 4)
        session.unset(one)

    assert changes_of(statements) == [((other, 4), (1,), 1)]
