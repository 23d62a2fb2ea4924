"""Reduce the values of every key on two sides together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from differential.arguments import check_collections
from differential.arrangement.core import C, Keyed, records_of
from differential.operators.concat import concat
from differential.operators.groups import Groups
from differential.operators.reduce import reduce_groups
from differential.operators.vectors import as_part
from timely.lowlevel import check_functions


class CoGroups(NamedTuple):
    """The groups that a reduction of two collections receives.

    `left` and `right` are `Groups` with the same keys. For each key one of the two may be empty, but not both.
    """

    left: Groups
    right: Groups

    @property
    def keys(self) -> tuple[Any, ...]:
        """The key columns, one row for each group."""
        return self.left.keys

    def __len__(self) -> int:
        return len(self.left)


def cogroup(left: Keyed[C], right: Keyed[C], function: Callable[[CoGroups], Any], *, name: str = "cogroup") -> C:
    """Return (key, value) for the values that `function` makes of each key's values on the left and on the right.

    `function` receives `CoGroups` and returns `(index, *value columns)`, like the function of `reduce`. The values on
    both sides must have the same kinds of columns; where they have not, `map` one side to have those of the other, too.

    >>> def missing(groups):
    ...     held, needed = (np.bincount(side.index, side.counts, len(groups)) for side in groups)
    ...     return np.arange(len(groups)), (needed - held).astype(np.int64)
    >>> def program(scope):
    ...     held = Collection.of(scope, np.array(["nut", "nut"]), np.array([1, 2]))
    ...     return held.cogroup(Collection.of(scope, np.array(["nut", "bolt"]), np.array([9, 9])), missing)
    >>> example(program)
    [(('bolt', 1), 1), (('nut', -1), 1)]
    """
    check_functions(name, function=function)
    check_collections(name, right=right)

    def both(groups: Groups) -> Any:
        return function(CoGroups(_side(groups, 0), _side(groups, 1)))

    sides = [as_part(records_of(side), part, name=name) for part, side in enumerate((left, right))]
    parts = concat(*sides, name=name)
    return reduce_groups(parts.arrange_by_key(), both, hidden=1, name=name)


def _side(groups: Groups, part: int) -> Groups:
    mine = groups.values[-1] == part
    # Rows keep their order, by group, so lengths alone give the new offsets.
    lengths = np.bincount(groups.index[mine], minlength=len(groups))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Groups(groups.keys, offsets, tuple(column[mine] for column in groups.values[:-1]), groups.counts[mine])
