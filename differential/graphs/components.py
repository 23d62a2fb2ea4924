"""Weakly connected components."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential import Collection
from differential.graphs.directions import both_ways, starts
from differential.graphs.inputs import check_records
from differential.graphs.propagate import propagate
from timely.lowlevel import Typed

ROUNDS_PER_CLASS = 128
"""How many rounds pass between labels of one magnitude and those of the next.

The last labels enter at round 8064, before loops are reported (`Config.report_rounds`).
"""


def weakly_connected_components(edges: Collection) -> Collection:
    """Return (node, smallest node of its component) for every node that has an edge, whatever the edges' directions.

    Nodes are integers, 0 or more, or text. Labels are propagated with priority: the label n enters together with those
    that have as many binary digits, so that the smallest labels spread through a component before the others enter.
    (Differential dataflow's `propagate_at` does the same.) For text the number of the digits and letters from the first
    digit on, or without digits of the first letters, decides. So names that order as these numbers do cost least.

    >>> example(lambda scope: weakly_connected_components(Collection.of(scope, np.array([2, 5]), np.array([1, 6]))))
    [((1, 1), 1), ((2, 1), 1), ((5, 5), 1), ((6, 5), 1)]
    """
    check_records("weakly_connected_components", edges=edges)
    ends = both_ways(edges)
    # Without `distinct`, inserting or removing an edge would insert or remove its ends' labels in their rounds, too.
    nodes = starts(ends)
    return propagate(ends, nodes.map(lambda node: (node, node)), rounds=by_magnitude)


def by_magnitude(node: Any, label: Any) -> Any:
    """Return the round at which a label enters: later the larger it is.

    A round depends on the label alone, and must: an edge that is removed retracts labels in the rounds of their entry,
    on whichever worker that is.
    """
    kind = label.dtype.kind
    if kind not in "iuTO" or isinstance(label, Typed):
        return 0
    numbers = magnitudes(label) if kind in "TO" else np.maximum(label, 0)
    return ROUNDS_PER_CLASS * np.frexp(numbers.astype(np.float64))[1]


def magnitudes(label: Any) -> Any:
    """Return an integer below 2 ** 63 for each text or bytes, which orders as these do where names are alike.

    The digits of the number, to the base of 36, are the twelve digits and letters from the first digit of the name on;
    without a digit, the twelve letters that it begins with.

    >>> magnitudes(np.array(["node 1", "node 02", "node 000", "alma"], np.dtypes.StringDType())).argsort()
    array([2, 1, 3, 0])
    """
    try:
        rows = np.asarray(label).astype(f"S{_MOST_BYTES}")
    except UnicodeEncodeError:
        rows = np.array([text.encode()[:_MOST_BYTES] for text in label.tolist()], f"S{_MOST_BYTES}")
    characters = np.zeros((len(rows), _MOST_BYTES + _PLACES), np.uint8)
    characters[:, :_MOST_BYTES] = rows.view(np.uint8).reshape(len(rows), _MOST_BYTES)
    is_digit = characters[:, :_MOST_BYTES] - np.uint8(ord("0")) < 10
    first = is_digit.argmax(1)
    has_digit = is_digit[np.arange(len(rows)), first]
    chosen = characters[np.arange(len(rows))[:, None], first[:, None] + np.arange(_PLACES)]
    return _VALUES[has_digit.astype(np.int64)[:, None], chosen] @ _WEIGHTS


_MOST_BYTES = 64
_PLACES = 12
_WEIGHTS = 36 ** np.arange(_PLACES - 1, -1, -1)


def _values(first_letter: int) -> Any:
    """Return what each byte stands for: digits for themselves, letters for numbers from `first_letter` on."""
    values = np.zeros(256, np.int64)
    values[ord("0") : ord("9") + 1] = np.arange(10)
    values[ord("A") : ord("Z") + 1] = values[ord("a") : ord("z") + 1] = np.arange(first_letter, first_letter + 26)
    return values


_VALUES = np.stack((_values(0), _values(10)))
"""What bytes stand for in names without digits, and with."""
