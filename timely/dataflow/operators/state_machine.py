"""A state for each key, moved on by what arrives, time by time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import nan
from typing import Any

import numpy as np

from timely.arguments import check_functions
from timely.data.container import Array, Columns
from timely.data.user_functions import consult
from timely.dataflow.operators.aggregate import in_groups
from timely.dataflow.operators.each_time import map_each_time
from timely.dataflow.pact import Exchange
from timely.dataflow.streams import S
from timely.errors import DataError

Transition = Callable[..., tuple[Any, Iterable[Any]]]


def state_machine(stream: S, transition: Transition, *, name: str = "state_machine") -> S:
    """Return the records that `transition` returns, called for each key of each time, in an order of times.

    The first column is the key, and decides the worker. `transition(key, state, *columns)` receives what the key has at
    one complete time, in order of arrival, and returns the next state and the records to send; the state is None at
    first, and a key whose state becomes None is forgotten. Costs a call a key and time.

    >>> def running_total(key, state, values):
    ...     total = (state or 0) + int(values.sum())
    ...     return total, [(key, total)]
    >>> example(lambda scope: scope.to_stream((np.array([1, 2, 1]), np.array([5, 6, 7]))).state_machine(running_total))
    [(1, 12), (2, 6)]
    """
    check_functions(name, transition=transition)
    states: dict[Any, Any] = {}

    def move(key: Any, columns: list[Array]) -> Iterable[Any]:
        records: Iterable[Any]
        if key != key:
            key = nan  # one for all, since a dictionary does not find another
        found = consult(transition, tuple(columns), key, states.get(key))
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise DataError(f"the transition returns (state, records), not {found!r:.80}")
        # Text and dictionaries can be iterated over, but would be sent as their characters and keys.
        if not isinstance(found[1], Iterable) or isinstance(found[1], (str, bytes, dict)):
            raise DataError(f"the transition returns (state, records), with a list of records, not {found!r:.80}")
        state, records = found
        if state is None:
            states.pop(key, None)
        else:
            states[key] = state
        return records

    def moved(batch: Columns) -> list[Any]:
        columns, starts = in_groups(batch, 1)
        keys = columns[0][starts].tolist()
        ends = np.append(starts[1:], len(batch)).tolist()
        records: list[Any] = []
        for key, start, end in zip(keys, starts.tolist(), ends):
            records.extend(move(key, [column[start:end] for column in columns[1:]]))
        return records

    return map_each_time(stream, Exchange(lambda key, *_: key), moved, name=name)
