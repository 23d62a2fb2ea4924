"""Replace every record by another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential.arrangement.core import C
from differential.operators.linear import linear, mapped
from timely.lowlevel import check_functions


def map(collection: C, function: Callable[..., Any], *, keys: int = 1, name: str = "map") -> C:
    """Return the collection of `function` of every record.

    `function` receives whole columns, positionally, and returns a column or a tuple of columns of the same length; a
    scalar stands for a column of it. The first `keys` columns of the result are its key. Like every function given to
    a collection it must be a function: the same rows in, the same rows out.

    >>> example(lambda scope: Collection.of(scope, np.array([1, 2])).map(lambda x: (x % 2, x)))
    [((0, 2), 1), ((1, 1), 1)]
    """
    check_functions(name, function=function)
    return linear(collection, mapped(function), keys=keys, name=name)
