"""Joins of named columns, narrowed or whole, are those of plain Python, whatever is asked of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from differential import example
from differential.session import Relation
from tests.thorough import examples
from timely import Scope

SMALL = st.integers(0, 2)
ROWS = st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=1, max_size=6)
SIDES = (("a", "b", "c"), ("d", "e", "f"))


def relation(scope: Scope, rows: list[tuple[int, ...]], names: tuple[str, ...]) -> Relation:
    return Relation.of(scope, *(np.array(column) for column in zip(*rows))).named(*names)  # type: ignore[no-any-return, attr-defined]


@settings(deadline=None, max_examples=examples(40))
@given(data=st.data(), left=ROWS, right=ROWS)
def test_what_is_chosen_of_a_join_is_what_plain_python_chooses(data: Any, left: Any, right: Any) -> None:
    width = data.draw(st.integers(1, 2))
    ours = data.draw(st.permutations(SIDES[0]))[:width]
    theirs = data.draw(st.permutations(SIDES[1]))[:width]
    columns = [*ours, *(name for name in (*SIDES[0], *SIDES[1]) if name not in (*ours, *theirs))]
    chosen = data.draw(st.lists(st.sampled_from(columns), min_size=1, max_size=3, unique=True))
    also = data.draw(st.sampled_from(["nothing", "the whole", "a group", "another join"]))

    def program(scope: Scope) -> Relation:
        joined = relation(scope, left, SIDES[0]).join(relation(scope, right, SIDES[1]), on=dict(zip(ours, theirs)))
        assert joined.names == tuple(columns)
        if also == "the whole":
            joined.distinct()
        if also == "a group":
            return joined.group_by(*chosen).aggregate(n="count", of="count")
        if also == "another join":
            keys = relation(scope, [(0, 5), (1, 6)], ("key", "tag"))
            return joined.join(keys, on={chosen[0]: "key"}).select(*chosen, "tag")
        return joined.select(*chosen)

    expected: Counter[Any] = Counter()
    for one in left:
        for other in right:
            row = dict(zip(SIDES[0], one)) | dict(zip(SIDES[1], other))
            if all(row[here] == row[there] for here, there in zip(ours, theirs)):
                expected[tuple(row[name] for name in chosen)] += 1
    if also == "a group":
        expected = Counter({(*row, count, count): 1 for row, count in expected.items()})
    if also == "another join":
        expected = Counter({(*row, 5 + row[0]): count for row, count in expected.items() if row[0] < 2})
    assert dict(example(program)) == expected
