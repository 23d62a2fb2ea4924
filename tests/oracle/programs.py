"""Programs over collections of pairs of small integers, and what they mean.

A program is a tree of tuples, `(name, *arguments)`. `meaning` evaluates it from scratch on multisets, by the definition
of each operator and by repeating loops until they settle; `build` makes the dataflow of it. Numbers are dressed as
other kinds of columns for some operators, and undressed afterwards (`tests.oracle.kinds`).
"""

from __future__ import annotations

from ast import literal_eval
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from differential import CoGroups, Collection, Groups, Variable, innermost
from tests.oracle import delta, graphs
from tests.oracle.kinds import KINDS

Pair = tuple[int, int]
Pairs = Counter[Pair]
Program = tuple[Any, ...]

ROUNDS = 200
SIZE = 4
_FAR = 1 << 40
"""A time after all others."""
"""Keys and values of inputs are below it."""


class Contents(list[Pairs]):
    """The contents of inputs at a time, and those `before`, one step of the first coordinate earlier.

    `seen` is called with each part of a program and its meaning there; in a loop, in each round.
    """

    def __init__(
        self,
        at: Callable[[int], Sequence[Pairs]],
        delay: int = 0,
        seen: Callable[[Program, Pairs], None] = lambda part, value: None,
    ) -> None:
        super().__init__(at(delay))
        self._at, self._delay, self.seen = at, delay, seen

    @property
    def before(self) -> Contents:
        return Contents(self._at, self._delay + 1, self.seen)


def meaning(program: Program, inputs: Sequence[Pairs], inner: tuple[Pairs, ...] = ()) -> Pairs:
    """Return the multiset that a program makes of its inputs; `inner` are the values of the variables around it."""
    value = _meaning(program, inputs, inner)
    if isinstance(inputs, Contents):
        inputs.seen(program, value)
    return value


def _meaning(program: Program, inputs: Sequence[Pairs], inner: tuple[Pairs, ...]) -> Pairs:
    name, *arguments = program
    if name == "input":
        return inputs[arguments[0]]
    if name == "variable":
        return inner[arguments[0]]
    if name == "delay":
        assert isinstance(inputs, Contents)
        return meaning(arguments[0], inputs.before)
    if name == "dressed":
        return meaning(tuple(arguments[2:]), inputs, inner)
    if name == "mutual":
        return _settled_together(arguments, inputs, inner)
    if name in ("iterate", "settle", "later"):
        start = meaning(arguments[0], inputs, inner)
        value = start
        for _ in range(ROUNDS):
            after = _clean(meaning(arguments[1], inputs, (value, *inner)))
            if name != "iterate":
                after = _clean(_distinct(after + start))
            if after == value:
                return value
            value = after
        raise AssertionError(f"{program} does not settle")
    values = [meaning(argument, inputs, inner) for argument in arguments if isinstance(argument, tuple)]
    return _clean(_MEANINGS[name](*values))


def _settled_together(arguments: Sequence[Program], inputs: Sequence[Pairs], inner: tuple[Pairs, ...]) -> Pairs:
    starts = [meaning(argument, inputs, inner) for argument in arguments[:2]]
    values = starts
    for _ in range(ROUNDS):
        bodies = [meaning(body, inputs, (*values, *inner)) for body in arguments[2:]]
        after = [_distinct(body + start) for body, start in zip(bodies, starts)]
        if after == values:
            return _clean(_sum(*values))
        values = after
    raise AssertionError(f"{arguments} do not settle")


