"""Random programs: tables, statements, trees of views, and what else a program does, as data."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from tests.fuzz.sessions.values import OUT, TYPES, Column, Row, forms_of, may_be_null, some_rows, values_of
from tests.fuzz.sessions.views import Tree, columns_of, tree

_NAMES = ["k", "x", "name", "time", "diff", "a b", "größe", "class", "count", "index", "columns", "_x"]
_MODES = ("insert", "insert", "insert", "upsert", "delete", "delete", "delete by key")
_SUMMED = ("int64", "int64?", "uint64", "uint64?", "float64", "float64?", "float32", "float32?", "duration[us]")
_COMPARED = ("int64", "uint64", "float64", "text", "date", "timestamp", "duration", "time")
_EQUAL = (*_COMPARED, "float32", "bool", "bytes", "decimal")
_WINDOWED = ("int64", "timestamp[us]", "timestamp[us, Europe/Berlin]")


_WITH_NUL = ("\0", "a\0", b"\0", b"a\0")


class TableOf(NamedTuple):
    """A table of a program: its columns in the order in which they are read, and those of its key."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    rows: tuple[Row, ...] = ()

    @property
    def indexed(self) -> tuple[Column, ...]:
        """The columns in the order in which definitions have them: those of the key first."""
        by_name = {column.name: column for column in self.columns}
        return (*(by_name[name] for name in self.key), *(each for each in self.columns if each.name not in self.key))


class Program(NamedTuple):
    """Tables and steps, which are tuples of a name and arguments."""

    seed: int
    workers: int
    processes: bool
    is_durable: bool
    tables: tuple[TableOf, ...]
    steps: tuple[tuple[Any, ...], ...]

    def __str__(self) -> str:
        head = f"seed {self.seed}, {self.workers} worker(s){' in processes' if self.processes else ''}"
        head += ", durable" if self.is_durable else ""
        return "\n".join([head, *map(str, self.tables), *map(str, self.steps)])


def draw(seed: int, workers: int | None = None, processes: bool = False, steps: int = 24) -> Program:
    """Return the program of a seed."""
    random = Random(seed)
    return _Drawing(random).program(seed, random.choice((1, 1, 2)) if workers is None else workers, processes, steps)


