"""Semijoins, antijoins and left joins of random tables that change, against Python."""

from collections import Counter
from typing import Any

from hypothesis import given, strategies as st

from differential import Session
from differential.frames import typed

LEFT = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), max_size=5)
RIGHT = st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 3)), max_size=5)
CHANGES = st.lists(st.tuples(LEFT, RIGHT), min_size=1, max_size=3)


def expected(left: list[Any], right: list[Any]) -> dict[str, Counter[Any]]:
    keys = {key for _, key in right}
    pairs = [(key, value, other) for key, value in left for other, match in right if match == key]
    alone = [each for each in left if each[0] not in keys]
    return {
        "semijoin": Counter(each for each in left if each[0] in keys),
        "antijoin": Counter(alone),
        "left": Counter([*pairs, *((*each, "none") for each in alone)]),
        "nulls": Counter([*pairs, *((*each, None) for each in alone)]),
        "distinct": Counter(each for each in left if each[0] in keys),
    }


DEFINITIONS: dict[str, Any] = {
    "semijoin": lambda t: t.a.semijoin(t.b, on={"k": "match"}),
    "antijoin": lambda t: t.a.antijoin(t.b.select("match")),
    "left": lambda t: t.a.left_join(t.b, on={"k": "match"}, missing={"other": "none"}),
    "nulls": lambda t: t.a.left_join(t.b, on={"k": "match"}, missing={"other": typed([None], "text?")}),
    "distinct": lambda t: t.a.semijoin(t.b.select("match").distinct().named("key")),
}


@given(CHANGES)
def test_each_key_of_the_other_side_counts_once(changes: list[tuple[list[Any], list[Any]]]) -> None:
    left: list[Any] = []
    right: list[Any] = []
    with Session() as db:
        a, b = db.table("a", {"k": int, "v": str}), db.table("b", {"other": str, "match": int})
        views = {name: db.view(name, definition) for name, definition in DEFINITIONS.items()}
        for added_left, added_right in changes:
            a.delete(left[::2])
            b.delete(right[::2])
            a.insert(added_left)
            b.insert(added_right)
            left, right = left[1::2] + added_left, right[1::2] + added_right
            db.commit()
            assert {name: Counter(view.records()) for name, view in views.items()} == expected(left, right)
