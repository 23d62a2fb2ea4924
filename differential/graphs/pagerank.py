"""PageRank in whole numbers, so that every change leads to exactly the ranks that a computation from scratch gives."""

from __future__ import annotations

from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from differential import Collection, innermost
from differential.graphs.directions import both_ways, starts
from differential.graphs.inputs import check_columns, check_records
from timely.errors import DataError
from timely.lowlevel import check_whole, name_of, refusal

_LARGEST_UNIT = 1 << 32
_LARGEST_DENOMINATOR = 1000
_LARGEST_WEIGHT = 1 << 31


def pagerank(
    edges: Collection,
    *,
    damping: float = 0.85,
    rounds: int = 20,
    personalisation: Collection | None = None,
    unit: int = 1_000_000,
    tolerance: float | None = None,
) -> Collection:
    """Return (node, rank) after `rounds` rounds, for every node at the end of an edge; the mean rank is `unit`.

    Each node begins with `unit`. In each round it passes the share `damping` of its rank on to its targets, in equal
    parts rounded down; the rest jumps. A jump leads to all nodes with equal probability or, with `personalisation`, a
    collection of (node, weight) with whole weights, to each node in proportion to its weight. A dangling node, one
    without outgoing edges, lets the share jump, too. Weights of the same node are added, and those of nodes without
    edges are ignored; while no node has a weight, the rank that jumps is lost. A node of rank 0 is left out. `damping`
    is rounded to the nearest fraction with a denominator of at most 1,000, so that all sums are exact.

    Ranks are counts of a node's occurrences, so a round is linear but for the division. Rounds follow each other
    instead of being the turns of a loop: times stay totally ordered. (Page, Brin, Motwani and Winograd, 1999.)

    A changed edge moves some rank, and in the end a unit or two of nearly every node's. With a `tolerance`, as a share
    of the mean rank (0.01 is a hundredth of it), a node passes on its rank rounded to a multiple of that, and each node
    receives a multiple of it from the dangling nodes. A smaller change is not passed on, so the changes die out. The
    answer depends only on the graph, as before. With d for `damping`, n nodes and m edges, the errors of all ranks add
    up to at most this many units, the second term being from rounding down:

        n · tolerance · unit / 2 · (1 + d) / (1 - d)  +  (m + 3 n) / (1 - d)

    (Where nodes have ten edges the errors, of either sign, mostly cancel: the mean error of a rank is a fifteenth of
    the tolerance.) In `timely.graphlinq.pagerank`, which has no changes, `tolerance` is in the same measure, and ends
    the rounds.

    Raises BuildError unless 0 <= `damping` < 1, 0 <= `tolerance` <= 1, `unit` <= 2 ** 32 (with more, sums would not fit
    in 64 bits) and 0 <= `rounds`, and where `unit` is so small that nothing jumps. A DataError ends the run where
    weights are not whole numbers, or add up to 2 ** 31 or more.

    >>> edges = np.array([[1, 2], [2, 1], [3, 1], [3, 4]]).T
    >>> example(lambda scope: pagerank(Collection.of(scope, *edges), rounds=3, unit=1000))
    [((1, 1834), 1), ((2, 1524), 1), ((3, 249), 1), ((4, 383), 1)]
    >>> def from_three(scope):
    ...     weights = Collection.of(scope, 3, 1)
    ...     return pagerank(Collection.of(scope, *edges), rounds=3, unit=1000, personalisation=weights)
    >>> example(from_three)
    [((1, 1328), 1), ((2, 1137), 1), ((3, 1123), 1), ((4, 408), 1)]
    """
    check_records("pagerank", edges=edges)
    check_whole("pagerank", 0, rounds=rounds, unit=unit)
    unit = int(unit)  # products with it are larger than a NumPy integer may be
    numerator, denominator = _fraction(damping)
    jump = unit * (denominator - numerator) // denominator
    if not (1 <= jump and unit <= _LARGEST_UNIT):
        least = -(-denominator // (denominator - numerator))
        raise refusal("pagerank", f"`unit` must be from {least} to 2 ** 32, not {unit}")
    if personalisation is not None:
        check_records("pagerank", personalisation=personalisation)
        check_columns("pagerank", edges=edges, personalisation=personalisation)
        edges, personalisation = innermost(edges, personalisation)
    passing = RankPassing(numerator, denominator, _units(tolerance, unit))
    return _ranks(edges, personalisation, passing, unit, rounds)


class RankPassing(NamedTuple):
    """How much of its rank a node passes on: a fraction of it, rounded to a multiple of the tolerance, in units."""

    numerator: int
    denominator: int
    tolerance: int


def _ranks(
    edges: Collection, personalisation: Collection | None, passing: RankPassing, unit: int, rounds: int
) -> Collection:
    """Return (node, rank): the definition, for arguments that `pagerank` has checked."""
    numerator, denominator, tolerance = passing
    jump = unit * (denominator - numerator) // denominator

    def rounded(amount: Any) -> Any:
        return (amount + tolerance // 2) // tolerance * tolerance

    def part(node: Any, rank: Any, degree: Any) -> tuple[Any, Any]:
        # Divided twice: the product of the denominator and a degree need not fit in 64 bits.
        return node, _scaled(rounded(rank), numerator, denominator) // degree

    def lost(node: Any, rank: Any, _: Any) -> tuple[Any, Any]:
        return np.zeros(len(rank), np.int64), _scaled(rounded(rank), numerator, denominator)

    def share(_: Any, amount: Any, total: Any, node: Any, weight: Any) -> tuple[Any, Any]:
        return node, rounded(_scaled(amount, weight, total))

    nodes = starts(both_ways(edges))
    dangling = nodes.antijoin(starts(edges)).map(lambda node: (node, 0))
    degrees = edges.count().concat(dangling)
    jumps = nodes.explode(lambda node: (node, jump))
    weights = nodes.map(lambda node: (0, node, 1)) if personalisation is None else _weights(personalisation, nodes)
    given, pool = (
        ([jumps], []) if personalisation is None else ([], [jumps.map(lambda node: np.zeros(len(node), np.int64))])
    )
    # All weights are under one key, 0, and so is the rank that jumps: a join divides it among the nodes.
    totals = weights.explode(lambda key, _, weight: (key, weight)).count().map(_checked_total)
    ranks = nodes.explode(lambda node: (node, unit))
    for _ in range(rounds):
        known = ranks.count().join(degrees)
        passed = known.filter(lambda node, rank, degree: degree > 0).explode(part)
        jumping = known.filter(lambda node, rank, degree: degree == 0).explode(lost)
        amount = jumping.concat(*pool).count()
        shares = amount.join(totals).join(weights).explode(share)
        ranks = passed.join_map(edges, lambda _, target: target).concat(shares, *given)
    return ranks.count()


def _scaled(amount: Any, numerator: Any, denominator: Any) -> Any:
    """Return amount * numerator // denominator; the product of the first two need not fit in 64 bits.

    >>> _scaled(np.array([1 << 62]), 999, 1000).tolist() == [(1 << 62) * 999 // 1000]
    True
    """
    # With amount = q · denominator + r, this is q · numerator + r · numerator // denominator.
    return amount // denominator * numerator + amount % denominator * numerator // denominator


def _weights(personalisation: Collection, nodes: Collection) -> Collection:
    """Return (0, node, weight) for the nodes that have a weight."""
    weighed = personalisation.explode(_weighed).semijoin(nodes).count()
    return weighed.map(lambda node, weight: (0, node, weight))


def _fraction(damping: float) -> tuple[int, int]:
    """Return the numerator and the denominator of the fraction that stands for `damping`, or raise BuildError."""
    damping = damping.item() if isinstance(damping, np.generic) else damping
    if not (isinstance(damping, (int, float, Fraction)) and 0 <= damping < 1):
        raise refusal("pagerank", f"`damping` must be a number of at least 0 and less than 1, not {damping!r:.80}")
    fraction = Fraction(damping).limit_denominator(_LARGEST_DENOMINATOR)
    if fraction == 1:
        raise refusal("pagerank", f"`damping` must be at most 0.999, not {damping!r}")
    return fraction.numerator, fraction.denominator


def _units(tolerance: float | None, unit: int) -> int:
    """Return the tolerance in units, of which it is at least one, or raise BuildError.

    >>> _units(0.01, 1_000_000), _units(None, 1_000_000), _units(0, 1_000_000)
    (10000, 1, 1)
    """
    is_number = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if tolerance is not None and not (is_number and 0 <= tolerance <= 1):
        share = "a share of the mean rank, from 0 to 1, or None"
        raise refusal("pagerank", f"`tolerance` must be {share}, not {tolerance!r:.80}")
    return max(1, round((tolerance or 0) * unit))


def _weighed(node: Any, weight: Any) -> tuple[Any, Any]:
    if weight.dtype.kind not in "iu":
        raise DataError(f"pagerank: weights must be whole numbers, not {name_of(weight)}")
    if len(weight) and not (0 <= weight.min() and weight.max() < _LARGEST_WEIGHT):
        raise DataError(f"pagerank: weights must be from 0 to 2 ** 31 - 1, not from {weight.min()} to {weight.max()}")
    return node, weight


def _checked_total(key: Any, total: Any) -> tuple[Any, Any]:
    if (total >= _LARGEST_WEIGHT).any():
        raise DataError(f"pagerank: all weights together must be less than 2 ** 31, not {total.max()}")
    return key, total
