"""A function of one key returns values as it was given them, of whatever type, and whichever keys share a call."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from differential import Collection, new_input
from timely import Worker, execute_directly
from timely.lowlevel import typed

TYPES: dict[str, list[Any]] = {
    "int64": [1, 2, -3],
    "int64?": [1, 2, None],
    "float64": [0.5, -2.0, float("nan")],
    "float64?": [0.5, float("nan"), None],
    "bool?": [True, False, None],
    "text?": ["b", "a", None],
    "bytes?": [b"b", b"a", None],
    "uint64": [1, 2, 2**64 - 1],
    "decimal(18, 2)": [Decimal("2.50"), Decimal("-1.00"), None],
    "date": [dt.date(2026, 1, 1), dt.date(1960, 1, 1), None],
    "timestamp[us]": [dt.datetime(2026, 1, 1), dt.datetime(1960, 1, 1), None],
    "value": [(1, 2), (3,), {"a": [1, None]}, None],
}


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data(), together=st.booleans())
def test_the_last_value_is_the_largest(kind: str, second: bool, data: st.DataObject, together: bool) -> None:
    rows = data.draw(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(TYPES[kind])), min_size=1, max_size=6))

    def program(worker: Worker) -> tuple[list[Any], list[Any]]:
        with worker.dataflow() as scope:
            session, given_rows = new_input(scope)
            values: Collection = given_rows.map(lambda key, value: (key, key, value)) if second else given_rows
            outputs = values.reduce_each(lambda key, each: [each[-1][0]]).output(), values.max().output()
        for epoch, (key, value) in enumerate(rows):
            session.insert(np.array([key]), typed([value], kind))
            if not together:
                session.advance_to(epoch + 1)
                worker.step_while(lambda: any(each.less_than(session.time) for each in outputs))
        session.close()
        worker.step_while(lambda: not all(each.done() for each in outputs))
        return outputs[0].changes(), outputs[1].changes()

    found, expected = execute_directly(program)
    assert repr(sorted(found, key=repr)) == repr(sorted(expected, key=repr))
