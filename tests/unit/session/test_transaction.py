"""What many rows of a statement add up to is found in columns, and what few do as Python's values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.session import transaction
from differential.session.transaction import last_of_each
from tests.thorough import examples
from timely.lowlevel import typed

VALUES: dict[str, list[Any]] = {
    "int64": [0, 1, -(1 << 63), (1 << 63) - 1],
    "int64?": [0, None, 1],
    "uint64": [0, (1 << 64) - 1, 5],
    "float64": [0.0, -0.0, float("nan"), 1.5, float("-inf")],
    "float64?": [0.0, -0.0, None, float("nan")],
    "float32": [0.5, float("nan"), 0.0, -0.0],
    "bool": [True, False],
    "text": ["", "a", "ä"],
    "text?": ["", None, "a"],
    "bytes": [b"", b"a\0", b"a"],
    "decimal(18, 2)": [Decimal("1.50"), Decimal(0), None],
    "decimal(38, 2)": [Decimal("1.50"), Decimal(10) ** 30, None],
    "date": [dt.date(2024, 2, 29), None],
    "timestamp[us]": [dt.datetime(2024, 2, 29), dt.datetime(1969, 1, 1)],
    "duration[us]": [dt.timedelta(0), dt.timedelta(1), None],
    "value": [[1], [1, 2], None],
}


@pytest.mark.parametrize("other", [None, "int64", "text"])
@pytest.mark.parametrize("name", VALUES)
def test_the_last_row_of_each_key_is_the_same_however_it_is_found(name: str, other: str | None) -> None:
    def column(of: str, values: list[Any]) -> Any:
        return typed(values, of)

    @settings(max_examples=examples(30), deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(VALUES[name]), st.sampled_from(VALUES[other or "int64"])), min_size=1))
    def check(rows: list[tuple[Any, Any]]) -> None:
        first, second = map(list, zip(*rows))
        keys = (column(name, first), *(() if other is None else (column(other, second),)))
        found = []
        for short in (0, 1 << 60):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(transaction, "SHORT", short)
                found.append(last_of_each(keys).tolist())
        assert found[0] == found[1]
        assert found[0] == sorted(set(found[0]))
        assert found[0][-1] == len(rows) - 1

    check()


def test_no_rows_have_no_last_ones() -> None:
    assert last_of_each((np.empty(0, np.int64),)).tolist() == []
