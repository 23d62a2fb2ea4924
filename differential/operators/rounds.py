"""Loops that do not settle: what comes round is looked at, and said when it comes too often.

A loop without a fixed point (a rule that adds ever larger numbers, or swaps two values for ever) runs for ever, and
nothing of it is ever final. So a loop can be given a limit, and one that has turned very often is reported. Where
there is no limit, looking costs one comparison a batch: with the time of its message, which none of its updates
precedes.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np

from differential.data.updates import Updates
from timely.dataflow.core import DataflowCore
from timely.errors import UnsettledError, UnsettledWarning
from timely.order import Time
from timely.origin import Origin

EXAMPLES = 3
"""So many records that still change are named."""


class Rounds:
    """How far a loop may go, and when it is next to be reported. `look` at messages whose round is `watched` or later.

    The round of an update is the last coordinate of the time at which it comes back.
    """

    __slots__ = ("_dataflow", "_limit", "_name", "_origin", "_report", "watched")

    def __init__(self, dataflow: DataflowCore, name: str, origin: Origin, limit: int | None) -> None:
        self._dataflow = dataflow
        self._name = name
        self._origin = origin
        self._limit = limit
        self._report: float = dataflow.host.config.report_rounds or float("inf")
        self.watched: float = 0 if limit is not None else self._report

    def look(self, round: int, updates: Updates) -> None:
        """Look at updates that come back in `round` and later.

        Raises `UnsettledError` for what changes beyond the limit; warns of what changes as late as is to be reported.
        """
        limit = self._limit
        if limit is not None and int(updates.times[:, -1].max()) > limit:
            late = _first_changes(updates, limit + 1)
            if late:
                raise UnsettledError(
                    f"the loop was to settle within {limit} rounds, but {late}: it has no fixed point, or takes a "
                    "higher limit to reach it"
                )
        if round >= self._report:
            late = _first_changes(updates, round)
            if late:
                self._report = 2 * round
                self.watched = 0 if limit is not None else self._report
                self._warn(late)

    def _warn(self, late: str) -> None:
        dataflow = self._dataflow
        warnings.warn_explicit(
            f"operator {self._name!r} on worker {dataflow.worker_index} of {dataflow.peers} goes on: {late}; it has no "
            "fixed point, or takes long to reach it (a `limit` bounds it, TIMELY_REPORT_ROUNDS says when to report it)",
            UnsettledWarning,
            self._origin.file,
            self._origin.line,
        )


def _first_changes(updates: Updates, round: int) -> str:
    """Return in words what changes at the least time whose round is at least `round`; nothing if nothing does."""
    late = updates.times[:, -1] >= round
    late_rows = late[updates.time_index] if len(updates.time_index) else np.repeat(late, len(updates))
    changes: dict[Time, Counter[Any]] = {}
    for record, time, diff in updates.take(late_rows).rows():
        changes.setdefault(time, Counter())[record] += diff
    for time in sorted(changes):
        changing = [f"{record} by {diff:+}" for record, diff in changes[time].items() if diff]
        if changing:
            some = ", ".join(changing[:EXAMPLES]) + (", ..." if len(changing) > EXAMPLES else "")
            what = "1 record changes" if len(changing) == 1 else f"{len(changing)} records change"
            return f"in round {time[-1]} at {time[:-1]} {what}, {some}"
    return ""
