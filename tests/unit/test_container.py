"""Tests of columns made of Python values, and of columns as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from timely.container import as_column, columns_from_buffers, columns_to_buffers
from timely.errors import DataError

STRINGS: list[Any] = ["", "a", "a\0", "é", "日本\0"]
BYTES: list[Any] = [b"", b"a", b"a\0", b"\0\0", b"\xff\0"]


@pytest.mark.parametrize("values", [STRINGS, BYTES])
def test_zeros_at_the_end_of_text_and_bytes_are_kept(values: list[Any]) -> None:
    assert as_column(values).tolist() == values
    assert as_column(np.array(values, np.object_)).tolist() == values
    assert [as_column(value).item() for value in values] == values


def test_columns_of_one_kind_have_one_dtype() -> None:
    assert {as_column(column).dtype.kind for column in (np.array(["a"]), ["a"], np.array(["a"], np.object_))} == {"T"}
    assert {as_column(column).dtype.kind for column in (np.array([b"a"]), [b"a"], np.array([b"a"], np.object_))} == {
        "O"
    }


@pytest.mark.parametrize("values", [STRINGS, BYTES, [1, 2], [0.5], [True], [], np.array([b"a", b""])])
def test_columns_come_back_from_their_buffers(values: Any) -> None:
    column = np.asarray(values) if isinstance(values, np.ndarray) else as_column(values)
    dtypes, buffers = columns_to_buffers([column])
    (again,) = columns_from_buffers(dtypes, [memoryview(buffer).cast("B") for buffer in buffers])
    assert again.tolist() == column.tolist()
    assert again.dtype == column.dtype


@pytest.mark.parametrize("values", [[b"a", 1], [None], [b"a", "a"], [object()], [2**70]])
def test_what_is_no_column_is_refused(values: list[Any]) -> None:
    with pytest.raises(DataError, match="cannot make a column"):
        as_column(values)


@pytest.mark.parametrize("lengths", [[-1, 3], [3], [1], [1 << 40]])
def test_contents_that_do_not_fit_their_lengths_are_refused(lengths: list[int]) -> None:
    buffers = [memoryview(np.array(lengths)).cast("B"), memoryview(b"ab")]
    for kind in ("text", "bytes"):
        with pytest.raises(ValueError, match="lengths"):
            columns_from_buffers([kind], buffers)
        with pytest.raises(ValueError, match="two buffers"):
            columns_from_buffers([kind], buffers[:1])
