"""Columns of different types are not put together or matched, even before there are rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from differential import Session
from timely.errors import SessionError


@pytest.fixture
def db() -> Iterator[Session]:
    with Session(progress=False) as db:
        for name, of in {"i": int, "f": float, "s": str, "b": bool, "n": int | None}.items():
            db.table(name, {"k": of, "x": int})
        db.commit()
        yield db


Definition = Callable[[Any], Any]

REFUSED: dict[str, tuple[Definition, str, str]] = {
    "concat of floats": (lambda t: t.i.concat(t.f), "int64", "float64"),
    "concat of text": (lambda t: t.i.concat(t.s), "int64", "text"),
    "concat of booleans": (lambda t: t.i.concat(t.b), "int64", "bool"),
    "renamed columns": (lambda t: t.i.concat(t.s.select("k", y="x")), "int64", "text"),
    "union": (lambda t: t.i.union(t.s), "int64", "text"),
    "except": (lambda t: t.i.except_(t.f), "int64", "float64"),
    "join": (lambda t: t.i.join(t.s.select("k", y="x"), on="k"), "int64", "text"),
    "join of keys": (lambda t: t.i.join(t.f.select("k", y="x")), "int64", "float64"),
    "join by others": (lambda t: t.i.join(t.s.select("k", y="x"), on={"x": "k"}), "int64", "text"),
    "left join": (lambda t: t.i.left_join(t.s.select("k", y="x"), on="k", missing={"y": 0}), "int64", "text"),
    "semijoin": (lambda t: t.i.semijoin(t.f, on="k"), "int64", "float64"),
    "antijoin": (lambda t: t.i.antijoin(t.s.select("k")), "int64", "text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_types_are_refused_where_the_view_is_defined(name: str, db: Session) -> None:
    definition, one, other = REFUSED[name]
    with pytest.raises(SessionError, match=rf"is of {one.replace('?', '.')}, and .* is of {other}[,.]"):
        db.view("v", definition)


ALLOWED: dict[str, Definition] = {
    "the same type": lambda t: t.i.concat(t.i),
    "converted": lambda t: t.i.select("x", k=lambda r: r.k.astype(float)).select("k", "x").concat(t.f),
    "keys that are whole numbers": lambda t: t.i.join(t.b.select("k", y="x"), on="k"),
    "values of other types": lambda t: t.i.select("k").join(t.s.select("x", z="k"), on={"k": "x"}),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_equal_and_unknown_types_are_accepted(name: str, db: Session) -> None:
    view = db.view("v", ALLOWED[name])
    for table, key in {"i": 1, "f": 1.0, "s": "1", "b": True}.items():
        db[table].insert(k=key, x=1)
    db.commit()
    assert len(view)


@pytest.mark.parametrize("operator", ["concat", "union", "intersect", "except_", "symmetric_difference"])
def test_columns_may_have_nulls_on_one_side_alone(operator: str) -> None:
    # A result may have fewer nulls than its operands, and then still goes together with both of them.
    with Session(progress=False) as db:
        db.table("left", {"k": int, "x": int | None, "y": str})
        db.table("right", {"k": int, "x": int, "y": str | None})
        db["left"].insert([(1, None, "a"), (2, 5, "b")])
        db["right"].insert([(2, 5, "b"), (3, 6, None)])
        db.commit()
        one, two, three = (1, None, "a"), (2, 5, "b"), (3, 6, None)
        expected = {
            "concat": [one, two, two, three],
            "union": [one, two, three],
            "intersect": [two],
            "except_": [one],
            "symmetric_difference": [one, three],
        }[operator]
        made = db.view("made", lambda t: getattr(t.left, operator)(t.right))
        whole = db.view("whole", lambda t: t.made.concat(t.left, t.right).distinct())
        db.commit()
        assert made.records() == expected
        assert whole.records() == [one, two, three]
        swapped = db.ask(lambda t: getattr(t.right, operator)(t.left)).records()
        assert swapped == ([three] if operator == "except_" else expected)


def test_keys_may_have_nulls_on_one_side_alone() -> None:
    with Session(progress=False) as db:
        db.table("people", {"id": [1, 2, 3], "boss": [None, 1, 1]}, key="id")
        led = db.view("led", lambda t: t.people.join(t.people.select("boss", report="id"), on={"id": "boss"}))
        bosses = db.view("bosses", lambda t: t.people.semijoin(t.people.select("boss"), on={"id": "boss"}))
        others = db.view("others", lambda t: t.people.antijoin(t.people.select("boss"), on={"id": "boss"}))
        heads = db.view("heads", lambda t: t.people.antijoin(t.people.select(boss="id"), on="boss"))
        above = db.view("above", lambda t: t.people.left_join(t.people.select("id", above="boss"), on={"boss": "id"}))
        db.commit()
        assert led.records() == [(1, None, 2), (1, None, 3)]
        assert (bosses.records(), others.records()) == ([(1, None)], [(2, 1), (3, 1)])
        assert heads.records() == [(None, 1)]
        assert above.records() == [(1, 2, None), (1, 3, None), (None, 1, None)]
        db["people"].upsert(id=1, boss=3)
        db.commit()
        assert led.records() == [(1, 3, 2), (1, 3, 3), (3, 1, 1)]
        assert heads.records() == []
