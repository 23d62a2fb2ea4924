"""Several aggregates of the records of a group, as a definition names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from timely.errors import BuildError
from timely.lowlevel import user_origin

Aggregate = Literal["count"] | tuple[str, Literal["sum", "min", "max", "mean"]]
"""The number of records, or a column and what is made of its values."""

KINDS = ("sum", "min", "max", "mean")


def check_aggregates(groups: Sequence[str], aggregates: Mapping[str, Any]) -> None:
    """Raise BuildError unless there are aggregates, with other names than the columns by which the groups are made.

    >>> check_aggregates(["customer"], {"orders": "count", "spent": ("total", "sum")})
    """
    where = f"aggregate (at {user_origin()})"
    example = "as in aggregate(orders='count', spent=('total', 'sum'))"
    if not aggregates:
        raise BuildError(f"{where}: name at least one aggregate, {example}")
    for name, of in aggregates.items():
        if name in groups:
            raise BuildError(f"{where}: {name!r} is a column of the groups, so an aggregate needs another name")
        if of != "count" and not (isinstance(of, tuple) and len(of) == 2 and of[1] in KINDS):
            raise BuildError(
                f"{where}: {name}={of!r:.80} is neither 'count' nor a column and one of {', '.join(KINDS)}, {example}"
            )


def quotient(sums: Any, counts: Any) -> Any:
    """Return the means of groups: of decimals as floats, because they may have any number of digits.

    >>> quotient(np.array([3, 4]), np.array([2, 1]))
    array([1.5, 4. ])
    """
    divided = sums / counts
    return divided.astype(np.float64) if divided.dtype == np.object_ else divided
