"""Collections that extend prefixes by a column: one proposes values, all others validate them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from differential.collection import Arrangement, Collection
from differential.delta.extend_locally import Offer, extend_locally
from differential.delta.prefixes import AltNeu, Prefixes
from timely.errors import BuildError


class CollectionIndex:
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
        ...     edges = CollectionIndex(Collection.of(scope, np.array([1, 2, 2]), np.array([2, 3, 4])))
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
    ...     edges = CollectionIndex(Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3])))
    ...     known = CollectionIndex(Collection.of(scope, np.array([1, 2]), np.array([3, 3])))
    ...     nodes = Prefixes.of(Collection.of(scope, np.array([1, 2]))).map(lambda node: (node, 99, -1))
    ...     counted = edges.extension(0).count(nodes, place=7)
    ...     counted.results().inspect(lambda record, time, diff: print(record))
    ...     return known.extension(0).validate(edges.extension(0).propose(counted, without=2)).results()
    >>> example(program)
    (1, 2, 7)
    (2, 1, 7)
    [((1, 3), 1), ((2, 3), 1)]
    """

    relation: CollectionIndex
    key: int
    sees: AltNeu

    def count(self, prefixes: Prefixes, place: int) -> Prefixes:
        """Return the prefixes that have extensions here, each with which relation has fewest.

        The last two columns are the least number of extensions so far, and whose; they become this one's, numbered
        `place`, if that is less.
        """

        def least(_: Any, *columns: Any) -> Any:
            *prefix, number, whose, found = columns
            # Of several with the fewest the first remains, so exactly one proposes.
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
    ...     edges = CollectionIndex(Collection.of(scope, np.array([1, 1, 2, 2]), np.array([2, 3, 3, 4])))
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
    return Prefixes(extend_locally(prefixes._prefixes, offers))


def _step_by_step(prefixes: Prefixes, extensions: Sequence[Extension]) -> Prefixes:
    """Return what `extend` does, by an operator for each question to a relation, where workers share these."""
    counted = prefixes.map(lambda *columns: (*columns, np.iinfo(np.int64).max, -1))
    # A prefix for which one of the relations has nothing is gone after that one has counted.
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
