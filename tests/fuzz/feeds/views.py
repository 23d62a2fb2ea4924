"""The views of random programs: what each is in a definition, and its rows in plain Python.

A view has a kind and the tables and views that it reads. Event times are whole numbers here, and minutes since
`NOON` in a session whose tables have timestamps.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from differential.frames import is_null
from differential.session import sessions, sliding, tumbling
from tests.fuzz.feeds.twin import AT, Fails, Row, Rows

NOON = dt.datetime(2026, 3, 1, 12)
FINAL = ("final", "named final")
UNLUCKY = 13
"""A view of the kind "picky" fails on this value."""
SIZE, STEP, GAP = 10, 5, 4


class View(NamedTuple):
    """A view of a program: its kind, and the names of what it reads. `is_timed` tables have timestamps."""

    kind: str
    reads: tuple[str, ...]
    is_timed: bool
    marks: tuple[str, ...] = ()
    """The tables by whose watermarks a view of final rows goes."""

    def built(self, t: Any) -> Any:
        """Return what the view is in a definition."""
        return _BUILT[self.kind](t, self.is_timed, *self.reads)

    def answer(self, tables: Mapping[str, Rows]) -> Rows:
        """Return the rows of the view. Raises Fails if a function of it fails."""
        rows = _ANSWERS[self.kind](tables, *self.reads)
        return _final(tables, rows, self.marks) if self.kind in FINAL else rows

    @property
    def question(self) -> Callable[[Mapping[str, Rows]], Rows]:
        """The view as a function of tables."""
        return self.answer


def real(at: int, is_timed: bool) -> Any:
    """Return an event time as a session has it."""
    return NOON + dt.timedelta(minutes=at) if is_timed else at


def plain(value: Any) -> Any:
    """Return a value of a session with event times as whole numbers."""
    return (value - NOON) // dt.timedelta(minutes=1) if isinstance(value, dt.datetime) else value


def _length(minutes: int, is_timed: bool) -> Any:
    return dt.timedelta(minutes=minutes) if is_timed else minutes


# In a definition


def _closure(pairs: Any) -> Any:
    return pairs.iterate(
        lambda inner: inner.map(lambda a, b: (b, a)).join_map(pairs, lambda b, a, c: (a, c)).concat(pairs).distinct()
    )


def _refuse(*columns: Any) -> Any:
    if (columns[-1] == UNLUCKY).any():
        raise ArithmeticError("an unlucky number")
    return columns


_BUILT: dict[str, Callable[..., Any]] = {
    "tumbling": lambda t, timed, a: (
        t[a].window(tumbling(_length(SIZE, timed))).group_by("k").aggregate(n="count", total=("x", "sum"))
    ),
    "sliding": lambda t, timed, a: t[a].window(sliding(_length(SIZE, timed), _length(STEP, timed))).count("n"),
    "sessions": lambda t, timed, a: t[a].window(sessions(_length(GAP, timed))).group_by("k").count("n"),
    "final": lambda t, timed, a: t.final(t[a]),
    "named final": lambda t, timed, a, b: t.final(t[a].join(t[b].select("k").distinct(), on="k")),
    "marks": lambda t, timed, a: t.watermark(a),
    "spent": lambda t, timed, a: t[a].group_by("s").aggregate(n="count", total=("x", "sum"), last=("at", "max")),
    "join": lambda t, timed, a, b: t[a].join(t[b].select("k", other="x"), on="k").select("k", "x", "other"),
    "shared join": lambda t, timed, a, b: (
        t[a].keyed_by("s").join(t[b].keyed_by("s").select("s", m="at", y="x"), on="s").select("s", "x", "y")
    ),
    "top": lambda t, timed, a: t[a].keyed_by("k").top_k(2),
    "antijoin": lambda t, timed, a, b: t[a].keyed_by("k").antijoin(t[b].select("k").distinct()),
    "changes": lambda t, timed, a: t[f"{a}_late"].group_by("change").count("n"),
    "picky": lambda t, timed, a: t[a].map(_refuse).named("k", "s", "at", "x"),
    "closure": lambda t, timed, a: _closure(t[a].select("k", to=lambda r: r.x % 7).distinct()).named("k", "to"),
    "attempt": lambda t, timed, a: (
        t[a].attempt(lambda r: [100 // (x - UNLUCKY) for x in r.x.tolist()]).rejects.select("error")
    ),
    "known": lambda t, timed, a: t[a].filter(lambda r: ~is_null(r.s)).select("k", "s", "at", "x"),
    "same": lambda t, timed, a: t[a],
}


# In plain Python


def _order(row: Row) -> tuple[Any, ...]:
    return tuple((value is None, 0 if value is None else value) for value in row)


def _groups(rows: Rows, key: Callable[[Row], Row]) -> dict[Row, Rows]:
    groups: dict[Row, Rows] = {}
    for row, count in rows.items():
        groups.setdefault(key(row), Counter())[row] += count
    return groups


def _tumbling(tables: Mapping[str, Rows], a: str) -> Rows:
    groups = _groups(tables[a], lambda row: (row[0], row[AT] // SIZE * SIZE, row[AT] // SIZE * SIZE + SIZE))
    return Counter(
        {
            (*group, rows.total(), sum(row[-1] * count for row, count in rows.items())): 1
            for group, rows in groups.items()
        }
    )


def _sliding(tables: Mapping[str, Rows], a: str) -> Rows:
    found: Rows = Counter()
    for row, count in tables[a].items():
        for start in range(row[AT] // STEP * STEP, row[AT] - SIZE, -STEP):
            found[(start, start + SIZE)] += count
    return Counter({(*window, count): 1 for window, count in found.items()})


def _runs(times: list[int]) -> Iterator[tuple[int, int, int]]:
    run: list[int] = []
    for time in sorted(times):
        if run and time - run[-1] >= GAP:
            yield run[0], run[-1] + GAP, len(run)
            run = []
        run.append(time)
    if run:
        yield run[0], run[-1] + GAP, len(run)


def _sessions(tables: Mapping[str, Rows], a: str) -> Rows:
    groups = _groups(tables[a], lambda row: row[:1])
    return Counter(
        {(*group, *run): 1 for group, rows in groups.items() for run in _runs([row[AT] for row in rows.elements()])}
    )


def _end(row: Row, width: int) -> int:
    """Return the end of a window: of rows (k, start, end, ...), or (start, end, n) where there is no group."""
    return int(row[1] if width == 3 else row[2])


def _final(tables: Mapping[str, Rows], rows: Rows, of: tuple[str, ...]) -> Rows:
    marks = [mark for name in of for (mark,) in tables[f"{name}_watermark"]]
    is_known = len(marks) == len(of)
    return Counter({row: count for row, count in rows.items() if is_known and _end(row, len(row)) <= min(marks)})


def _present(tables: Mapping[str, Rows], a: str, b: str) -> Rows:
    keys = {row[0] for row in tables[b]}
    return Counter({row: count for row, count in tables[a].items() if row[0] in keys})


def _spent(tables: Mapping[str, Rows], a: str) -> Rows:
    made: Rows = Counter()
    for group, rows in _groups(tables[a], lambda row: row[1:2]).items():
        total = sum(row[-1] * count for row, count in rows.items())
        made[(*group, rows.total(), total, max(row[AT] for row in rows))] = 1
    return made


def _join(tables: Mapping[str, Rows], a: str, b: str, at: int = 0) -> Rows:
    made: Rows = Counter()
    for one, here in tables[a].items():
        for two, there in tables[b].items():
            if one[at] == two[at]:
                made[(one[at], one[-1], two[-1])] += here * there
    return made


def _top(tables: Mapping[str, Rows], a: str) -> Rows:
    made: Rows = Counter()
    for rows in _groups(tables[a], lambda row: row[:1]).values():
        made.update(sorted(rows.elements(), key=_order, reverse=True)[:2])
    return made


def _antijoin(tables: Mapping[str, Rows], a: str, b: str) -> Rows:
    keys = {row[0] for row in tables[b]}
    return Counter({row: count for row, count in tables[a].items() if row[0] not in keys})


def _changes(tables: Mapping[str, Rows], a: str) -> Rows:
    groups = _groups(tables[f"{a}_late"], lambda row: row[-1:])
    return Counter({(*group, rows.total()): 1 for group, rows in groups.items()})


def _picky(tables: Mapping[str, Rows], a: str) -> Rows:
    if any(row[-1] == UNLUCKY for row in tables[a]):
        raise Fails
    return Counter(tables[a])


def _closed(tables: Mapping[str, Rows], a: str) -> Rows:
    pairs = {(row[0], row[-1] % 7) for row in tables[a]}
    found = set(pairs)
    while more := {(a, d) for a, b in found for c, d in pairs if b == c} - found:
        found |= more
    return Counter(found)


_FAULT = "ZeroDivisionError: integer division or modulo by zero"

_ANSWERS: dict[str, Callable[..., Rows]] = {
    "tumbling": _tumbling,
    "sliding": _sliding,
    "sessions": _sessions,
    "final": lambda tables, a: tables[a],
    "named final": _present,
    "marks": lambda tables, a: Counter({(a, *row): 1 for row in tables[f"{a}_watermark"]}),
    "spent": _spent,
    "join": _join,
    "shared join": lambda tables, a, b: _join(tables, a, b, 1),
    "top": _top,
    "antijoin": _antijoin,
    "changes": _changes,
    "picky": _picky,
    "closure": _closed,
    "attempt": lambda tables, a: (
        +Counter({(_FAULT,): sum(count for row, count in tables[a].items() if row[-1] == UNLUCKY)})
    ),
    "known": lambda tables, a: Counter({row: count for row, count in tables[a].items() if row[1] is not None}),
    "same": lambda tables, a: Counter(tables[a]),
}
