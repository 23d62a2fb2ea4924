"""A session in plain Python: tables, files that fill them, watermarks, and views that are computed from scratch.

Nothing here is shared with the code under test. Event times are whole numbers, whatever type a session gives them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Row = tuple[Any, ...]
Rows = Counter[Row]
Question = Callable[[Mapping[str, Rows]], Rows]

COLUMNS = ("k", "s", "at", "x")
AT = COLUMNS.index("at")


class Fails(Exception):
    """A function of a view fails on its rows."""


class Statement(NamedTuple):
    """What is done with rows, or with keys, of a table. `source` is None for the program."""

    table: str
    how: str
    rows: tuple[Row, ...]
    source: str | None = None


class Rejected(NamedTuple):
    """A line of a source that is not a row."""

    line: int
    text: str


@dataclass
class Clock:
    """The event times of a table."""

    lateness: int | None
    mark: int | None = None
    highest: dict[str | None, int] = field(default_factory=dict)


@dataclass
class Feed:
    """A file that fills a table: the lines that have arrived and were not committed yet."""

    name: str
    table: str
    on_error: str
    upsert: bool
    arrived: list[Row | Rejected] = field(default_factory=list)
    is_over: bool = False
    """Whether it has stopped at a line that is not a row."""

    def due(self) -> tuple[list[Row], list[Rejected], bool]:
        """Return the rows and rejects that the next commit takes, and whether the source then stops."""
        rows: list[Row] = []
        rejected: list[Rejected] = []
        for each in [] if self.is_over else self.arrived:
            if not isinstance(each, Rejected):
                rows.append(each)
            elif self.on_error == "stop":
                return rows, rejected, True
            else:
                rejected.append(each)
        return rows, rejected, False

    def take(self, stops: bool) -> None:
        """Let a commit have what is due. A source that stops does so at the first line that is not a row."""
        if not self.is_over:
            first = next((place for place, each in enumerate(self.arrived) if isinstance(each, Rejected)), 0)
            self.arrived, self.is_over = self.arrived[first:] if stops else [], stops


class Twin:
    """What a session has as of its last commit, and what waits for the next one."""

    def __init__(self) -> None:
        self.tables: dict[str, Rows] = {}
        self.keys: dict[str, tuple[int, ...]] = {}
        self.clocks: dict[str, Clock] = {}
        self.feeds: list[Feed] = []
        self.views: dict[str, Question] = {}
        self.pending: list[Statement] = []
        self.advanced: list[tuple[str, int]] = []
        self.expired: dict[str, int] = {}

    def add(self, name: str, key: tuple[str, ...], lateness: int | None, has_clock: bool) -> None:
        """Add an empty table."""
        self.tables[name] = Counter()
        self.keys[name] = tuple(COLUMNS.index(each) for each in key)
        if has_clock:
            self.clocks[name] = Clock(lateness)
            self.tables[f"{name}_late"], self.tables[f"{name}_watermark"] = Counter(), Counter()

    def remove(self, name: str) -> None:
        """Remove a table, and what exists because of it."""
        for each in (name, f"{name}_late", f"{name}_watermark"):
            self.tables.pop(each, None)
        self.keys.pop(name)
        self.clocks.pop(name, None)
        self.feeds = [feed for feed in self.feeds if feed.table != name]
        self.pending = [each for each in self.pending if each.table not in (name, f"{name}_late")]
        self.advanced = [each for each in self.advanced if each[0] != name]
        self.expired.pop(name, None)

    def contents(self) -> dict[str, Rows]:
        """Return the rows of all tables and views. Raises Fails if a view fails."""
        found = {name: Counter(rows) for name, rows in self.tables.items()}
        for name, question in self.views.items():
            found[name] = +question(found)
        return found

    def failed(self, reads: Mapping[str, Iterable[str]]) -> list[str]:
        """Return the views that fail, and those that read them."""
        found, failed = dict(self.tables), []
        for name, question in self.views.items():
            try:
                if set(reads[name]) & set(failed):
                    raise Fails
                found[name] = +question(found)
            except Fails:
                failed.append(name)
        return failed

    def rollback(self) -> None:
        """Forget what the program has not committed."""
        self.pending, self.advanced, self.expired = [], [], {}

    def commit(self) -> tuple[bool, list[str]]:
        """Make one commit; return False if it is refused, and the names of the sources that stop in it."""
        statements, stopping, rejects = list(self.pending), [], []
        for feed in self.feeds:
            rows, rejected, stops = feed.due()
            how = "upsert" if feed.upsert else "insert"
            # A source passes its rows on in one statement, or in several: it makes no difference.
            statements += [Statement(feed.table, how, (row,), feed.name) for row in rows]
            rejects += [(feed, each) for each in rejected if feed.on_error == "rejects"]
            stopping += [feed] if stops else []
        tables = {name: Counter(rows) for name, rows in self.tables.items()}
        if not self._apply(tables, statements):
            self.rollback()
            return False, []
        self.tables = tables
        for feed, each in rejects:
            self.tables["rejects"][(feed.name, each.line, each.text)] += 1
        for name, mark in self._moved(statements).items():
            self.clocks[name].mark = mark
            self.tables[f"{name}_watermark"] = Counter({(mark,): 1})
        for feed in self.feeds:
            feed.take(feed in stopping)
        self.rollback()
        return True, [feed.name for feed in stopping]

    def _apply(self, tables: dict[str, Rows], statements: list[Statement]) -> bool:
        """Change the tables by statements, and return True; or return False if a row to delete is not there."""
        for name, limit in self.expired.items():
            for row in [row for row in tables[name] if row[AT] < limit]:
                del tables[name][row]
        by_table: dict[str, list[Statement]] = {}
        for each in self._punctual(tables, statements):
            by_table.setdefault(each.table, []).append(each)
        for name, made in by_table.items():
            rows = tables[name]
            changed, replaced = self._changed(name, rows, made)
            if any(count < 0 for count in changed.values()):
                return False
            tables[name] = self._without_late_keys(tables, name, changed, replaced) if name in self.clocks else +changed
        return True

    def _punctual(self, tables: dict[str, Rows], statements: list[Statement]) -> Iterator[Statement]:
        """Yield the statements without late rows, which become rows of the tables of late changes."""
        for each in statements:
            clock = self.clocks.get(each.table)
            if clock is None or clock.mark is None or each.how == "delete by key":
                yield each
                continue
            late = [row for row in each.rows if row[AT] < clock.mark]
            tables[f"{each.table}_late"].update((*row, each.how) for row in late)
            yield each._replace(rows=tuple(row for row in each.rows if row[AT] >= clock.mark))

    def _changed(self, name: str, rows: Rows, statements: list[Statement]) -> tuple[Rows, set[Row]]:
        """Return the rows after statements, and the keys that an upsert or a deletion by key has touched."""
        changed, touched = Counter(rows), set()
        for each in statements:
            if each.how == "insert":
                changed.update(each.rows)
            elif each.how == "delete":
                changed.subtract(each.rows)
            else:
                last = {self._key(name, row) if each.how == "upsert" else row: row for row in each.rows}
                touched |= set(last)
                for row in [row for row in changed if self._key(name, row) in last]:
                    del changed[row]
                changed.update(last.values() if each.how == "upsert" else ())
        return changed, touched

    def _without_late_keys(self, tables: dict[str, Rows], name: str, changed: Rows, touched: set[Row]) -> Rows:
        """Undo the changes of keys by which a row before the watermark would be removed, and record them as late."""
        mark, before = self.clocks[name].mark, tables[name]
        keys = {self._key(name, row) for row in before if mark is not None and row[AT] < mark} & touched
        kept = Counter({row: count for row, count in changed.items() if self._key(name, row) not in keys})
        kept.update({row: count for row, count in before.items() if self._key(name, row) in keys})
        for row in {*before, *changed}:
            if self._key(name, row) in keys:
                change = changed[row] - before[row]
                how = "insert" if change > 0 else "delete"
                tables[f"{name}_late"][(*row, how)] += abs(change)
        return +kept

    def _key(self, name: str, row: Row) -> Row:
        return tuple(row[place] for place in self.keys.get(name, (0,)))

    def _moved(self, statements: list[Statement]) -> dict[str, int]:
        """Return where watermarks move."""
        moved = {}
        for name, clock in self.clocks.items():
            for each in statements:
                if each.table == name and each.how in ("insert", "upsert"):
                    highest = max([row[AT] for row in each.rows], default=None)
                    if highest is not None:
                        clock.highest[each.source] = max(highest, clock.highest.get(each.source, highest))
            live = [feed.name for feed in self.feeds if feed.table == name]
            marks = [mark for table, mark in self.advanced if table == name]
            marks += [] if clock.mark is None else [clock.mark]
            if clock.lateness is not None and clock.highest:
                counts = live or list(clock.highest)
                if all(source in clock.highest for source in counts):
                    marks.append((min if live else max)(clock.highest[each] for each in counts) - clock.lateness)
            if marks and max(marks) != clock.mark:
                moved[name] = max(marks)
        return moved
