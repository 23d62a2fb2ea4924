"""A condition that no row could ever satisfy is an error, not an empty view."""

import datetime as dt
import operator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from differential import Session
from differential.frames import typed
from differential.session.checked import checked
from timely import rowwise
from timely.errors import ComparisonError, SessionError

COLUMNS: dict[str, Any] = {
    "whole": [1, 30],
    "share": [0.5, 30.0],
    "is_new": [True, False],
    "name": ["a", "30"],
    "code": [b"a", b"30"],
    "day": [dt.date(2026, 3, 1)] * 2,
    "at": [dt.datetime(2026, 3, 1, 12)] * 2,
    "took": [dt.timedelta(3)] * 2,
    "price": typed([Decimal("1.5"), None], "decimal(18, 2)"),
    "number": typed([1, None], "int64?"),
    "label": typed(["a", None], "text?"),
}
"""Columns of each kind."""

LIKE = {
    "numbers": ({"whole", "share", "is_new", "price", "number"}, [30, 0.5, True, Decimal("1.5"), np.int64(1)]),
    "text": ({"name", "label"}, ["30", np.str_("a")]),
    "bytes": ({"code"}, [b"30"]),
    "dates and timestamps": ({"day", "at"}, [dt.date(2026, 3, 1), dt.datetime(2026, 3, 1, 12)]),
    "durations and times of day": ({"took"}, [dt.timedelta(3)]),
}
"""For each kind, its columns, and values that are compared with them."""

KINDS = {name: kind for kind, (names, _) in LIKE.items() for name in names}


def columns() -> tuple[Any, ...]:
    made: list[Any] = []
    with Session() as db:
        db.table("t", COLUMNS)
        db.commit()
        db.view("v", lambda tables: tables.t.filter(lambda r: made.append(list(r)) or r.whole > 0))
    return tuple(max(made, key=lambda columns: len(columns[0])))


AS_SEEN = columns()
"""The columns as functions see them."""


@given(
    st.sampled_from(list(COLUMNS)),
    st.sampled_from([(kind, value) for kind, (_, values) in LIKE.items() for value in values]),
    st.sampled_from([operator.eq, operator.ne, operator.lt, operator.ge]),
    st.booleans(),
)
def test_a_column_is_compared_with_its_own_kind_alone(
    name: str, compared: tuple[str, Any], compare: Any, is_first: bool
) -> None:
    kind, value = compared
    place = list(COLUMNS).index(name)

    def condition(*columns: Any) -> Any:
        return compare(columns[place], value) if is_first else compare(value, columns[place])

    function = checked(list(COLUMNS), condition)
    if kind == KINDS[name] or (name, kind) == ("took", "numbers"):
        try:
            result = function(*AS_SEEN)
        except ComparisonError:
            raise
        except TypeError:  # an order that NumPy does not know
            return
        assert len(result) == 2
    else:
        with pytest.raises(ComparisonError, match=f"^column '{name}': {KINDS[name]} cannot be compared with {kind}"):
            function(*AS_SEEN)


@pytest.mark.parametrize("name", COLUMNS)
def test_nothing_is_compared_with_none(name: str) -> None:
    place = list(COLUMNS).index(name)
    for condition in (lambda *columns: columns[place] == None, lambda *columns: None != columns[place]):  # noqa: E711
        with pytest.raises(ComparisonError, match=r"cannot be compared with None: is_null\(column\)"):
            checked(list(COLUMNS), condition)(*AS_SEEN)


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("whole", "30", "write 30, without quotes"),
        ("whole", "many", "convert one of them"),
        ("name", 30, "write '30'"),
        ("name", b"a", "write 'a'"),
        ("code", "a", "write b'a'"),
        ("at", "2026-03-01", "np.datetime64(text) makes a time of text such as '2026-03-01T12:30'"),
        (
            "whole",
            np.array(["a", "b"]),
            "convert one of the columns, as typed(column, name) of differential.frames does",
        ),
    ],
)
def test_the_error_states_what_to_write(name: str, value: Any, remedy: str) -> None:
    place = list(COLUMNS).index(name)
    with pytest.raises(ComparisonError) as raised:
        checked(None, lambda *columns: columns[place] == value)(*AS_SEEN)
    assert str(raised.value).endswith(f": {remedy}")


