"""A table with event times that recomputes everything: lists of rows, and plain loops for windows.

A row is (key, x, time). `commit` takes the statements of one commit, and keeps the rules of the real table: what would
change a row before the watermark of the commit before is late, and the watermark follows the highest time less the
lateness. Rows expire before all other statements of their commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

Row = tuple[Any, ...]


class Table:
    """The rows, the late changes, and the watermark."""

    def __init__(self, lateness: int) -> None:
        self.rows: Counter[Row] = Counter()
        self.late: Counter[Row] = Counter()
        self.mark: int | None = None
        self._lateness = lateness
        self._highest: int | None = None

    def commit(self, statements: Iterable[tuple[str, Any]]) -> bool:
        """Make the changes; return whether a row to delete was not there, and nothing has changed."""
        statements = list(statements)
        limits = [given for kind, given in statements if kind == "expire"]
        kept = Counter({row: count for row, count in self.rows.items() if all(row[2] >= limit for limit in limits)})
        rows, late, highest, stated = Counter(kept), Counter(self.late), self._highest, self.mark
        replaced: set[Any] = set()
        for kind, given in statements:
            if kind == "expire":
                continue
            if kind == "advance":
                stated = given if stated is None else max(stated, given)
                continue
            if kind == "delete by key":
                replaced.add(given)
                rows = Counter({row: count for row, count in rows.items() if row[0] != given})
                continue
            time = given[2]
            if kind != "delete":
                highest = time if highest is None else max(highest, time)
            if self.mark is not None and time < self.mark:
                late[(*given, kind)] += 1
                continue
            if kind == "upsert":
                replaced.add(given[0])
                rows = Counter({row: count for row, count in rows.items() if row[0] != given[0]})
            rows[given] += -1 if kind == "delete" else 1
        if any(count < 0 for count in rows.values()):
            return True
        for key in replaced:
            self._withdraw(key, kept, rows, late)
        self.rows, self.late, self._highest = +rows, late, highest
        marks = [each for each in (stated, None if highest is None else highest - self._lateness) if each is not None]
        self.mark = max(marks) if marks else None
        return False

    def _withdraw(self, key: Any, kept: Counter[Row], rows: Counter[Row], late: Counter[Row]) -> None:
        """Undo the changes of a key if a row before the watermark would go."""
        net = {row: rows[row] - kept[row] for row in {*rows, *kept} if row[0] == key and rows[row] != kept[row]}
        if self.mark is not None and any(row[2] < self.mark for row in net):
            for row, diff in net.items():
                late[(*row, "delete" if diff < 0 else "insert")] += abs(diff)
                rows[row] = kept[row]


def fixed(rows: Counter[Row], size: int, step: int) -> Counter[Row]:
    """Return (key, start, end, sum of x) for each window that has rows of the key."""
    found: Counter[Row] = Counter()
    for (key, x, time), count in rows.items():
        for start in range((time // step) * step, time - size, -step):
            found[key, start, start + size] += x * count
    groups = {(key, start, start + size) for key, _, time in rows for start in _starts(time, size, step)}
    return Counter({(*group, found[group]): 1 for group in groups})


def _starts(time: int, size: int, step: int) -> range:
    return range((time // step) * step, time - size, -step)


def in_sessions(rows: Counter[Row], gap: int) -> Counter[Row]:
    """Return (key, start, end, number of rows) for each session of a key."""
    found: Counter[Row] = Counter()
    for key in {row[0] for row in rows}:
        session: list[int] = []
        for time in [*sorted(row[2] for row in rows.elements() if row[0] == key), None]:
            if session and (time is None or time - session[-1] >= gap):
                found[key, session[0], session[-1] + gap, len(session)] += 1
                session = []
            if time is not None:
                session.append(time)
    return found
