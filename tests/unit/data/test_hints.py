"""A method that columns do not have is answered with a function that NumPy has, or `differential.frames`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import differential.frames
from timely.data.column_like import _INSTEAD, instead
from timely.data.user_functions import call
from timely.lowlevel import typed


def test_the_functions_exist_and_the_methods_do_not() -> None:
    for name, text in _INSTEAD.items():
        for path in re.findall(r"np\.([\w.]+)\(", text):
            found: Any = np
            for part in path.split("."):
                found = getattr(found, part)
        assert not hasattr(np.ndarray, name)
        for function in re.findall(r"(\w+)\(column\w*\)?.* of differential.frames", text):
            assert hasattr(differential.frames, function)
    assert instead("unknown") == ""


@pytest.mark.parametrize(
    ("function", "column", "hint"),
    [
        (lambda c: c.upper(), np.array(["a"], np.dtypes.StringDType()), "np.strings.upper(column)"),
        (lambda c: c.isin([3]), np.array([3]), "np.isin(column, [value, ...])"),
        (lambda c: (c - c).total_seconds(), np.array(["2026-01-01"], "M8[us]"), "column / np.timedelta64(1, 's')"),
        (lambda c: c.is_null(), typed([1, None], "int64?"), "is_null(column) of differential.frames"),
        (lambda c: c.fillna(0), typed([1, None], "int64?"), "fill_null(column, value) of differential.frames"),
    ],
)
def test_an_array_and_a_typed_column_name_it(function: Callable[..., Any], column: Any, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        call(function, (column,))
    assert hint in caught.value.__notes__[0]
