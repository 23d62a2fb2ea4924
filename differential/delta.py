"""Delta queries: joins of several collections that keep nothing but the collections' indexes.

The changes of Q = R1 ⋈ R2 ⋈ … ⋈ Rn are the sum, over i, of the changes of Ri joined with all the others as they were
then: those before Ri as of that change's time included, those after it excluded. So each combination of changes is
made exactly once: by its latest member and, among those at one time, by the last of them. (Ammar, McSherry, Salihoglu
and Joglekar, "Distributed Evaluation of Subgraph Queries Using Worst-case Optimal Low-Memory Dataflows", VLDB 2018.)

A change on its way through the other collections is a prefix; `Prefixes` are prefixes that know their initial times.
`half_join` matches them with a collection. `extend` adds a column by which several collections are joined at once, in
the manner of worst-case-optimal joins (Ngo, Porat, Ré and Rudra, PODS 2012): for each prefix the collection that has
least to offer proposes values, and all the others validate them. So the work is that of the least, prefix by prefix.
A worker by itself does all of that in one operator (`differential.operators.extend_at_hand`).

Collections are multisets: a result occurs as often as the product of its parts says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from differential.arrangement import Arrangement
from differential.collection import Collection
from differential.operators.extend_at_hand import Offer, extend_at_hand
from differential.operators.half_join import count_rows, half_join, split
from differential.operators.linear import linear
from differential.updates import Updates
from timely.data.container import as_columns, as_mask
from timely.data.user_functions import call, consult
from timely.errors import BuildError


class AltNeu(Enum):
    """Which updates at its own initial time a prefix sees: none (ALT: the collection as it was), or all (NEU)."""

    ALT = False
    NEU = True

    @classmethod
    def of(cls, relation: int, changing: int) -> AltNeu:
        """Return how the changes of the relation numbered `changing` are to see the one numbered `relation`.

        >>> AltNeu.of(0, changing=1), AltNeu.of(2, changing=1)
        (<AltNeu.NEU: True>, <AltNeu.ALT: False>)
        """
        return cls.NEU if relation < changing else cls.ALT


class Prefixes:
    """Changes of a collection, on their way through others, each with its initial time.

    The initial times are in hidden columns, the last ones, where times have several coordinates.
    """

    def __init__(self, prefixes: Collection) -> None:
        """Take prefixes with hidden columns; `Prefixes.of` makes them."""
        self._prefixes = prefixes
        self._hidden = 0 if prefixes.scope.width == 1 else prefixes.scope.width

    @classmethod
    def of(cls, collection: Collection) -> Prefixes:
        """Return the changes of a collection.

        >>> example(lambda scope: Prefixes.of(Collection.of(scope, np.array([1, 2]))).results())
        [((1,), 1), ((2,), 1)]
        """
        if collection.scope.width == 1:
            return cls(collection)

        def with_times(updates: Updates) -> Updates:
            index = updates.time_index if len(updates.time_index) else np.zeros(len(updates), np.int64)
            return updates.with_columns((*updates.columns, *updates.times[index].T.copy()))

        return cls(linear(collection, with_times, name="changes"))

    def map(self, function: Callable[..., Any], *, keys: int = 1, name: str = "map") -> Prefixes:
        """Return `function(*columns)` of each, with its first `keys` columns as key.

        >>> example(lambda scope: Prefixes.of(Collection.of(scope, np.array([1, 2]))).map(lambda x: -x).results())
        [((-2,), 1), ((-1,), 1)]
        """

        def apply(updates: Updates) -> Updates:
            own, initial = split(updates.columns, self._hidden)
            return updates.with_columns((*as_columns(call(function, own), len(updates)), *initial))

        return Prefixes(linear(self._prefixes, apply, keys=keys, name=name))

    def filter(self, predicate: Callable[..., Any], *, name: str = "filter") -> Prefixes:
        """Return those for which `predicate(*columns)` is true.

        >>> example(lambda scope: Prefixes.of(Collection.of(scope, np.array([1, 2]))).filter(lambda x: x > 1).results())
        [((2,), 1)]
        """

        def apply(updates: Updates) -> Updates:
            return updates.take(as_mask(consult(predicate, split(updates.columns, self._hidden)[0]), len(updates)))

        return Prefixes(linear(self._prefixes, apply, name=name))

    def concat(self, *others: Prefixes) -> Prefixes:
        """Return these and others.

        >>> def twice(scope):
        ...     changes = Prefixes.of(Collection.of(scope, np.array([1])))
        ...     return changes.concat(changes).results()
        >>> example(twice)
        [((1,), 2)]
        """
        return Prefixes(self._prefixes.concat(*(other._prefixes for other in others))) if others else self

    def half_join(
        self, arrangement: Arrangement, function: Callable[..., Any], sees: AltNeu = AltNeu.NEU, *, keys: int = 1
    ) -> Prefixes:
        """Return `function(*key, *rest, *value)` for each and each record of `arrangement` that it sees.

        >>> def lengths_two(scope):
        ...     edges = Collection.of(scope, np.array([1, 2]), np.array([2, 3]))
        ...     by_target = Prefixes.of(edges).map(lambda source, target: (target, source))
        ...     return by_target.half_join(edges.arrange_by_key(), lambda b, a, c: (a, b, c)).results()
        >>> example(lengths_two)
        [((1, 2, 3), 1)]
        """
        return Prefixes(half_join(self._prefixes, arrangement, function, inclusive=sees.value, keys=keys))

    def count(
        self, arrangement: Arrangement, function: Callable[..., Any], sees: AltNeu = AltNeu.NEU, *, keys: int = 1
    ) -> Prefixes:
        """Return `function(*key, *rest, number)` for each whose key `arrangement` has, with the number of rows there.

        The number is no less than how many records are seen. See `differential.operators.half_join.count_rows`.

        >>> def degrees(scope):
        ...     edges = Collection.of(scope, np.array([1, 1]), np.array([2, 3]))
        ...     nodes = Prefixes.of(Collection.of(scope, np.array([1, 2])))
        ...     return nodes.count(edges.arrange_by_key(), lambda node, number: (node, number)).results()
        >>> example(degrees)
        [((1, 2), 1)]
        """
        return Prefixes(count_rows(self._prefixes, arrangement, function, inclusive=sees.value, keys=keys))

    def results(self) -> Collection:
        """Return the collection that these are the changes of: without initial times.

        >>> example(lambda scope: Prefixes.of(Collection.of(scope, np.array([1]))).results())
        [((1,), 1)]
        """
        if not self._hidden:
            return self._prefixes
        return linear(
            self._prefixes, lambda updates: updates.with_columns(updates.columns[: -self._hidden]), name="results"
        )


class Relation:
    """A collection of records (key, value), indexed for proposing values (by key) and for validating them (by both).

    The indexes are made once, whatever number of queries use the relation.
    """

    def __init__(self, collection: Collection) -> None:
        """Take a collection of two columns, key and value."""
        self._records = collection.map(lambda *columns: columns, keys=2)
        self._proposing = collection

    def extension(self, key: int, sees: AltNeu = AltNeu.NEU) -> Extension:
        """Return how this relation extends prefixes that have its key in column `key`.

        >>> def paths(scope):
        ...     edges = Relation(Collection.of(scope, np.array([1, 2, 2]), np.array([2, 3, 4])))
        ...     pairs = Prefixes.of(Collection.of(scope, np.array([1]), np.array([2])))
        ...     return extend(pairs, [edges.extension(1)]).results()
        >>> example(paths)
        [((1, 2, 3), 1), ((1, 2, 4), 1)]
        """
        return Extension(self, key, sees)

    @property
    def by_key(self) -> Arrangement:
        """The values by key."""
        return self._proposing.arrange_by_key()

    @property
    def by_both(self) -> Arrangement:
        """The records, as keys."""
        return self._records.arrange_by_key()


@dataclass(frozen=True)
class Extension:
    """A relation, the column of prefixes that is its key, and which of its updates they see.

    `extend` is made of three steps: which relation has least for a prefix, what it has, and what others have, too.

    >>> def program(scope):
    ...     edges = Relation(Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3])))
    ...     known = Relation(Collection.of(scope, np.array([1, 2]), np.array([3, 3])))
    ...     nodes = Prefixes.of(Collection.of(scope, np.array([1, 2]))).map(lambda node: (node, 99, -1))
    ...     counted = edges.extension(0).count(nodes, place=7)
    ...     counted.results().inspect(lambda record, time, diff: print(record))
    ...     return known.extension(0).validate(edges.extension(0).propose(counted, without=2)).results()
    >>> example(program)
    (1, 2, 7)
    (2, 1, 7)
    [((1, 3), 1), ((2, 3), 1)]
    """

    relation: Relation
    key: int
    sees: AltNeu

    def count(self, prefixes: Prefixes, place: int) -> Prefixes:
        """Return the prefixes that have extensions here, each with which relation has fewest.

        The last two columns are the least number of extensions so far, and whose; they become this one's, numbered
        `place`, if that is less.
        """

        def least(_: Any, *columns: Any) -> Any:
            *prefix, number, whose, found = columns
            return (*prefix, np.minimum(number, found), np.where(found < number, place, whose))

        by_key = prefixes.map(lambda *columns: (columns[self.key], *columns))
        return by_key.count(self.relation.by_key, least, self.sees)

    def propose(self, prefixes: Prefixes, without: int = 0) -> Prefixes:
        """Return each prefix, less its last `without` columns, with each value that this relation has for it."""
        by_key = prefixes.map(lambda *columns: (columns[self.key], *columns[: len(columns) - without]))
        return by_key.half_join(self.relation.by_key, lambda _, *columns: columns, self.sees)

    def validate(self, prefixes: Prefixes) -> Prefixes:
        """Return the prefixes whose last column is a value that this relation has for them."""
        by_both = prefixes.map(lambda *columns: (columns[self.key], columns[-1], *columns), keys=2)
        return by_both.half_join(self.relation.by_both, lambda _, __, *columns: columns, self.sees)


def extend(prefixes: Prefixes, extensions: Sequence[Extension]) -> Prefixes:
    """Return each prefix with each value that all of `extensions` have for it, as one more column.

    Raises BuildError where there are no extensions.

    >>> def common_neighbours(scope):
    ...     edges = Relation(Collection.of(scope, np.array([1, 1, 2, 2]), np.array([2, 3, 3, 4])))
    ...     pairs = Prefixes.of(Collection.of(scope, np.array([1]), np.array([2])))
    ...     return extend(pairs, [edges.extension(0), edges.extension(1)]).results()
    >>> example(common_neighbours)
    [((1, 2, 3), 1)]
    """
    if not extensions:
        raise BuildError("extend needs a relation that has values for the prefixes")
    if len(extensions) == 1:
        return extensions[0].propose(prefixes)
    if prefixes._prefixes.scope.peers > 1 or prefixes._hidden:
        return _step_by_step(prefixes, extensions)
    offers = [Offer(each.key, each.relation.by_key, each.sees.value) for each in extensions]
    return Prefixes(extend_at_hand(prefixes._prefixes, offers))


def _step_by_step(prefixes: Prefixes, extensions: Sequence[Extension]) -> Prefixes:
    """Return what `extend` does, by an operator for each question to a relation, where workers share these."""
    counted = prefixes.map(lambda *columns: (*columns, np.iinfo(np.int64).max, -1))
    for place, extension in enumerate(extensions):
        counted = extension.count(counted, place)
    extended = [_proposed_by(counted, place, extensions) for place in range(len(extensions))]
    return extended[0].concat(*extended[1:])


def _proposed_by(counted: Prefixes, place: int, extensions: Sequence[Extension]) -> Prefixes:
    """Return the extensions of the prefixes for which one of `extensions` has the fewest values."""
    chosen = counted.filter(lambda *columns: columns[-1] == place)
    proposed = extensions[place].propose(chosen, without=2)
    for other, extension in enumerate(extensions):
        if other != place:
            proposed = extension.validate(proposed)
    return proposed
