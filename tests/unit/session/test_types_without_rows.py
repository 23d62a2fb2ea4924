"""Aggregates and windows have the types of their columns before there are rows, and the same ones with rows."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from differential import Session
from differential.session import sessions, sliding, tumbling
from timely.errors import SessionError
from timely.lowlevel import typed

arrow = pytest.importorskip("pyarrow", reason="the extra `test` has it")

COLUMNS = {
    "int": [1, 2],
    "float": [1.0, 2.0],
    "bool": [True, False],
    "text": ["a", "b"],
    "text?": [None, "b"],
    "day": [dt.date(2020, 1, 1), dt.date(2020, 1, 2)],
    "wait": [dt.timedelta(1), dt.timedelta(2)],
    "uint64": typed([1, 2], "uint64"),
    "half": np.ones(2, np.float16),
    "single": np.ones(2, np.float32),
    "small": typed([Decimal("1.20"), Decimal("2.30")], "decimal(9, 2)"),
    "large": typed([Decimal("1.20"), Decimal("2.30")], "decimal(50, 2)"),
    "seconds": typed([dt.timedelta(1), dt.timedelta(2)], "duration[s]"),
    "nanoseconds": typed([dt.timedelta(1), dt.timedelta(2)], "duration[ns]"),
}
WITHOUT_SUM = ("text", "text?", "day")
AGGREGATES = [
    (aggregate, column)
    for column in COLUMNS
    for aggregate in (("min", "max") if column in WITHOUT_SUM else ("min", "max", "sum", "mean"))
]


def compare_types(definition: Callable[[Any], Any]) -> None:
    """Compare the types of a view and of a question without rows with those with rows."""
    with Session() as db:
        rows = db.table("rows", {"key": ["x", "x"], "at": [1, 2], **COLUMNS})
        db.table("others", {"key": ["x"], "weight": [0.5]})
        view = db.view("view", definition)
        db.commit()
        assert len(view)
        present = view.to_arrow().schema
        rows.delete(key="x")
        db.commit()
        assert len(view) == 0
        assert view.to_arrow().schema == db.ask(definition).to_arrow().schema == present


@pytest.mark.parametrize(("aggregate", "column"), AGGREGATES)
def test_aggregates(aggregate: str, column: str) -> None:
    compare_types(lambda t: getattr(t.rows.group_by("key"), aggregate)(column))


@pytest.mark.parametrize("aggregate", ["sum", "mean"])
@pytest.mark.parametrize("column", WITHOUT_SUM)
def test_a_column_without_a_sum_is_refused_before_there_are_rows(aggregate: str, column: str) -> None:
    with Session() as db:
        rows = db.table("rows", {"key": str, "text": str, "text?": str | None, "day": dt.date})
        message = re.escape(
            f"column {column!r} holds {column.replace('day', 'date')}, and a {aggregate} is one of numbers"
        )
        with pytest.raises(SessionError, match=rf"{aggregate} \(at .*\): {message}"):
            db.view("view", lambda t: getattr(t.rows.group_by("key"), aggregate)(column))
        with pytest.raises(SessionError, match=message):
            db.view("view", lambda t: t.rows.group_by().aggregate(n="count", s=(column, aggregate)))
        rows.insert([("x", "a", None, dt.date(2020, 1, 1))])
        assert db.commit() == 1


@pytest.mark.parametrize(
    "definition",
    [
        lambda t: t.rows.group_by("text", "key").count("rows"),
        lambda t: t.rows.group_by("text").count_distinct("day"),
        lambda t: t.rows.group_by().aggregate(rows="count", days=("day", "count_distinct"), least=("text", "min")),
        lambda t: t.rows.group_by("key").aggregate(a="count", b=("int", "mean"), c=("day", "max")),
        lambda t: t.rows.group_by("key").sum("int").named("name", "total"),
        lambda t: t.rows.group_by("key").count().join(t.rows.group_by("key").sum("half")),
        lambda t: t.rows.group_by("key").count().join(t.others, on="key"),
        lambda t: t.rows.window(tumbling(5), at="at").group_by("key").sum("float"),
        lambda t: t.rows.window(sliding(dt.timedelta(2), dt.timedelta(1)), at="day").count(),
        lambda t: t.rows.window(sessions(5), at="at").group_by("key").max("wait"),
        lambda t: t.rows.window(sessions(5), at="at").rows("key").select("window_end", "text?", start="window_start"),
    ],
)
def test_definitions(definition: Callable[[Any], Any]) -> None:
    compare_types(definition)


def test_a_column_of_unknown_type_does_not_get_that_of_another_column_of_this_name() -> None:
    with Session() as db:
        db.table("rows", {"key": int, "x": float})
        db.table("others", {"x": int, "y": bool}, key="x")

        def computed(t: Any) -> Any:
            return t.rows.select("key", x=lambda r: r.x * 2)

        def by_position(t: Any) -> Any:
            return computed(t).join(t.others)

        def by_name(t: Any) -> Any:
            return computed(t).join(t.others, on={"key": "x"})

        for definition in (by_position, by_name):
            types = db.ask(definition).to_arrow().schema
            assert types.field("x").type == arrow.null()
            assert types.field("y").type == arrow.bool_()
