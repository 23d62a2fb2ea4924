"""What a function returns for a row must depend on that row alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from differential import Session
from differential.frames import is_null, typed
from differential.session.checked import checked
from timely import rowwise
from timely.errors import BuildError, SessionError

DEPENDENT: dict[str, Callable[[Any], Any]] = {
    "a mean": lambda r: r.n > r.n.mean(),
    "a running sum": lambda r: np.cumsum(r.n),
    "a rank": lambda r: np.argsort(np.argsort(r.n)),
    "the number of a row": lambda r: np.arange(len(r.n)),
    "a share": lambda r: r.x / r.x.sum(),
    "the row before": lambda r: np.concatenate((r.n[:1], r.n[:-1])),
    "chance": lambda r: np.random.default_rng().random(len(r.n)),
    "the number of rows": lambda r: len(r.n),
    "the first value": lambda r: r.s[0],
    "a list as long as the batch": lambda r: r.n == list(range(40)),
    "the largest text": lambda r: r.s == max(r.s.tolist()),
}
"""What programs compute over a column that is not in the row."""

OF_ONE_ROW: dict[str, Callable[[Any], Any]] = {
    "numbers": lambda r: r.n % 7 + r.x**0.5,
    "floats of NumPy's loops": lambda r: np.exp(np.sin(r.x)) * np.float32(0.1),
    "NaN": lambda r: np.where(r.n > 10, np.nan, r.x),
    "text": lambda r: np.strings.upper(r.s),
    "the same text": lambda r: r.s,
    "nulls": lambda r: is_null(r.maybe),
    "sums with nulls": lambda r: r.maybe + 1,
    "one value for all": lambda r: 7,
    "one time for all, which is null": lambda r: np.datetime64("NaT", "us"),
    "one NaN for all": lambda r: np.float32("nan"),
    "a function of each row": rowwise(lambda r: (r.s, r.n)),
    "the membership in a list": lambda r: np.isin(r.n, [3, 4, 5]),
    "what fails for one row": lambda r: r.n[:2].reshape(2) is not None and r.n,
}
"""What programs compute of each row."""


@pytest.fixture(scope="module")
def db() -> Any:
    with Session() as db:
        numbers = np.arange(40)
        columns = {"n": numbers, "x": numbers**0.5, "s": [f"s{each}" for each in numbers.tolist()]}
        db.table("t", {**columns, "maybe": typed([None, 1] * 20, "int64?")})
        db.commit()
        yield db


@pytest.mark.parametrize("name", DEPENDENT)
def test_a_function_that_looks_at_other_rows_is_refused(db: Any, name: str) -> None:
    with pytest.raises(SessionError, match=r"BuildError: the function returns .* for the row alone"):
        db.ask(lambda tables: tables.t.select("n", made=DEPENDENT[name]))
    if name in ("a mean", "the largest text"):
        with pytest.raises(SessionError, match="group_by"):
            db.ask(lambda tables: tables.t.filter(DEPENDENT[name]))


@pytest.mark.parametrize("name", OF_ONE_ROW)
def test_a_function_of_one_row_is_not(db: Any, name: str) -> None:
    function = OF_ONE_ROW[name]
    several = "each" in name
    assert len(db.ask(lambda tables: tables.t.map(function) if several else tables.t.select("n", made=function))) > 1


def test_the_first_batch_of_several_rows_is_tried_and_no_later_one() -> None:
    lengths: list[int] = []

    def function(n: Any) -> Any:
        lengths.append(len(n))
        return n > 0

    once = checked(["n"], function)
    for rows in (0, 1, 1, 9, 9):
        once(np.ones(rows))
    assert lengths == [0, 0, 1, 2, 1, 1, 1, 9, 1, 1, 1, 1, 9]


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        (lambda r: r.n > 1 and r.n < 5, "joined by `&` and `|`"),
        (lambda r: 1 < r.n < 5, "joined by `&` and `|`"),
        (
            lambda r: np.full(1, True),
            "returns a column of 1 for the row (3, 'a') among 2 rows, and True for",
        ),
    ],
)
def test_a_first_row_that_comes_alone_is_tried_with_itself(condition: Any, error: str) -> None:
    with Session() as db:
        db.table("t", {"n": [3], "s": ["a"]})
        db.commit()
        with pytest.raises(SessionError) as raised:
            db.view("v", lambda tables: tables.t.filter(condition))
        assert error in str(raised.value)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=30), st.integers(-3, 3))
def test_the_rows_that_are_named_differ(numbers: list[int], bound: int) -> None:
    column = np.array(numbers)
    checked(["n"], lambda n: n > bound)(column)
    tried = {numbers[row] for row in (0, len(numbers) // 3, len(numbers) // 3 * 2, len(numbers) - 1)}
    if tried == {min(numbers)}:
        checked(["n"], lambda n: n > n.min())(column)
    else:
        with pytest.raises(BuildError, match="the function returns True for the row"):
            checked(["n"], lambda n: n > n.min())(column)