class _Drawing:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.known: dict[str, tuple[Column, ...]] = {}
        self.tables: list[TableOf] = []
        self.names = _NAMES

    def program(self, seed: int, workers: int, processes: bool, steps: int) -> Program:
        is_durable = self.random.random() < 0.3
        if is_durable:
            self.names = [name for name in _NAMES if name not in ("time", "diff")]
        types = self.random.sample(list(TYPES), 4)
        for name in ("a", "b", "c")[: self.random.choice((1, 2, 3))]:
            self.tables.append(self.table(name, types))
            self.known[name] = self.tables[-1].indexed
        made = tuple(self.step(is_durable) for _ in range(steps))
        return Program(seed, workers, processes, is_durable, tuple(self.tables), (*made, ("commit",)))

    def table(self, name: str, types: Sequence[str]) -> TableOf:
        random = self.random
        names = random.sample(self.names, random.randint(1, 4))
        columns = tuple(Column(each, random.choice(types), random.random() < 0.7) for each in names)
        key = tuple(random.sample(names, random.choice((1, 1, min(2, len(names))))))
        rows = () if random.random() < 0.7 else tuple(some_rows(random, columns, 5))
        if any(column.type == "value" and all(row[at] is None for row in rows) for at, column in enumerate(columns)):
            rows = ()  # nulls alone have no type
        return TableOf(name, columns, key, rows)

    def step(self, is_durable: bool) -> tuple[Any, ...]:
        random = self.random
        what = random.choices(
            ("state", "commit", "rollback", "block", "view", "drop", "ask", "read", "reopen"),
            (10, 6, 1, 2, 6, 1, 3, 2, 1.5 if is_durable else 0),
        )[0]
        if what == "state":
            return self.statement()
        if what == "block":
            fails = random.random() < 0.3
            return ("block", tuple(self.statement() for _ in range(random.randint(0, 3))), fails)
        if what == "view":
            name = random.choice(["v", "w", "x", "y", "z"])
            made = self.tree(random.choice((1, 1, 2, 2, 3)), without=name)
            self.known[name] = columns_of(made)
            return ("view", name, made, is_durable and random.random() < 0.3)
        if what == "ask":
            return ("ask", self.tree(random.choice((1, 2, 3))), random.choice(OUT))
        if what in ("drop", "read"):
            given = random.choice(list(self.known))
            return (what, given) if what == "drop" else (what, given, random.choice(OUT))
        return (what,)

    def statement(self) -> tuple[Any, ...]:
        random, table = self.random, self.random.choice(self.tables)
        how = random.choice(_MODES)
        columns = table.columns
        if how == "delete by key":
            columns = tuple(column for column in columns if column.name in table.key)
            if len(columns) == len(table.columns):
                how = "delete"
        rows = tuple(some_rows(random, columns, 4))
        return ("state", table.name, how, rows, random.choice(forms_of(columns, how == "delete by key")))

    # Trees

    def tree(self, depth: int, without: str | None = None) -> Tree:
        if depth == 0:
            name = self.random.choice([name for name in self.known if name != without])
            return tree("source", name, self.known[name])
        own = self.tree(depth - 1, without)
        columns = columns_of(own)
        choices = [self.filtered, self.selected, self.grouped, self.grouped, self.joined, self.plain, self.paired]
        choices += [self.top, self.windowed, self.closed, self.picky]
        self.random.shuffle(choices)
        return next(made for each in choices if (made := each(own, columns, depth, without)) is not None)

    def plain(self, own: Tree, columns: Sequence[Column], depth: int, without: str | None) -> Tree:
        if self.random.random() < 0.5:
            return tree("distinct", own)
        names = [column.name for column in columns]
        return tree("keyed", own, tuple(self.random.sample(names, self.random.randint(1, min(2, len(names))))))

    def filtered(self, own: Tree, columns: Sequence[Column], depth: int, without: str | None) -> Tree | None:
        column = self.random.choice(columns)
        if column.type not in TYPES or len(columns) < 2:
            return None
        hows = ["null", "not null"] if may_be_null(column.type) else []
        hows += ["equal"] if column.type.startswith(_EQUAL) else []
        hows += ["less"] if column.type.startswith(_COMPARED) else []
        if not hows:
            return None
        # NumPy compares a text or bytes without the NULs at its end.
        values = [value for value in values_of(column) if value is not None and value not in _WITH_NUL]
        return tree("filter", own, column.name, self.random.choice(hows), self.random.choice(values))

    def selected(self, own: Tree, columns: Sequence[Column], depth: int, without: str | None) -> Tree:
        random = self.random
        names = [column.name for column in columns]
        column = random.choice(columns)
        if may_be_null(column.type) and random.random() < 0.3 and "is null" not in names:
            return tree("nulls", own, column.name, "is null")
        chosen = random.sample(names, random.randint(1, len(names)))
        pairs = [(name, name) for name in chosen]
        fresh = [name for name in (*self.names, "new") if name not in names]
        if fresh and random.random() < 0.5:
            pairs[-1] = (pairs[-1][0], random.choice(fresh))
        return tree("select", own, tuple(pairs))

    def grouped(self, own: Tree, columns: Sequence[Column], depth: int, without: str | None) -> Tree | None:
        random = self.random
        by = random.sample(columns, random.randint(1, min(2, len(columns))))
        aggregates = [("rows of it", "count", "")] if random.random() < 0.6 else []
        for number, column in enumerate(each for each in columns if each not in by):
            hows = ["min", "max"]
            if may_be_null(column.type) and not column.is_known:
                hows = ["min"]  # other aggregates refuse nulls
            elif column.is_small and column.type in _SUMMED:
                hows += ["sum", "sum"]
                hows += ["mean"] if column.type.startswith("int64") else []
            aggregates.append((f"of it {number}", random.choice(hows), column.name))
        taken = {each.name for each in by}
        if not aggregates or taken & {each[0] for each in aggregates}:
            return None
        return tree("group", own, tuple(each.name for each in by), tuple(aggregates))

    def joined(self, own: Tree, columns: Sequence[Column], depth: int, without: str | None) -> Tree | None:
        random = self.random
        other = self.tree(random.randint(0, depth - 1), without)
        theirs = columns_of(other)
        # Keys may have nulls on one side alone, except for bytes.
        pairs = [
            (a.name, b.name)
            for a in columns
            for b in theirs
            if a.type == b.type or (a.type.removesuffix("?") == b.type.removesuffix("?") != "bytes")
        ]
        if not pairs:
            return None
        pair = random.choice(pairs)
        if random.random() < 0.3:
            return tree("antijoin", own, other, *pair)
        rest = [column.name for column in columns if column.name != pair[0]]
        others = [column.name for column in theirs if column.name != pair[1]]
        if {pair[0], *rest} & set(others) or len(rest) + len(others) > 6:
            return None
        return tree("join", own, other, (pair,))

    def paired(self, own: Tree, columns: Sequence[Column], depth: int, without: str | None) -> Tree | None:
        other = self.tree(self.random.randint(0, depth - 1), without)
        theirs = columns_of(other)
        if len(theirs) != len(columns) or not all(map(_go_together, columns, theirs)):
            other = own
        return tree(self.random.choice(("concat", "except", "intersect", "union")), own, other)

    def top(self, own: Tree, columns: Sequence[Column], depth: int, without: str | None) -> Tree | None:
        if len(columns) < 2:
            return None
        by = tuple(self.random.sample([column.name for column in columns], 1))
        return tree("top", own, by, self.random.randint(1, 3), self.random.random() < 0.5)

    def windowed(self, own: Tree, columns: Sequence[Column], depth: int, without: str | None) -> Tree | None:
        random = self.random
        at = random.choice(columns)
        if at.type not in _WINDOWED or not at.is_small or {"window_start", "window_end", "count"} & _names(columns):
            return None
        present = tree("filter", own, at.name, "not null", None) if may_be_null(at.type) and len(columns) > 1 else own
        if may_be_null(at.type) and present is own:
            return None
        of = int if at.type == "int64" else lambda count: dt.timedelta(hours=count)
        kind = random.choice(("tumbling", "sliding", "sessions"))
        sizes = tuple(of(random.randint(1, 5)) for _ in range(2 if kind == "sliding" else 1))
        by = tuple(each.name for each in columns if each is not at and random.random() < 0.5)
        return tree("window", present, at.name, (kind, sizes), by)

    def closed(self, own: Tree, columns: Sequence[Column], depth: int, without: str | None) -> Tree | None:
        if len(columns) != 2 or columns[0].type != columns[1].type:
            return None
        return tree("closure", own)

    def picky(self, own: Tree, columns: Sequence[Column], depth: int, without: str | None) -> Tree | None:
        if own[0] != "source" or self.random.random() < 0.7:
            return None
        column = self.random.choice(columns)
        values = values_of(column) if column.type in TYPES else [None]
        return tree("picky", own, column.name, self.random.choice(values))


def _names(columns: Sequence[Column]) -> set[str]:
    return {column.name for column in columns}


def _go_together(one: Column, other: Column) -> bool:
    """Return whether two columns may be put together: no value of one stands for a null in the other."""
    if one.type == other.type:
        return True
    is_alike = one.type.removesuffix("?") == other.type.removesuffix("?") != "text"
    return is_alike and one.is_small and other.is_small and one.is_known and other.is_known