def build(program: Program, inputs: Sequence[Collection], inner: tuple[Collection, ...] = ()) -> Collection:
    """Return the collection that a program makes of its inputs."""
    name, *arguments = program
    if name == "input":
        return inputs[arguments[0]]
    if name == "variable":
        return inner[arguments[0]]
    if name == "iterate":
        start = build(arguments[0], inputs, inner)
        if inner:
            start, _ = innermost(start, inner[0])
        return start.iterate(lambda variable: build(arguments[1], inputs, (variable, *inner)))
    if name == "dressed":
        key, value, operator, *operands = arguments
        return _dressed(key, value, operator, [build(operand, inputs, inner) for operand in operands])
    if name == "mutual":
        return _build_together(arguments, inputs, inner)
    if name in ("settle", "later"):
        start = build(arguments[0], inputs, inner)
        if inner:
            start, _ = innermost(start, inner[0])
        with start.scope.iterative(name) as scope:
            variable = Variable(scope, start, limit=ROUNDS) if name == "settle" else Variable(scope)
            if name == "later":
                start = start.enter_at(scope, lambda key, value: (key + value) % 3)
            body = build(arguments[1], inputs, (variable.collection, *inner))
            body, _ = innermost(body, variable.collection)
            result = body.concat(start).distinct()
            variable.set(result)
            return result.leave()
    return _BUILDERS[name](*(build(argument, inputs, inner) for argument in arguments if isinstance(argument, tuple)))


def _build_together(
    arguments: Sequence[Program], inputs: Sequence[Collection], inner: tuple[Collection, ...]
) -> Collection:
    starts = [build(argument, inputs, inner) for argument in arguments[:2]]
    starts = list(innermost(*starts, *inner[:1]))[:2]
    with starts[0].scope.iterative("mutual") as scope:
        variables = [Variable(scope, starts[0]), Variable(scope)]
        around = (*(variable.collection for variable in variables), *inner)
        bodies = [innermost(build(body, inputs, around), around[0])[0] for body in arguments[2:]]
        results = [body.concat(start).distinct() for body, start in zip(bodies, starts)]
        for variable, result in zip(variables, results):
            variable.set(result)
        return results[0].concat(results[1]).leave()


def _dressed(key: str, value: str, operator: str, operands: Sequence[Collection]) -> Collection:
    """Return the result of an operator for the pairs dressed as columns of other kinds, undressed."""
    keys, vals = KINDS[key], KINDS[value]
    ours = [
        one.map(lambda key, value: (*keys.dress(key), *vals.dress(value)), keys=keys.width)
        for one in innermost(*operands)
    ]
    result = DRESSED[operator](*ours)
    width = keys.width
    if operator == "count":
        return result.map(lambda *columns: (keys.undress(*columns[:width]), columns[width]))
    if operator in ("join", "delta"):
        end = width + vals.width
        return result.map(lambda *columns: (vals.undress(*columns[width:end]), vals.undress(*columns[end:])))
    return result.map(lambda *columns: (keys.undress(*columns[:width]), vals.undress(*columns[width:])))


def _look(record: Pair, time: tuple[int, ...], diff: int) -> None:
    assert len(record) == 2
    assert diff


def _there_and_back(one: Collection) -> Collection:
    """Return a collection after a loop that changes nothing, plain and arranged, less itself."""
    with one.scope.iterative("there and back") as inner:
        entered = one.enter(inner)
        arranged = one.arrange_by_key().enter(inner).as_collection()
        return entered.concat(arranged).leave().concat(one.negate())


def _keys_of(one: Collection) -> Collection:
    width = one.keys
    return one.map(lambda *columns: columns[:width], keys=width).distinct()


def _added(parts: Iterable[tuple[Pair, int]]) -> Pairs:
    total: Pairs = Counter()
    for pair, count in parts:
        total[pair] += count
    return total


def _clean(pairs: Pairs) -> Pairs:
    return Counter({pair: count for pair, count in pairs.items() if count})


def _map(function: Callable[[int, int], Pair]) -> Callable[[Pairs], Pairs]:
    def apply(pairs: Pairs) -> Pairs:
        return _added((function(key, value), count) for (key, value), count in pairs.items())

    return apply


def _sum(left: Pairs, right: Pairs, sign: int = 1) -> Pairs:
    result = Counter(left)
    for pair, count in right.items():
        result[pair] += sign * count
    return result


