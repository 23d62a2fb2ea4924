"""Joins as delta queries, of two collections and of three, and what the latter mean."""

from __future__ import annotations

from collections import Counter
from typing import Any

from differential import Collection, innermost
from differential.delta import AltNeu, CollectionIndex, Extension, Prefixes, extend

Pairs = Counter[tuple[int, int]]

FAR = 1 << 40
"""More values than a relation has."""


def matched(left: Collection, right: Collection) -> Collection:
    """Return the join: the changes of each side, matched with the other side at the time of the change."""
    left, right = innermost(left, right)
    width = left.keys
    ours = Prefixes.of(left).half_join(right.arrange_by_key(), lambda *columns: columns, AltNeu.ALT, keys=width)

    def in_turn(*columns: Any) -> tuple[Any, ...]:
        middle = (width + len(columns)) // 2
        return (*columns[:width], *columns[middle:], *columns[width:middle])

    theirs = Prefixes.of(right).half_join(left.arrange_by_key(), in_turn, AltNeu.NEU, keys=width)
    return ours.concat(theirs).results()


def extended(left: Collection, right: Collection) -> Collection:
    """Return (a, b, c) for (a, b) on the left and both (a, c) and (b, c) on the right.

    These are three relations, of which the second and the third change together. A change of each relation is extended
    by the values that the two others both have; for the third relation, step by step.
    """
    left, right = innermost(left, right)
    first, first_back = CollectionIndex(left), CollectionIndex(_back(left))
    other, other_back = CollectionIndex(right), CollectionIndex(_back(right))
    sees = AltNeu.of
    by_first = extend(
        Prefixes.of(left), [other.extension(0, sees(1, changing=0)), other.extension(1, sees(2, changing=0))]
    )
    by_second = extend(
        Prefixes.of(right), [first.extension(0, sees(0, changing=1)), other_back.extension(1, sees(2, changing=1))]
    )
    by_third = _by_hand(
        Prefixes.of(right), first_back.extension(0, sees(0, changing=2)), other_back.extension(1, sees(1, changing=2))
    )
    return by_first.concat(
        by_second.map(lambda a, c, b: (a, b, c)),
        by_third.map(lambda b, c, a: (a, b, c)),
    ).results()


def _by_hand(prefixes: Prefixes, one: Extension, two: Extension) -> Prefixes:
    """Return the result of `extend` in steps: count, propose by the relation with fewer values, validate by another."""
    unknown = prefixes.map(lambda *columns: (*columns, FAR, -1))
    counted = two.count(one.count(unknown, place=0), place=1)
    ours = two.validate(one.propose(counted.filter(lambda *columns: columns[-1] == 0), without=2))
    return ours.concat(one.validate(two.propose(counted.filter(lambda *columns: columns[-1] == 1), without=2)))


def _back(pairs: Collection) -> Collection:
    return pairs.map(lambda key, value: (value, key))


def meaning(left: Pairs, right: Pairs) -> Pairs:
    """Return the meaning of `extended`, as pairs."""
    found: Pairs = Counter()
    for (a, b), times in left.items():
        for (other, c), number in right.items():
            if other == a:
                found[a, 3 * b + c] += times * number * right[b, c]
    return found


def as_pairs(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Return a record of three as a pair."""
    return a, 3 * b + c