def test_columns_are_compared_with_columns_of_their_kind() -> None:
    with pytest.raises(ComparisonError, match="numbers cannot be compared with text: convert one of the columns"):
        checked(list(COLUMNS), lambda *columns: columns[0] == columns[3])(*AS_SEEN)
    assert checked(list(COLUMNS), lambda *columns: columns[0] == columns[1])(*AS_SEEN).tolist() == [False, True]


@pytest.mark.parametrize("name", ["whole", "name", "at", "number", "code"])
def test_membership_is_of_items_and_of_the_same_kind(name: str) -> None:
    place = list(COLUMNS).index(name)

    def among(values: Any) -> Any:
        return checked(list(COLUMNS), lambda *columns: np.isin(columns[place], values))(*AS_SEEN)

    for values in ({1}, {"a": 1}, {"a": 1}.keys(), iter("a"), range(3)):
        with pytest.raises(ComparisonError, match=rf"column '{name}': np.isin takes a {type(values).__name__} for one"):
            among(values)
    for kind, (_, values) in LIKE.items():
        if kind != KINDS[name]:
            with pytest.raises(ComparisonError, match=f"column '{name}': {KINDS[name]} cannot be compared with {kind}"):
                among(values)
    if name != "number":  # which has a null
        assert len(among(LIKE[KINDS[name]][1])) == 2


def refused(definition: Any) -> str:
    with Session() as db:
        db.table("t", COLUMNS)
        db.commit()
        with pytest.raises(SessionError) as raised:
            db.view("v", definition)
    return str(raised.value)


def test_it_is_found_in_filter_map_and_select_behind_other_conditions_and_computations() -> None:
    wanted = ": {}numbers cannot be compared with text ('30')"
    assert wanted.format("column 'whole': ") in refused(
        lambda tables: tables.t.filter(lambda r: (r.share > 99) & (r.whole == "30"))
    )
    assert wanted.format("") in refused(lambda tables: tables.t.map(lambda r: (r.name, r.whole + 1 != "30")))
    assert wanted.format("") in refused(lambda tables: tables.t.select("name", x=lambda r: np.abs(r.whole) == "30"))
    assert wanted.format("column 'whole': ") in refused(
        lambda tables: tables.t.select("whole").filter(lambda whole: whole == "30")
    )


def test_a_function_may_fail_without_rows() -> None:
    lengths: list[int] = []

    def above_least(r: Any) -> Any:
        lengths.append(len(r.whole))
        return r.whole > min(r.whole.min(), 1)

    with Session() as db:
        table = db.table("t", {"whole": [1, 30], "name": ["a", "b"]})
        db.commit()
        view = db.view("v", lambda tables: tables.t.filter(above_least))
        assert (view.records(), lengths) == ([(30, "b")], [0, 2, 1, 1])
        table.insert(whole=[1, 40], name=["c", "d"])
        db.commit()
        assert (view.records(), lengths) == ([(30, "b"), (40, "d")], [0, 2, 1, 1, 2])


def test_a_function_of_each_row_compares_as_python_does() -> None:
    with Session() as db:
        db.table("t", {"whole": [1, 30], "name": ["a", "30"]})
        db.commit()
        view = db.view("v", lambda tables: tables.t.filter(rowwise(lambda r: "30" in (r.whole, r.name))))
        assert view.records() == [(30, "30")]


@pytest.mark.parametrize(
    ("definition", "error"),
    [
        (lambda t: t.t.filter(lambda r: r.totl > 3), "AttributeError: there is no column 'totl': .* mean 'total'"),
        (lambda t: t.t.distinct().select(x=lambda r: r.total + r.idd), "AttributeError: there is no column 'idd'"),
        (lambda t: t.t.map(lambda r: r.name == 3), "column 'name': text cannot be compared with numbers"),
    ],
)
def test_a_view_of_an_empty_table_is_refused_where_it_is_made(definition: Any, error: str) -> None:
    with Session() as db:
        db.table("t", {"id": int, "total": int, "name": str | None})
        with pytest.raises(SessionError, match=rf"{__file__}:\d+\): {error}"):
            db.view("v", definition)


def test_a_function_that_needs_rows_is_not_refused_for_want_of_them() -> None:
    with Session() as db:
        table = db.table("t", {"id": int, "total": int})
        view = db.view("v", lambda t: t.t.filter(lambda r: (r.total > 3) & (r.total.max() < 1 << 40)))
        table.insert(id=[1, 2], total=[3, 4])
        db.commit()
        assert view.records() == [(2, 4)]