def _join(left: Pairs, right: Pairs) -> Pairs:
    by_key = defaultdict(list)
    for (key, value), count in right.items():
        by_key[key].append((value, count))
    result: Pairs = Counter()
    for (key, value), count in left.items():
        for other, times in by_key[key]:
            result[value, other] += count * times
    return result


def _distinct(pairs: Pairs) -> Pairs:
    return Counter({pair: 1 for pair, count in pairs.items() if count > 0})


def _keys(pairs: Pairs) -> set[int]:
    return {key for (key, _), count in pairs.items() if count}


def _per_key(reduction: Callable[[Counter[int]], dict[int, int]]) -> Callable[[Pairs], Pairs]:
    def apply(pairs: Pairs) -> Pairs:
        groups: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for (key, value), count in pairs.items():
            if count:
                groups[key][value] += count
        return Counter(
            {(key, value): count for key, group in groups.items() for value, count in reduction(group).items()}
        )

    return apply


def _largest_two(group: Counter[int]) -> dict[int, int]:
    return dict(Counter(sorted(group.elements())[-2:]))


def _combine(choose: Callable[[int, int], int]) -> Callable[[Pairs, Pairs], Pairs]:
    return lambda left, right: Counter({pair: choose(left[pair], right[pair]) for pair in left | right})


def _cogroup(left: Pairs, right: Pairs) -> Pairs:
    return Counter(
        {
            (
                key,
                sum(n * v for (k, v), n in left.items() if k == key)
                - sum(n for (k, _), n in right.items() if k == key),
            ): 1
            for key in _keys(left) | _keys(right)
        }
    )


def _sum_less_count(groups: CoGroups) -> tuple[Any, Any]:
    result = np.zeros(len(groups), np.int64)
    np.add.at(result, groups.left.index, groups.left.values[0] * groups.left.counts)
    np.add.at(result, groups.right.index, -groups.right.counts)
    return np.arange(len(groups)), result


def _prefix(group: Counter[int]) -> dict[int, int]:
    """Return position and running total, added up, for records at positions 0 to 3 by their last digit."""
    positions = {value % SIZE for value in group}
    return Counter(p + sum(v * n for v, n in group.items() if v % SIZE <= p) for p in positions)


def _sum_of_squares(groups: Groups) -> tuple[Any, Any]:
    squares = groups.values[0] ** 2 * groups.counts
    return np.arange(len(groups)), np.add.reduceat(squares, groups.offsets[:-1])


