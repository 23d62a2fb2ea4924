"""Joins of keys that may have nulls on one side alone, compared with all pairs at each epoch."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import example, given, strategies as st

from differential import new_input
from differential.frames import typed
from timely import Config, Worker, execute

NUMBERS, TEXTS = st.sampled_from([0, 5, 2**63 - 1]), st.sampled_from(["", "a", "\U0010ffff"])
LEFT = st.tuples(st.none() | st.sampled_from([0, 5, 7]), TEXTS)
RIGHT = st.tuples(NUMBERS, st.none() | st.sampled_from(["", "a", "b"]))
TYPES = ("int64?", "text"), ("int64", "text?")
"""The types of the two columns of the key on each side: each may have nulls on one side alone."""

Change = tuple[tuple[Any, Any], int]


def changes(keys: st.SearchStrategy[tuple[Any, Any]]) -> st.SearchStrategy[list[list[Change]]]:
    return st.lists(st.lists(st.tuples(keys, st.sampled_from([1, 1, 2, -1])), max_size=4), min_size=3, max_size=3)


def possible(side: list[list[Change]]) -> list[list[Change]]:
    """Return the changes that remove nothing that is not there."""
    held: Counter[Any] = Counter()
    kept: list[list[Change]] = [[] for _ in side]
    for epoch, made in enumerate(side):
        for key, diff in made:
            if held[key] + diff >= 0:
                held[key] += diff
                kept[epoch].append((key, diff))
    return kept


@given(changes(LEFT), changes(RIGHT), st.sampled_from([1, 2, 3]))
@example([[((None, "a"), 1)], [], []], [[((2**63 - 1, "a"), 1)], [], []], 1)
@example([[((5, "\U0010ffff"), 1)], [], []], [[], [((5, None), 1)], []], 2)
@example([[((5, "a"), 2)], [((5, "a"), -1)], []], [[((5, "a"), 1)], [], []], 3)
def test_pairs_are_those_of_equal_values(left: list[list[Change]], right: list[list[Change]], workers: int) -> None:
    sides = possible(left), possible(right)

    def program(worker: Worker) -> list[Any]:
        with worker.dataflow() as scope:
            inputs, collections = zip(*(new_input(scope, keys=2) for _ in sides))
            valued = collections[1].map(lambda one, other: (one, other, np.full(len(one), 7)), keys=2)
            keys = collections[1].threshold(lambda counts: (counts > 0).astype(np.int64))
            outputs = [
                each.output()
                for each in (collections[0].join(valued), collections[0].semijoin(keys), collections[0].antijoin(keys))
            ]
        seen = []
        for epoch in range(3):
            for session, side, types in zip(inputs, sides, TYPES):
                if worker.index == 0 and side[epoch]:
                    columns = zip(*(key for key, _ in side[epoch]))
                    diffs = np.array([diff for _, diff in side[epoch]])
                    session.update(*(typed(list(column), of) for column, of in zip(columns, types)), diff=diffs)
                session.advance_to(epoch + 1)
            worker.step_while(lambda epoch=epoch: any(output.less_than(epoch + 1) for output in outputs))  # type: ignore[misc]
            seen.append([dict(output.contents()) for output in outputs])
        return seen

    parts = execute(program, Config(workers=workers))
    held: tuple[Counter[Any], Counter[Any]] = Counter(), Counter()
    for epoch in range(3):
        for counts, side in zip(held, sides):
            for key, diff in side[epoch]:
                counts[key] += diff
        matched = {key: held[1][key] for key in held[0] if None not in key}
        expected = [
            {(*key, 7): count * held[0][key] for key, count in matched.items()},
            {key: held[0][key] for key, count in matched.items() if count > 0},
            {key: count for key, count in held[0].items() if matched.get(key, 0) <= 0},
        ]
        for number, records in enumerate(expected):
            found: Counter[Any] = Counter()
            for part in parts:
                found.update(part[epoch][number])
            assert dict(found) == {record: count for record, count in records.items() if count}
