"""Arrays that check what a function compares them with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from timely.lowlevel import COMPARISONS, refuse_comparison, refuse_members


class Compared(np.ndarray[Any, Any]):
    """An array that raises ComparisonError where NumPy answers False for each row, because nothing could be equal.

    >>> np.array([30]) == "30"
    array([False])
    >>> np.array([30]).view(Compared) == "30"
    Traceback (most recent call last):
    timely.errors.ComparisonError: numbers cannot be compared with text ('30'): write 30, without quotes
    """

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc in COMPARISONS and method == "__call__":
            refuse_comparison(*inputs)
        # Of plain arrays: NumPy would call this method again for others.
        plain = {name: tuple(map(_plain, each)) if name == "out" else _plain(each) for name, each in options.items()}
        result = getattr(ufunc, method)(*map(_plain, inputs), **plain)
        return result.view(Compared) if isinstance(result, np.ndarray) else result

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        refuse_members(function, tuple(args))
        return super().__array_function__(function, types, args, kwargs)


def _plain(operand: Any) -> Any:
    return operand.view(np.ndarray) if isinstance(operand, Compared) else operand