_MEANINGS: dict[str, Callable[..., Pairs]] = {
    "swap": _map(lambda key, value: (value, key)),
    "fold": _map(lambda key, value: (key % 2, (key + value) % SIZE)),
    "bound": _map(lambda key, value: (key % SIZE, value % SIZE)),
    "even": lambda pairs: Counter({pair: count for pair, count in pairs.items() if pair[1] % 2 == 0}),
    "both": _map(lambda key, value: (key, value)),
    "window": lambda pairs: pairs,
    "watched": lambda pairs: pairs,
    "concat": _sum,
    "less": lambda left, right: _sum(_sum(left, right), right, -1),
    "join": _join,
    "semijoin": lambda left, right: Counter({pair: n for pair, n in left.items() if pair[0] in _keys(right)}),
    "antijoin": lambda left, right: Counter({pair: n for pair, n in left.items() if pair[0] not in _keys(right)}),
    "distinct": _distinct,
    "threshold": lambda pairs: Counter({pair: (count + 1) // 2 for pair, count in pairs.items()}),
    "consolidate": lambda pairs: pairs,
    "count": _per_key(lambda group: {sum(group.values()): 1}),
    "sum": _per_key(lambda group: {sum(value * count for value, count in group.items()): 1}),
    "min": _per_key(lambda group: {min(group): 1}),
    "max": _per_key(lambda group: {max(group): 1}),
    "top": _per_key(_largest_two),
    "top of top": _per_key(lambda group: {max(group): 1}),
    "squares": _per_key(lambda group: {sum(value * value * count for value, count in group.items()): 1}),
    "explode": lambda pairs: Counter({pair: count * (pair[1] % 3) for pair, count in pairs.items()}),
    "attempted": lambda pairs: _added(
        (((value, key) if value % 3 == 1 else (key, value // 2)), count) for (key, value), count in pairs.items()
    ),
    "totals": _per_key(lambda group: {sum((value * value + 1) * count for value, count in group.items()): 1}),
    "argmin": _per_key(lambda group: {min(group, key=lambda value: (value % 2, value)): 1}),
    "each": _per_key(lambda group: {sorted(group)[len(group) // 2]: 1}),
    "prefix": _per_key(_prefix),
    "numbered": _distinct,
    "argmax": _per_key(lambda group: {max(group, key=lambda value: (value % 2, value)): 1}),
    "self": lambda pairs: pairs,
    "delta": _join,
    "union": _combine(max),
    "intersect": _combine(min),
    "except": _combine(lambda ours, theirs: max(ours - theirs, 0)),
    "either": _combine(lambda ours, theirs: abs(ours - theirs)),
    "cogroup": _cogroup,
    "extended": delta.meaning,
    "index join": _join,
    "index join map": _join,
    "index count": _per_key(lambda group: {sum(group.values()): 1}),
    "index distinct": _distinct,
    "index squares": _per_key(lambda group: {sum(value * value * count for value, count in group.items()): 1}),
    "occurrences": lambda pairs: _added(((key, value + count), 1) for (key, value), count in pairs.items() if count),
    "there and back": lambda pairs: pairs,
    "nothing": lambda pairs: pairs,
} | {name: partial(graphs.meaning, name) for name in graphs.GRAPHS}


def _attempted(one: Collection) -> Collection:
    """Return what becomes of the records for which a function returns, and the others with key and value exchanged."""

    def halves(key: Any, value: Any) -> Any:
        if (value % 3 == 1).any():
            raise ValueError("one of the values is 1 modulo 3")
        return key, value // 2

    def exchanged(record: Any, error: Any, line: Any) -> Any:
        pairs = np.array([literal_eval(each) for each in record.tolist()], np.int64).reshape(-1, 2)
        return pairs[:, 1], pairs[:, 0]

    made = one.attempt(halves)
    return made.results.concat(made.rejects.map(exchanged))


_BUILDERS: dict[str, Callable[..., Collection]] = {
    "swap": lambda one: one.map(lambda key, value: (value, key)),
    "fold": lambda one: one.map(lambda key, value: (key % 2, (key + value) % SIZE)),
    "bound": lambda one: one.map(lambda key, value: (key % SIZE, value % SIZE)),
    "attempted": lambda one: _attempted(one),
    "even": lambda one: one.filter(lambda key, value: value % 2 == 0),
    "both": lambda one: one.flat_map(lambda key, value: (np.arange(len(key)), key, value)),
    # What a window inside of this one receives at `_FAR` is late, which is right.
    "window": lambda one: one.window(_FAR, at=lambda key, value: np.zeros_like(key), late=lambda _: None).concat(
        one.delay(lambda time: (_FAR, *time[1:]))
    ),
    "watched": lambda one: one.inspect(_look).inspect_batch(repr).assert_eq(one.map(lambda key, value: (key, value))),
    "concat": lambda left, right: left.concat(right),
    "less": lambda left, right: left.concat(right).concat(right.negate()),
    "join": lambda left, right: left.join_map(right, lambda key, first, second: (first, second)),
    "semijoin": lambda left, right: left.semijoin(right.map(lambda key, _: key).distinct()),
    "antijoin": lambda left, right: left.antijoin(right.map(lambda key, _: key).distinct()),
    "distinct": lambda one: one.distinct(),
    "threshold": lambda one: one.threshold(lambda counts: (counts + 1) // 2),
    "consolidate": lambda one: one.consolidate(),
    "count": lambda one: one.count(),
    "sum": lambda one: one.sum(),
    "min": lambda one: one.min(),
    "max": lambda one: one.max(),
    "top": lambda one: one.top_k(2),
    "top of top": lambda one: (
        one.map(lambda key, value: (key, value, -value)).top_k(2).max().map(lambda key, value, _: (key, value))
    ),
    "squares": lambda one: one.reduce(_sum_of_squares),
    "explode": lambda one: one.explode(lambda key, value: ((key, value), value % 3)),
    "totals": lambda one: one.totals(lambda key, value: value * value, lambda key, value: 1).map(
        lambda key, squares, count: (key, squares + count)
    ),
    "argmin": lambda one: one.argmin(lambda key, value: value % 2),
    "argmax": lambda one: one.argmax(lambda key, value: value % 2),
    "each": lambda one: one.reduce_each(lambda key, values: [values[len(values) // 2][0]]),
    "prefix": lambda one: (
        one.map(lambda key, value: (key, value % SIZE, value))
        .prefix_sum(bits=3)
        .map(lambda key, at, total: (key, at + total))
    ),
    "numbered": lambda one: one.identifiers(hash=lambda columns: columns[0] * 0).map(lambda *record: record[:2]),
    "self": lambda one: Collection(one.arrange_by_self().as_updates(), one.keys),
    "delta": lambda left, right: delta.matched(left, right).map(lambda key, first, second: (first, second)),
    "delay": lambda one: one.delay(lambda time: (time[0] + 1, *time[1:])),
    "union": lambda left, right: left.union(right),
    "intersect": lambda left, right: left.intersect(right),
    "except": lambda left, right: left.except_(right),
    "either": lambda left, right: left.symmetric_difference(right),
    "cogroup": lambda left, right: left.cogroup(right, _sum_less_count),
    "extended": lambda left, right: delta.extended(left, right).map(delta.as_pairs),
    "index join": lambda left, right: (
        left.arrange_by_key().join(right.arrange_by_key()).map(lambda key, first, second: (first, second))
    ),
    "index join map": lambda left, right: left.arrange_by_key().join_map(right, lambda _, *both: both),
    "index count": lambda one: one.arrange_by_key().count(),
    "index distinct": lambda one: one.arrange_by_key().distinct(),
    "index squares": lambda one: one.arrange_by_key().reduce(_sum_of_squares),
    "occurrences": lambda one: one.arrange_by_self().count().map(lambda key, value, count: (key, value + count)),
    "there and back": _there_and_back,
    "nothing": lambda one: one.concat(one.filter(lambda key, value: key != key).assert_empty()),
} | {name: partial(graphs.build, name) for name in graphs.GRAPHS}

DRESSED: dict[str, Callable[..., Collection]] = {
    name: _BUILDERS[name]
    for name in ("concat", "less", "distinct", "threshold", "consolidate", "count", "min", "max", "top", "self",
                 "union", "intersect", "except", "either")
} | {
    "join": lambda left, right: left.join(right),
    "delta": delta.matched,
    "semijoin": lambda left, right: left.semijoin(_keys_of(right)),
    "antijoin": lambda left, right: left.antijoin(_keys_of(right)),
    "each": lambda one: one.reduce_each(lambda key, values: [values[len(values) // 2][0]]),
    "numbered": lambda one: one.identifiers().map(lambda *columns: columns[:-1], keys=one.keys),
}  # fmt: skip
"""Operators for which it does not matter what kinds of columns there are, but for their order."""

LOOPS = ("iterate", "settle", "later", "mutual")
UNARY = ("swap", "fold", "attempted", "even", "both", "distinct", "threshold", "consolidate", "count", "sum", "min",
         "max", "top", "top of top", "squares", "explode", "totals", "argmin", "argmax", "each", "prefix", "numbered",
         "self", "window", "watched", "index count", "index distinct", "index squares", "occurrences",
         "there and back", "nothing")  # fmt: skip
BINARY = ("concat", "less", "join", "semijoin", "antijoin", "union", "intersect", "except", "either", "cogroup",
          "delta", "index join", "index join map")  # fmt: skip
LARGE = (*graphs.GRAPHS, "extended")
"""Operators of many operators."""
