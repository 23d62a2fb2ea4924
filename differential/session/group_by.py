"""Groups of the records of a collection, and the windows of event time, which are groups too.

An aggregate of groups is made in three steps: `select` keeps the columns of the groups and the aggregated one, the
operator of that name (`sum`, `count`, ...) computes it for each key, and `named` names the columns of the result. If
all records are one group, the key is a constant, in a column that no result has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Generic

from differential.session.aggregate import (
    Aggregate,
    check_aggregates,
    is_narrow_decimal,
    quotient,
    refuse_type,
    sums_of_decimals,
    type_of,
)
from differential.session.guesses import GROUPS, absent
from differential.session.named import R, with_types
from differential.session.near import known_columns
from differential.session.nulls import are_left_out, largest, presence, refuse_nulls, with_zeros
from differential.session.windows import WINDOW, Kind, Sessions, assigned, refuse_other_kinds, refuse_windows
from timely.lowlevel import refusal

ALL = "all records"
"""The column of the key if all records are one group and no column of theirs has this name."""


class GroupBy(Generic[R]):
    """The records of a collection by the values of some columns; without any, all records as one group.

    >>> from differential.session import Relation
    >>> def groups(scope, *names):
    ...     columns = np.array([1, 2, 1, 1]), np.array([30, 5, 20, 20])
    ...     return Relation.of(scope, *columns).named("customer", "total").group_by(*names)
    >>> example(lambda scope: groups(scope, "customer").count("orders"))
    [((1, 3), 1), ((2, 1), 1)]
    >>> example(lambda scope: groups(scope, "customer").count_distinct("total"))
    [((1, 2), 1), ((2, 1), 1)]
    >>> example(lambda scope: groups(scope, "customer").sum("total"))
    [((1, 70), 1), ((2, 5), 1)]
    >>> example(lambda scope: groups(scope).mean("total"))
    [((18.75,), 1)]
    >>> example(lambda scope: groups(scope).min("total").concat(groups(scope).max("total")))
    [((5,), 1), ((30,), 1)]
    >>> example(lambda scope: groups(scope, "customer").aggregate(orders="count", most=("total", "max")))
    [((1, 3, 30), 1), ((2, 1, 5), 1)]
    >>> example(lambda scope: groups(scope).aggregate(orders="count", customers=("customer", "count_distinct")))
    [((4, 2), 1)]
    >>> example(lambda scope: groups(scope, "customer").top_k(1, by="total"))
    [((1, 30), 1), ((2, 5), 1)]
    >>> example(lambda scope: groups(scope).top_k(2, by="total"))
    [((1, 20), 1), ((1, 30), 1)]
    """

    def __init__(self, records: Callable[[], R], names: tuple[str, ...], columns: tuple[str, ...] | None) -> None:
        """Group what `records` returns, which is called when it is first needed, and has these `columns`."""
        self._records = cache(records)
        self._names = names
        self._columns = columns or ()
        self._key = names or (_unused(self._columns),)
        self._indexed: dict[Any, Any] = {}

    def __repr__(self) -> str:
        by = f"groups by {', '.join(self._names)}" if self._names else "a group of all records"
        return f"{by}, of which count(), sum('column') and others make a collection"

    def aggregate(self, /, **aggregates: Aggregate) -> R:
        """Return several aggregates of each group, each in the column that its argument names.

        Those of one column share an index, and joins put them together. Raises BuildError for what is neither `"count"`
        nor a column and `"count_distinct"`, `"sum"`, `"min"`, `"max"` or `"mean"`.
        """
        check_aggregates(self._names, aggregates)
        groups = self._only([of[0] for of in aggregates.values() if of != "count"])
        parts = [
            groups._count(name) if of == "count" else groups._of(of[1], of[0], name) for name, of in aggregates.items()
        ]
        while len(parts) > 1:  # in pairs: one after the other, all columns so far would be indexed for each
            pairs = [first.join(second) for first, second in zip(parts[::2], parts[1::2])]
            parts = [*pairs, *parts[2 * len(pairs) :]]
        return self._without_key(parts[0])

    def count(self, name: str = "count") -> R:
        """Return how many records each group has, in a column of this name."""
        if name in self._names:
            raise refusal("count", f"{name!r} is a column of the groups: take another name")
        return self._without_key(self._count(name))

    def count_distinct(self, column: str) -> R:
        """Return how many different values a column has in each group. A null counts like any other value."""
        return self._without_key(self._of("count_distinct", column, column))

    def sum(self, column: str) -> R:
        """Return the sum of a column in each group, without its nulls: that of nulls alone is 0."""
        return self._without_key(self._of("sum", column, column))

    def min(self, column: str) -> R:
        """Return the smallest value of a column in each group; null if there are nulls alone."""
        return self._without_key(self._of("min", column, column))

    def max(self, column: str) -> R:
        """Return the largest value of a column in each group; null if there are nulls alone."""
        return self._without_key(self._of("max", column, column))

    def mean(self, column: str) -> R:
        """Return the mean of a column in each group, without its nulls, as a float; that of nulls alone is NaN.

        Of durations it is one in microseconds or nanoseconds, and of nulls alone null.
        """
        known_columns(self._columns, "mean", [column])
        return self._without_key(self._only([column])._of("mean", column, column))

    def top_k(self, k: int, by: str | Sequence[str], *, smallest: bool = False) -> R:
        """Return the `k` records of each group that are largest (or smallest) in some columns, compared one by one.

        The other columns, in their order, break ties. A record that occurs twice counts twice, and a null is larger
        than every value.

        Raises BuildError where one of the columns does not exist, and DataError where `k` is not a whole number of at
        least 1.
        """
        first = tuple(by) if isinstance(by, (list, tuple)) else (by,)
        names = known_columns(self._columns, "top_k", first)
        whole = self._selected(*(each for each in dict.fromkeys((*first, *names)) if each not in self._names))
        made: R = whole.top_k(k, smallest=smallest).select(*names)
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            columns = {each: f"sum({each!r}) adds up the column" for each in self._columns}
            raise AttributeError(absent(self, name, GROUPS | columns))

    def _only(self, columns: Sequence[str]) -> GroupBy[R]:
        """Return the groups, of records that may lack other columns than these."""
        narrow = self._records().narrowed([*self._names, *columns])
        return self if narrow is self._records() else GroupBy(lambda: narrow, self._names, self._columns)

    def _count(self, name: str) -> Any:
        return self._typed(self._counts(), "count", None, name)

    def _of(self, aggregate: str, column: str, name: str) -> Any:
        """Return an aggregate of a column in each group, in a column of this name."""
        values = self._values(aggregate, column)
        has_nulls = are_left_out(of := self._records().types.get(column))
        refuse_type(aggregate, column, of)
        if aggregate == "count_distinct":
            made = values.distinct().count()
        elif aggregate == "max" and has_nulls:
            made = largest(values)
        elif aggregate == "max":
            made = values.max()
            if not of:
                refuse_nulls(column, made)
        elif aggregate == "min":  # a null is greater than every other value, so it is the smallest of nulls alone
            made = values.min()
        elif of is not None and is_narrow_decimal(of):
            made = sums_of_decimals(values, column, of)
        else:
            made = (self._derived(with_zeros, column) if has_nulls else values).sum()
        if aggregate == "mean":
            counts = self._derived(presence, column).sum() if has_nulls else self._counts()
            # Each group has one sum and one count, so the join makes one record of each.
            made = made.join_map(counts, lambda *both: (*both[:-2], quotient(*both[-2:])), keys=len(self._key))
        return self._typed(made, aggregate, column, name)

    def _typed(self, made: Any, aggregate: str, column: str | None, name: str) -> Any:
        """Return what an aggregate of a column makes, with names and types of columns."""
        types, of = self._records().types, column or name
        named = made.named(*self._key, of).named(*self._key, name)  # by name, and then another name
        return with_types(named, {**types, name: type_of(aggregate, types.get(of))})

    def _without_key(self, made: Any) -> R:
        """Return an aggregate without the column that is equal in all records."""
        result: R = made if self._names else made.select(*made.names[1:])
        return result

    def _counts(self) -> Any:
        """Return (group, number of records), for which only the groups are indexed, unless the records are already."""
        whole = self._records()
        is_indexed = whole.names is not None and whole.names[: whole.keys] == self._names
        return (whole if is_indexed else self._selected()).count()

    def _values(self, what: str, column: str) -> Any:
        """Return (group, value of a column), indexed by group. Raises BuildError for what is not another column."""
        known_columns(self._columns, what, [column])
        if column in self._names:
            raise refusal(what, f"{column!r} is a column of the groups")
        if column not in self._indexed:
            whole = self._records()
            is_whole = whole.names == (*self._names, column) and bool(self._names)
            self._indexed[column] = whole.keyed_by(*self._names) if is_whole else self._selected(column)
        return self._indexed[column]

    def _derived(self, make: Callable[[Any], Any], column: str) -> Any:
        """Return what a function makes of (group, value of a column), the same each time."""
        if (make, column) not in self._indexed:
            self._indexed[make, column] = make(self._indexed[column])
        return self._indexed[make, column]

    def _selected(self, *columns: str) -> Any:
        """Return the columns of the groups, or the constant instead, as the key, and these columns."""
        whole = self._records()
        if self._names:
            return whole.select(*self._names, *columns, keys=len(self._names))
        narrow = whole.narrowed(columns or (whole.names or ())[:1])
        computed: dict[str, Any] = {self._key[0]: lambda _: 0} | dict(zip(columns, columns))
        return narrow.select(**computed)


class Windows(GroupBy[R]):
    """The windows of event time that the records of a collection belong to: groups of the records of each window.

    Every result has the columns `window_start` and `window_end`; the end is not part of the window.

    >>> from differential.session import Relation, tumbling
    >>> def windows(scope):
    ...     columns = np.array(["a", "b", "a"]), np.array([3, 4, 70])
    ...     return Relation.of(scope, *columns).named("page", "minute").window(tumbling(60), at="minute")
    >>> example(lambda scope: windows(scope).count())
    [((0, 60, 2), 1), ((60, 120, 1), 1)]
    >>> example(lambda scope: windows(scope).count_distinct("page"))
    [((0, 60, 2), 1), ((60, 120, 1), 1)]
    >>> example(lambda scope: windows(scope).group_by("page").max("minute"))
    [(('a', 0, 60, 3), 1), (('a', 60, 120, 70), 1), (('b', 0, 60, 4), 1)]
    >>> example(lambda scope: windows(scope).sum("minute").concat(windows(scope).min("minute")))
    [((0, 60, 3), 1), ((0, 60, 7), 1), ((60, 120, 70), 2)]
    >>> example(lambda scope: windows(scope).mean("minute"))
    [((0, 60, 3.5), 1), ((60, 120, 70.0), 1)]
    >>> example(lambda scope: windows(scope).aggregate(visits="count", last=("minute", "max")))
    [((0, 60, 2, 4), 1), ((60, 120, 1, 70), 1)]
    >>> example(lambda scope: windows(scope).rows())
    [(('a', 3, 0, 60), 1), (('a', 70, 60, 120), 1), (('b', 4, 0, 60), 1)]
    """

    def __init__(self, relation: R, kind: Kind, at: str | None) -> None:
        refuse_other_kinds(kind)
        column = relation.event_time if at is None else at
        if column is None:
            raise refusal(
                "window",
                "no column of event times is known here: window(..., at='column') names it, and "
                "db.table(...).event_time('column') does so for all views",
            )
        names = known_columns(relation.names, "window", [column], unnamed=relation._unnamed)
        refuse_windows(names)
        super().__init__(self.rows, WINDOW, (*names, *WINDOW))
        self._whole, self._kind, self._column = relation, kind, column

    def rows(self, *by: str) -> R:
        """Return each record once for each of its windows; sessions are those of records that are equal in `by`."""
        known_columns(self._whole.names, "rows", by)
        return assigned(self._whole, self._kind, self._column, by)

    def group_by(self, *names: str) -> GroupBy[R]:
        """Return the groups of records that are equal in these columns and in the same window."""
        rows = self.rows(*names if isinstance(self._kind, Sessions) else ())
        return GroupBy(lambda: rows, (*names, *WINDOW), rows.names)


def _unused(columns: Sequence[str]) -> str:
    name = ALL
    while name in columns:
        name += "'"
    return name
