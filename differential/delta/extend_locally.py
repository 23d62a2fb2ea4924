"""Extend prefixes by a column where one worker has all the arrangements.

`differential.delta.extend` finds which of several arrangements has the fewest values for a prefix, proposes these, and
keeps those that the others have, too. Each arrangement is looked up by another key, so among several workers each step
is an operator, and prefixes travel from one to the next. A worker by itself has all arrangements, and where times are
totally ordered one kernel does all of the steps: it looks a prefix up when all arrangements are complete, and never
writes down a value that is proposed and then refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from differential.collection import Arrangement, Collection
from differential.data.codes import Codes, Encoder
from differential.data.overflow import multiplied, too_often
from differential.data.updates import Ints, Updates
from differential.delta.lookup import Past, lookup, refuse_other_keys
from differential.kernels.compile import NOTHING
from differential.kernels.extend import extend
from differential.kernels.wide import Overflow
from differential.trace.batch import table_of
from timely.errors import DataError
from timely.lowlevel import Pipeline

PIECE = 1 << 19
"""The operator yields to others after it has looked at about this many values."""

FEW = 1 << 10
"""Up to this many prefixes are looked up in the order that they have."""


class Offer(NamedTuple):
    """The values that an arrangement has for prefixes with its key in column `key`.

    Prefixes see updates before their initial time and, if `inclusive`, those at it.
    """

    key: int
    arrangement: Arrangement
    inclusive: bool


def extend_locally(prefixes: Collection, offers: Sequence[Offer], *, name: str = "extend") -> Collection:
    """Return each prefix with each value that all `offers` have for it, as one more column.

    For a worker by itself, and times of one coordinate.
    """
    read: dict[Arrangement, bool] = {}
    for offer in offers:
        refuse_other_keys(name, 1, offer.arrangement)
        # One reading serves all offers of an arrangement, so it waits as long as the one that sees most.
        read[offer.arrangement] = offer.inclusive or read.get(offer.arrangement, False)
    places = [list(read).index(offer.arrangement) for offer in offers]

    def ask(updates: Updates, initial: Ints, pasts: list[Past]) -> Extensions:
        return Extensions(updates, initial, [pasts[place] for place in places], offers)

    return Collection(lookup(prefixes.stream, Pipeline(), list(read.items()), ask, name=name))


class Extensions:
    """Prefixes with the values of all offers."""

    def __init__(self, prefixes: Updates, initial: Ints, pasts: list[Past], offers: Sequence[Offer]) -> None:
        self._prefixes = prefixes
        self._initial = initial
        self._pasts = pasts
        self._offers = offers
        self._value = offers[0].arrangement.value
        for offer in offers[1:]:
            if not self._value.agrees(offer.arrangement.value):
                raise DataError(
                    f"some relations have {self._value.describe()} as their values, others "
                    f"{offer.arrangement.value.describe()}: convert them, so that they can be the same"
                )
        self._keys = [
            np.ascontiguousarray(offer.arrangement.key.encode((prefixes.columns[offer.key],))) for offer in offers
        ]

    def held_codes(self) -> list[tuple[Encoder, Codes]]:
        held: list[tuple[Encoder, Codes]] = []
        for offer, keys, past in zip(self._offers, self._keys, self._pasts):
            held.append((offer.arrangement.key, keys))
            held += [(offer.arrangement.value, batch.vals) for batch in past]
        return held

    def pieces(self) -> Iterator[Updates]:
        past = table_of([batch for past in self._pasts for batch in past])
        firsts = np.array([*accumulate(map(len, self._pasts), initial=0)], np.int64)
        excluded = np.array([not offer.inclusive for offer in self._offers], np.int64)
        # Many are looked up in the order of a key, so that each search begins where the one before ended.
        order = np.argsort(self._keys[0]) if len(self._prefixes) > FEW else np.arange(len(self._prefixes))
        keys = np.stack([each[order] for each in self._keys])
        bounds = self._initial[order, 0] if len(self._initial) > 1 else self._initial[:, 0].copy()
        position = 0
        while position >= 0:
            try:
                rows, vals, occurs, position = extend(keys, bounds, excluded, firsts, past, position, PIECE)
            except Overflow as fault:
                prefix = self._prefixes.take(order[[fault.args[2]]])
                raise too_often(prefix.columns, prefix.each_time()[0]) from None
            if len(rows):
                extended = self._prefixes.take(order[rows])
                columns = (*extended.columns, *self._value.decode(vals, len(rows)))
                diffs = multiplied(extended, occurs)
                yield Updates(columns, extended.times, extended.time_index, NOTHING if (diffs == 1).all() else diffs)
            if position >= 0:  # an empty piece, after which other operators run
                yield self._prefixes.take(rows[:0])
