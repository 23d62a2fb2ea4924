"""Operators whose records have the columns of the collection, and so their names.

>>> from differential.session.relation import Relation
>>> def hops(scope):
...     roads = Relation.of(scope, np.array([1, 2, 3]), np.array([2, 3, 1])).named("start", "end")
...     origin = Relation.of(scope, np.array([1]), np.array([0])).named("place", "hops")
...     return origin.iterate(
...         lambda near: near.join(roads, on={"place": "start"})
...         .select(place="end", hops=lambda r: r.hops + 1)
...         .concat(origin)
...         .min()
...     )
>>> example(hops)
[((1, 0), 1), ((2, 1), 1), ((3, 2), 1)]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from differential.operators import (
    aggregates as _aggregates,
    argmin as _argmin,
    concat as _concat,
    consolidate as _consolidate,
    delay as _delay,
    distinct as _distinct,
    inspect as _inspect,
    iterate as _iterate,
    join as _join,
    negate as _negate,
    sets as _sets,
)
from differential.session.joined import On, left_joined, with_match
from differential.session.named import NamedCollection
from differential.session.near import refuse_other_columns, refuse_other_types, refuse_stranger
from differential.session.nulls import with_nulls_of
from timely.errors import BuildError
from timely.lowlevel import user_origin

A = TypeVar("A", bound="Alike")
P = ParamSpec("P")


def of_some(operator: Callable[Concatenate[Any, P], Any]) -> Callable[Concatenate[A, P], A]:
    """Return an operator as a method that keeps the names, because its records are records of the collection."""

    @wraps(operator)
    def method(self: A, /, *arguments: P.args, **options: P.kwargs) -> A:
        return self._alike(operator(self, *arguments, **options))

    return method


def of_all(operator: Callable[Concatenate[Any, P], Any]) -> Callable[Concatenate[A, P], A]:
    """Return an operator as a method that keeps the names, because its records are records of the collections.

    It raises BuildError where another one is known to have another number of columns, these in another order, or other
    types. Where only its key has a different number of columns, it is keyed like this one. A column that may have nulls
    in one of them may have nulls in the result.
    """

    @wraps(operator)
    def method(self: A, /, *others: P.args, **options: P.kwargs) -> A:
        whole = with_nulls_of(self, [other for other in others if isinstance(other, Alike)])
        fitted = [whole._fitted(operator.__name__, other) for other in others]
        return cast(A, whole._alike(operator(whole, *fitted, **options)))

    return method


class Alike(NamedCollection):
    """A collection with names of columns, which these operators keep."""

    def refuse_positions(self, what: str, names: Sequence[str] | None = None) -> None:
        """Raise BuildError if the columns have another order than in their table, and `what` takes them by position.

        `names` are new names, if it gives any: those that the columns have already take nothing by position.
        """
        if self.declared is not None and self.names is not None and self.names not in (self.declared, names):
            wanted = ", ".join(map(repr, self.declared))
            raise BuildError(
                f"{what} (at {user_origin()}) takes columns by position, and here they are in the order "
                f"{', '.join(self.names)}, because the key of a table comes first: select({wanted}) puts them in the "
                "order of the table"
            )

    def __bool__(self) -> bool:
        raise TypeError("a collection is neither true nor false: what it has is known only once the dataflow runs")

    def _fitted(self, what: str, other: Any) -> Any:
        """Return another collection with the key of this one, if it has names and the same columns.

        Raises BuildError if it is known to have another number of columns, these in another order, or other types.
        """
        if not isinstance(other, Alike):
            return other
        refuse_other_columns(what, self.names, other.names)
        other = with_nulls_of(other, [self])
        refuse_other_types(what, self.types, other.types, zip(self.names or (), other.names or ()), are_keys=False)
        if other.names is None or other.keys == self.keys:
            return other
        return other.keyed_by(*other.names[: self.keys])

    def iterate(self, body: Callable[[Self], Self], *, limit: int | None = None, name: str = "iterate") -> Self:
        """Return the fixed point of `body`, which receives a collection with the names here, and returns the next one.

        Everything else is as in `differential.Collection.iterate`. Raises BuildError where the next one is known to
        have another number of columns, or these in another order.
        """

        def named(inner: Self) -> Self:
            result: Self = self._fitted("iterate", body(self._alike(inner)))
            return result

        return self._alike(_iterate.iterate(self, named, limit=limit, name=name))

    def distinct(self, *, name: str = "distinct") -> Self:
        """Return each record once."""
        made = self._alike(_distinct.distinct(self, name=name))
        made.is_distinct = True
        return made

    def semijoin(self, keys: Any, *, on: On | None = None, name: str = "semijoin") -> Self:
        """Return the records whose key is in `keys`, a collection of keys, however often it occurs there.

        `on` names the columns that are to be equal, as in `join`: then `keys` may have other columns too.

        >>> from differential.session.relation import Relation
        >>> def program(scope):
        ...     orders = Relation.of(scope, np.array([1, 2]), np.array([30, 5])).named("customer", "total")
        ...     visits = Relation.of(scope, np.array([7, 8]), np.array([1, 1])).named("minute", "customer")
        ...     return orders.semijoin(visits, on="customer")
        >>> example(program)
        [((1, 30), 1)]
        """
        left, found = with_match(_join.semijoin, self, keys, on, name)
        return cast(Self, left._alike(found))

    def antijoin(self, keys: Any, *, on: On | None = None, name: str = "antijoin") -> Self:
        """Return the records whose key is not in `keys`, as `semijoin` returns those whose key is.

        >>> from differential.session.relation import Relation
        >>> def program(scope):
        ...     orders = Relation.of(scope, np.array([1, 2]), np.array([30, 5])).named("customer", "total")
        ...     visits = Relation.of(scope, np.array([7, 8]), np.array([1, 1])).named("minute", "customer")
        ...     return orders.antijoin(visits, on="customer")
        >>> example(program)
        [((2, 5), 1)]
        """
        left, found = with_match(_join.antijoin, self, keys, on, name)
        return cast(Self, left._alike(found))

    def left_join(
        self, other: Self, *, on: On, missing: Mapping[str, Any] | None = None, name: str = "left_join"
    ) -> Self:
        """Return the records of `join`, and those here that match none, with the values of `missing` in other columns.

        A value is of the type of its column, or gets it if that is a column of a table and the value fits exactly. A
        column that is not in `missing` is null there. If its type is not known before there are rows, `missing` has a
        column of one null, such as `typed([None], "text?")` of `differential.frames`; otherwise this raises BuildError.

        >>> from differential.session.relation import Relation
        >>> def program(scope):
        ...     orders = Relation.of(scope, np.array([1, 2]), np.array([30, 5])).named("customer", "total")
        ...     people = Relation.of(scope, np.array([1]), np.array(["Rome"])).named("customer", "city")
        ...     return orders.left_join(people, on="customer", missing={"city": ""})
        >>> example(program)
        [((1, 30, 'Rome'), 1), ((2, 5, ''), 1)]
        """
        refuse_stranger("left_join", other)
        return left_joined(self, other, on, missing, name)

    concat = of_all(_concat.concat)
    union = of_all(_sets.union)
    intersect = of_all(_sets.intersect)
    except_ = of_all(_sets.except_)
    symmetric_difference = of_all(_sets.symmetric_difference)

    consolidate = of_some(_consolidate.consolidate)
    threshold = of_some(_distinct.threshold)
    negate = of_some(_negate.negate)
    delay = of_some(_delay.delay)
    inspect = of_some(_inspect.inspect)
    min = of_some(_aggregates.min)
    max = of_some(_aggregates.max)
    top_k = of_some(_aggregates.top_k)
    argmin = of_some(_argmin.argmin)
    argmax = of_some(_argmin.argmax)
