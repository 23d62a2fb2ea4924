"""Collections whose columns have names.

A `Relation` is a `Collection`, and its columns keep their positions: names are for the person who writes a definition.
`filter`, and the operators of `differential.session.alike`, keep them. After `map`, `join_map` or a function over
collections they are unknown, and `named` gives them again.

>>> def program(scope):
...     orders = Relation.of(scope, np.array([1, 2, 1]), np.array([30, 5, 20])).named("customer", "total")
...     return orders.filter(lambda r: r.total > 10).group_by("customer").sum("total")
>>> example(program)
[((1, 50), 1)]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, cast

from differential.arrangement.arranged import Arranged
from differential.arrangement.core import records_of
from differential.collection import Arrangement, Collection
from differential.operators import filter as _filter, join as _join
from differential.operators.attempt import Attempt
from differential.session.alike import Alike
from differential.session.checked import checked, checked_by_name, nullable_results
from differential.session.group_by import GroupBy, Windows
from differential.session.guesses import RELATION, absent
from differential.session.joined import On, joined_on
from differential.session.named import with_types
from differential.session.near import (
    known_columns,
    lost_names,
    names_twice,
    refuse_keys,
    refuse_names,
    refuse_other_types,
    refuse_stranger,
)
from differential.session.row import Row, by_name, chosen, is_of_the_library, of_row, refuse_values
from differential.session.windows import Kind
from timely import Scope, Stream
from timely.errors import BuildError
from timely.lowlevel import refusal, user_origin

P = ParamSpec("P")


class Relation(Alike):
    """A collection whose columns may have names.

    >>> def program(scope):
    ...     people = Relation.of(scope, np.array(["ann", "bob"]), np.array([30, 40])).named("name", "age")
    ...     return people.select("name", born=lambda r: 2026 - r.age)
    >>> example(program)
    [(('ann', 1996), 1), (('bob', 1986), 1)]
    >>> def twice(scope):
    ...     numbers = Relation.of(scope, np.array([3, 4]), np.array([1, 1])).named("x", "y")
    ...     return numbers.concat(numbers).filter(lambda r: r.x > 3).distinct().select("x")
    >>> example(twice)
    [((4,), 1)]
    """

    def arrange_by_key(self) -> IndexedRelation:  # type: ignore[override]
        """Return this relation indexed by key. The operators of the index keep the names that those here keep.

        >>> def program(scope):
        ...     orders = Relation.of(scope, np.array([1, 2, 1]), np.array([30, 5, 20])).named("customer", "total")
        ...     by_customer = orders.arrange_by_key()
        ...     return by_customer.max().join(by_customer.min().select("customer", least="total"))
        >>> example(program)
        [((1, 30, 20), 1), ((2, 5, 5), 1)]
        """
        index = cast(IndexedRelation, super().arrange_by_key()).like(self)
        self._arrangement = cast(Any, index)
        return index

    def indexed(self, arranged: Arranged) -> IndexedRelation:  # type: ignore[override]
        """Return the arrangement of a relation that has the given parts."""
        return IndexedRelation(*arranged)

    def named(self, *names: str) -> Relation:
        """Return the same collection with these names of columns, one for each position.

        Raises BuildError where two are equal, or where it is known that there are more or fewer columns.

        >>> example(lambda scope: Relation.of(scope, np.array([3])).named("x").filter(lambda x: x > 2))
        [((3,), 1)]
        """
        refuse_names(self.names, names, self.keys)
        self.refuse_positions("named", names)
        # A copy shares the stream and the index, so a name costs nothing. What narrows it knows the former names.
        relation = copy(self)
        relation.types = {new: self.types[old] for old, new in zip(self.names or (), names) if old in self.types}
        relation.names, relation.declared, relation._narrow = names, None, None
        renamed = dict(zip(self.names or names, names))
        relation.event_time = renamed.get(self.event_time or "")
        return relation

    def at(self, column: str | None) -> Relation:
        """Return the same collection with another column of event times, or none.

        >>> from differential.session import sessions, tumbling
        >>> def program(scope):
        ...     visits = Relation.of(scope, np.array([1, 2]), np.array([30, 65])).named("page", "minute").at("minute")
        ...     return visits.window(tumbling(60)).count()
        >>> example(program)
        [((0, 60, 1), 1), ((60, 120, 1), 1)]
        """
        if column is not None:
            self._known("at", [column])
        relation = copy(self)
        relation.event_time = column
        return relation

    def keyed_by(self, *names: str) -> Relation:
        """Return the collection with these columns first, as its key. If they are its key, nothing is done.

        >>> def program(scope):
        ...     return Relation.of(scope, np.array([1, 2]), np.array([7, 7])).named("a", "b").keyed_by("b").count()
        >>> example(program)
        [((7, 2), 1)]
        """
        known, chosen = self._known("keyed_by", names), list(names)
        if list(known[: self.keys]) == chosen:
            return self
        return self.select(*chosen, *(name for name in known if name not in chosen), keys=len(chosen))

    def select(self, /, *names: str, keys: int = 1, **computed: Callable[[Row], Any] | str) -> Relation:
        """Return these columns, and others computed from a `Row` of whole columns; a text renames a column.

        >>> def program(scope):
        ...     sizes = Relation.of(scope, np.array([1, 2]), np.array([3, 4])).named("width", "height")
        ...     return sizes.select(area=lambda r: r.width * r.height, high="height")
        >>> example(program)
        [((3, 3), 1), ((8, 4), 1)]
        """
        if not names and not computed:
            raise BuildError(f"select (at {user_origin()}) needs a column, as in select('kept', new='old')")
        refuse_keys(keys, len(names) + len(computed))
        refuse_values(computed)
        renamed = [made for made in computed.values() if isinstance(made, str)]
        self._known("select", [*names, *(each for each in dict.fromkeys(renamed) if each not in names)])
        # A function may read any column.
        whole = self if len(renamed) < len(computed) else self.narrowed([*names, *renamed])
        known = whole.names or ()
        kept = dict(zip(names, names)) | computed
        made = [known.index(each) if isinstance(each, str) else of_row(known, each) for each in kept.values()]
        function = checked(known, chosen(known, made), *computed.values(), types=whole.types)
        types = {new: whole.types.get(old) for new, old in kept.items() if isinstance(old, str)}
        types |= {[*kept][place]: of for place, of in nullable_results(known, chosen(known, made), whole.types).items()}
        made_of = with_types(whole.map(function, keys=keys, name="select").named(*names, *computed), types)
        return made_of.at(self.event_time) if self.event_time in names else made_of

    def map(self, function: Callable[..., Any], *, keys: int = 1, name: str = "map") -> Self:
        """Return the collection of `function` of every record, as `differential.Collection.map` does.

        Of a collection of several named columns, a function with one parameter receives a `Row`.

        >>> def program(scope):
        ...     orders = Relation.of(scope, np.array([1, 2]), np.array([30, 5])).named("customer", "total")
        ...     return orders.map(lambda r: (r.total, r.customer))
        >>> example(program)
        [((5, 2), 1), ((30, 1), 1)]
        """
        made = function if is_of_the_library(function) else checked_by_name(self, "map", function)
        return super().map(made, keys=keys, name=name)

    def filter(self, predicate: Callable[..., Any], *, name: str = "filter") -> Relation:
        """Return the records that satisfy `predicate`.

        Of several named columns, a predicate with one parameter receives a `Row`. Any other receives the columns.

        >>> def program(scope):
        ...     orders = Relation.of(scope, np.array([1, 2]), np.array([30, 5])).named("customer", "total")
        ...     return orders.filter(lambda r: r.total > 10)
        >>> example(program)
        [((1, 30), 1)]
        """
        return self._alike(_filter.filter(self, checked_by_name(self, "filter", predicate), name=name))

    def attempt(self, function: Callable[..., Any], *, keys: int = 1, name: str = "attempt") -> Attempt[Relation]:
        """Return `results`, as those of `map`, and `rejects`, the records for which `function` raises an error.

        A function with one parameter receives a `Row`, as that of `filter` does. `rejects` has the columns `record`,
        `error` and `line`, the line of the program that has raised the error.

        >>> def program(scope):
        ...     orders = Relation.of(scope, np.array(["ann", "bob"]), np.array([30, 0])).named("customer", "pieces")
        ...     return orders.attempt(lambda r: (r.customer, [60 // each for each in r.pieces.tolist()])).results
        >>> example(program)
        [(('ann', 2), 1)]
        """
        return Attempted(self, by_name("attempt", self.names, function, self._unnamed), keys, name)

    def join(self, other: Collection | Arrangement, *, on: On | None = None, name: str = "join") -> Relation:  # type: ignore[override]
        """Return the records (key, other columns here, other columns of `other`) of pairs with equal keys.

        `on` names the columns that are to be equal, or maps names here to names in `other`. Without it these are the
        keys of both. A side that has this key already is not indexed again. Another side is indexed with the columns
        that the next `select` or `group_by` needs, and for any other operator with all.

        Raises BuildError where a column besides the key has the same name in both: rename it with `select`.

        >>> def program(scope):
        ...     orders = Relation.of(scope, np.array([1, 2]), np.array([30, 5])).named("customer", "total")
        ...     cities = Relation.of(scope, np.array(["Rome"]), np.array([1])).named("city", "id")
        ...     return orders.join(cities, on={"customer": "id"})
        >>> example(program)
        [((1, 30, 'Rome'), 1)]
        """
        refuse_stranger("join", other)
        other = records_of(other)
        if on is not None:
            if not isinstance(other, Relation):
                raise refusal("join", "`on` needs two collections of named columns")
            return joined_on(self, other, on, name)
        if isinstance(other, Relation):
            pairs = zip((self.names or ())[: self.keys], other.names or ())
            refuse_other_types("join", self.types, other.types, pairs, are_keys=True)
        result = cast(Relation, _join.join(self, cast(Self, other), name=name))
        if self.names is None or not isinstance(other, Relation) or other.names is None:
            return result
        columns = (*self.names, *other.names[other.keys :])
        if names_twice(columns):
            result._unnamed = lost_names(columns)
            return result
        # A column of the left side whose type is not known has none, even if the right side has one of its name.
        return with_types(result.named(*columns), {**other.types, **dict.fromkeys(self.names), **self.types})

    def narrowed(self, names: Sequence[str]) -> Relation:
        """Return a relation with at least these columns, and without others that a join then need not index.

        >>> def program(scope):
        ...     orders = Relation.of(scope, *np.array([[1, 2], [7, 8], [5, 6]])).named("id", "customer", "price")
        ...     people = Relation.of(scope, np.array([7]), np.array(["Rome"])).named("customer", "city")
        ...     return orders.join(people, on="customer").narrowed(["city", "id"])
        >>> example(program)
        [((7, 1, 'Rome'), 1)]
        """
        is_made = self._stream is not None or self._arrangement is not None
        has_all = set(names) >= set(self.names or ())
        return self if self._narrow is None or is_made or has_all else self._narrow(names)

    def group_by(self, *names: str) -> GroupBy[Relation]:
        """Return the groups of records that are equal in these columns, of which `sum` and others make collections.

        Without columns, all records are one group: its results have one record, or none if there are no records.

        >>> def program(scope):
        ...     orders = Relation.of(scope, np.array([1, 2, 1]), np.array([30, 5, 20])).named("customer", "total")
        ...     return orders.group_by("customer").count()
        >>> example(program)
        [((1, 2), 1), ((2, 1), 1)]
        >>> def spent(scope):
        ...     orders = Relation.of(scope, np.array([1, 2]), np.array([30, 5])).named("customer", "total")
        ...     return orders.group_by().sum("total")
        >>> example(spent)
        [((35,), 1)]
        """
        self._known("group_by", names)
        return GroupBy(lambda: self, names, self.names)

    def window(self, kind: Kind, *, at: str | None = None) -> Windows[Relation]:  # type: ignore[override]
        """Return the windows of event time that the records belong to: `tumbling`, `sliding` or `sessions`.

        `at` is the column of event times, by default that of the table. Raises BuildError if there is none.

        >>> from differential.session import sessions, tumbling
        >>> def program(scope):
        ...     visits = Relation.of(scope, np.array(["a", "a"]), np.array([30, 65])).named("page", "minute")
        ...     return visits.window(sessions(40), at="minute").group_by("page").count()
        >>> example(program)
        [(('a', 30, 105, 2), 1)]
        """
        return Windows(self, kind, at)

    def _alike(self, made: object) -> Relation:
        relation = cast(Relation, made)
        relation = relation if self.names is None else relation.named(*self.names).at(self.event_time)
        # After `named`, which forgets all three.
        relation._unnamed, relation.declared, relation.types = self._unnamed, self.declared, self.types
        return relation

    def _known(self, what: str, names: Sequence[Any]) -> tuple[str, ...]:
        """Return the names of all columns; raise BuildError unless the given ones are among them."""
        return known_columns(self.names, what, names, unnamed=self._unnamed)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(absent(self, name, RELATION, self.names or ()))

        def __getitem__(self, name: Any) -> Any:
            raise TypeError(
                f"a collection cannot be indexed with {name!r:.80}: select('column') takes columns, and "
                "filter(lambda r: r.column > 0) takes records"
            )


class Attempted(Attempt[Relation]):
    """An attempt whose rejects have names of columns."""

    @property
    def rejects(self) -> Relation:
        return super().rejects.named("record", "error", "line")


def _of_records(
    operator: Callable[Concatenate[Relation, P], Relation],
) -> Callable[Concatenate[IndexedRelation, P], Relation]:
    """Return an operator of a relation as a method of its index, which it reads."""

    @wraps(operator)
    def method(self: IndexedRelation, /, *arguments: P.args, **options: P.kwargs) -> Relation:
        return operator(self.as_collection(), *arguments, **options)

    return method


class IndexedRelation(Arrangement):
    """A relation, indexed by key: what operators make of it are relations, with the names that a relation keeps."""

    _labels: Relation | None = None
    """A relation without records that has the names of the columns, if they are known."""

    def like(self, relation: Relation | None) -> IndexedRelation:
        """Return this index with the names of a relation. Indexes with different names share all else."""
        if relation is None or relation.names is None:
            return self
        if self._labels is not None and self._labels.names == relation.names:
            return self
        index = self if self._labels is None else copy(self)
        index._labels = copy(relation)
        index._labels.__dict__.update(_stream=None, _make_stream=None, _outside=None, _arrangement=None, _narrow=None)
        return index

    def enter(self, scope: Scope) -> IndexedRelation:
        """Return this index inside an inner scope, with the same names."""
        return super().enter(scope).like(self._labels)

    def as_collection(self) -> Relation:
        """Return the relation of the records arranged here."""
        relation = Relation.arranged(cast(Any, self))
        return relation if self._labels is None else self._labels._alike(relation)

    def with_updates(self, stream: Stream, keys: int) -> Relation:
        """Return a relation over other updates."""
        return Relation(stream, keys)

    join = _of_records(Relation.join)  # type: ignore[assignment]
    semijoin = _of_records(Relation.semijoin)
    antijoin = _of_records(Relation.antijoin)
    min = _of_records(Relation.min)
    max = _of_records(Relation.max)
    argmin = _of_records(Relation.argmin)
    argmax = _of_records(Relation.argmax)
    top_k = _of_records(Relation.top_k)
    distinct = _of_records(Relation.distinct)
    threshold = _of_records(Relation.threshold)
