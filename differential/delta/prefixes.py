"""Changes of a collection, on their way through other collections."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from differential.collection import Arrangement, Collection
from differential.data.updates import Updates
from differential.delta.half_join import count_rows, half_join, hidden_columns, split
from differential.keys import check_keys
from differential.operators.linear import linear
from timely.lowlevel import as_columns, as_row_mask, call, check_functions, consult


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
        self._hidden = hidden_columns(prefixes.scope)

    @classmethod
    def of(cls, collection: Collection) -> Prefixes:
        """Return the changes of a collection.

        >>> example(lambda scope: Prefixes.of(Collection.of(scope, np.array([1, 2]))).results())
        [((1,), 1), ((2,), 1)]
        """
        if collection.scope.width == 1:
            return cls(collection)

        def with_times(updates: Updates) -> Updates:
            return updates.with_columns((*updates.columns, *updates.times[updates.each_time_index()].T.copy()))

        return cls(linear(collection, with_times, name="changes"))

    def map(self, function: Callable[..., Any], *, keys: int = 1, name: str = "map") -> Prefixes:
        """Return `function(*columns)` of each, with its first `keys` columns as key.

        >>> example(lambda scope: Prefixes.of(Collection.of(scope, np.array([1, 2]))).map(lambda x: -x).results())
        [((-2,), 1), ((-1,), 1)]
        """
        check_functions(name, function=function)

        def apply(updates: Updates) -> Updates:
            own, initial = split(updates.columns, self._hidden)
            return updates.with_columns((*as_columns(call(function, own), len(updates)), *initial))

        return Prefixes(linear(self._prefixes, apply, keys=keys, name=name))

    def filter(self, predicate: Callable[..., Any], *, name: str = "filter") -> Prefixes:
        """Return those for which `predicate(*columns)` is true.

        >>> example(lambda scope: Prefixes.of(Collection.of(scope, np.array([1, 2]))).filter(lambda x: x > 1).results())
        [((2,), 1)]
        """
        check_functions(name, predicate=predicate)

        def apply(updates: Updates) -> Updates:
            return updates.take(as_row_mask(consult(predicate, split(updates.columns, self._hidden)[0]), len(updates)))

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
        check_keys(keys)
        return Prefixes(half_join(self._prefixes, arrangement, function, inclusive=sees.value, keys=keys))

    def count(
        self, arrangement: Arrangement, function: Callable[..., Any], sees: AltNeu = AltNeu.NEU, *, keys: int = 1
    ) -> Prefixes:
        """Return `function(*key, *rest, number)` for each whose key `arrangement` has, with the number of rows there.

        The number is no less than how many records are seen. See `differential.delta.half_join.count_rows`.

        >>> def degrees(scope):
        ...     edges = Collection.of(scope, np.array([1, 1]), np.array([2, 3]))
        ...     nodes = Prefixes.of(Collection.of(scope, np.array([1, 2])))
        ...     return nodes.count(edges.arrange_by_key(), lambda node, number: (node, number)).results()
        >>> example(degrees)
        [((1, 2), 1)]
        """
        check_keys(keys)
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
