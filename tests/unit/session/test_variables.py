"""Functions of views and the variables around them."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from differential import Session
from differential.session.checked import refuse_changes, variables_of
from timely import rowwise
from timely.errors import BuildError, SessionError

least = 10
count = 0


@pytest.fixture
def db() -> Any:
    with Session() as db:
        db.table("t", {"n": [5, 15, 25], "s": ["a", "b", "c"]})
        db.commit()
        yield db


FORMS: list[Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = [
    lambda condition: lambda tables: tables.t.filter(condition),
    lambda condition: lambda tables: tables.t.map(condition),
    lambda condition: lambda tables: tables.t.select("n", of=condition),
    lambda condition: lambda tables: tables.t.select("n", of=rowwise(condition)),
    lambda condition: lambda tables: tables.t.filter(partial(condition)),
]
"""What takes a condition on a row."""


@pytest.mark.parametrize("form", FORMS)
def test_a_variable_that_changes_is_an_error_that_names_it(db: Any, form: Any) -> None:
    bound = 10
    view = db.view("v", form(lambda r: r.n > bound))
    before = view.records()
    db.table("t").insert(n=7, s="d")
    db.commit()
    assert len(view.records()) - len(before) in (0, 1)
    bound = 20
    db.table("t").insert(n=17, s="e")
    with pytest.raises(SessionError, match=r"BuildError: .* the variable 'bound', which was 10 .*, and is 20 now"):
        db.commit()


def test_a_loop_over_views_has_each_with_its_value_or_raises(db: Any) -> None:
    views = [db.view(f"above {number}", lambda tables: tables.t.filter(lambda r: r.n > number)) for number in (10, 20)]  # noqa: B023, as programs do
    db.table("t").insert(n=30, s="d")
    with pytest.raises(SessionError, match="`lambda r, number=number: "):
        db.commit()
    assert len(views) == 2
    kept = [
        db.view(f"kept {number}", lambda tables, number=number: tables.t.filter(lambda r, number=number: r.n > number))
        for number in (10, 20)
    ]
    db.table("t").insert(n=40, s="e")
    db.commit()
    assert [len(each) for each in kept] == [4, 3]


def test_a_global_variable_that_changes_is_an_error(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    view = db.view(
        "v",
        lambda tables: tables.t.filter(lambda r: r.n > (lambda: least)()),
    )
    assert view.records() == [(15, "b"), (25, "c")]
    monkeypatch.setitem(globals(), "least", 20)
    db.table("t").insert(n=17, s="e")
    with pytest.raises(SessionError, match="the variable 'least', which was 10"):
        db.commit()


def test_what_a_function_assigns_itself_may_change(db: Any) -> None:
    calls = 0

    def counted(r: Any) -> Any:
        global count
        nonlocal calls
        calls += 1
        count += 1
        return r.n > 10

    view = db.view("v", lambda tables: tables.t.filter(counted))
    db.table("t").insert(n=17, s="e")
    db.commit()
    assert (len(view), calls) == (3, count)


def test_objects_and_attributes_of_the_same_name_may_change(db: Any) -> None:
    n, seen = 10, []

    def helper(column: Any) -> Any:
        return column > 10

    view = db.view("v", lambda tables: tables.t.filter(lambda r: [seen.append(r.n), helper(r.n)][1]))
    n += 1

    def helper(column: Any) -> Any:  # noqa: F811, as where a cell runs again
        return column > 10

    db.table("t").insert(n=17, s="e")
    db.commit()
    assert (len(view), n) == (3, 11)


VALUES = st.one_of(
    st.integers(),
    st.floats(allow_nan=True),
    st.text(max_size=3),
    st.none(),
    st.booleans(),
    st.dates(),
    st.decimals(allow_nan=False),
    st.tuples(st.integers(), st.text(max_size=2)),
    st.builds(np.int64, st.integers(0, 9)),
)


@given(VALUES, VALUES)
def test_a_change_is_another_value_or_class(first: Any, second: Any) -> None:
    variable = first
    variables = variables_of(lambda: variable)
    assert [each.name for each in variables] == ["variable"]
    refuse_changes(variables)
    variable = second
    if second is first or (type(first) is type(second) and first == second):
        refuse_changes(variables)
    else:
        with pytest.raises(BuildError, match="'variable'"):
            refuse_changes(variables)


def test_only_plain_values_that_the_function_reads_are_looked_at() -> None:
    plain, column, of_function, unread = dt.timedelta(1), np.array([1]), variables_of, Decimal(1)

    def function(r: Any) -> Any:
        return (plain, column, of_function, least, r.unread, later)

    assert [each.name for each in variables_of(function)] == ["least", "plain"]
    later = unread
    assert [each.name for each in variables_of(function)] == ["later", "least", "plain"]
    assert variables_of(len) == variables_of(rowwise(len)) == []
