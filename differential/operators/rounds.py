"""Report loops that do not settle.

A loop without a fixed point (a rule that adds ever larger numbers, or swaps two values for ever) runs for ever, and its
result is never final. So a loop can have a limit, and a warning reports one that continues for very many rounds.
Without a limit, a check costs one comparison for each batch: with the time of its message, which no update of it
precedes.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

from differential.data.updates import Updates
from timely.errors import UnsettledError, UnsettledWarning
from timely.lowlevel import DataflowCore, Origin, Time

EXAMPLES = 3
"""How many of the records that still change a message names."""


class Rounds:
    """The limit of a loop, and the round of the next report. `look` at messages whose round is `watched` or later.

    The round of an update is the last coordinate of its time in the next round of the loop.
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
        """Check updates that are fed back into `round` and later.

        Raises UnsettledError where records change beyond the limit; warns where they change in a round to be reported.
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
                self._report = 2 * round  # so a loop that goes on for ever warns a logarithmic number of times
                self.watched = 0 if limit is not None else self._report
                self._warn(late)

    def _warn(self, late: str) -> None:
        dataflow = self._dataflow
        warnings.warn_explicit(
            f"operator {self._name!r} on worker {dataflow.worker_index} of {dataflow.peers} goes on: {late}; it has no "
            "fixed point, or takes long to reach it (a `limit` bounds it, TIMELY_REPORT_ROUNDS sets when to report it)",
            UnsettledWarning,
            self._origin.file,
            self._origin.line,
        )


def _first_changes(updates: Updates, round: int) -> str:
    """Return in words which records change at the least time whose round is at least `round`; "" if none do."""
    late = updates.times[:, -1] >= round
    changes: dict[Time, Counter[Any]] = {}
    for record, time, diff in updates.take(late[updates.each_time_index()]).rows():
        changes.setdefault(time, Counter())[record] += diff
    for time in sorted(changes):
        changing = [f"{record} by {diff:+}" for record, diff in changes[time].items() if diff]
        if changing:
            some = ", ".join(changing[:EXAMPLES]) + (", ..." if len(changing) > EXAMPLES else "")
            what = "1 record changes" if len(changing) == 1 else f"{len(changing)} records change"
            return f"in round {time[-1]} at {time[:-1]} {what}, {some}"
    return ""
