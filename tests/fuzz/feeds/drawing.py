"""Random programs, as data."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from tests.fuzz.feeds.twin import Row
from tests.fuzz.feeds.views import UNLUCKY, View

Step = tuple[Any, ...]

_TEXTS = ("ann", "bob", "a,b", 'say "x"', "größe", None)
_WINDOWS = ("tumbling", "sliding", "sessions")
_KINDS = (*_WINDOWS, "final", "final", "named final", "marks", "spent", "join", "shared join", "top", "antijoin")
_KINDS += ("changes", "picky", "closure", "attempt", "known", "same")


class TableOf(NamedTuple):
    """A table of a program. Its event times move its watermark if `has_clock`."""

    name: str
    key: tuple[str, ...]
    has_clock: bool
    lateness: int | None


class SourceOf(NamedTuple):
    """A file that fills a table."""

    name: str
    table: str
    form: str
    on_error: str
    upsert: bool


class Program(NamedTuple):
    """Tables, sources and steps, which are tuples of a name and arguments."""

    seed: int
    workers: int
    processes: bool
    is_durable: bool
    is_timed: bool
    tables: tuple[TableOf, ...]
    sources: tuple[SourceOf, ...]
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        head = f"seed {self.seed}, {self.workers} worker(s){' in processes' if self.processes else ''}"
        head += (", durable" if self.is_durable else "") + (", timestamps" if self.is_timed else "")
        return "\n".join([head, *map(str, self.tables), *map(str, self.sources), *map(str, self.steps)])


def draw(seed: int, workers: int | None = None, processes: bool = False, steps: int = 40) -> Program:
    """Return the program of a seed."""
    random = Random(seed)
    return _Drawing(random).program(seed, random.choice((1, 1, 3)) if workers is None else workers, processes, steps)


class _Drawing:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 20
        self.tables = [
            TableOf("a", random.choice((("k",), ("k", "s"))), True, random.choice((0, 3, 8, 8, None))),
            TableOf("b", ("k",), random.random() < 0.6, random.choice((0, 5))),
            TableOf("c", ("k",), False, None),
        ]
        self.sources = [self.source(number) for number in range(random.randint(0, 3))]
        self.views: dict[str, str] = {}

    def source(self, number: int) -> SourceOf:
        random = self.random
        on_error = random.choice(("skip", "rejects", "rejects", "stop"))
        table = random.choice(("a", "a", "b", "c"))
        return SourceOf(f"f{number}", table, random.choice(("csv", "json")), on_error, random.random() < 0.4)

    def program(self, seed: int, workers: int, processes: bool, steps: int) -> Program:
        is_durable, is_timed = self.random.random() < 0.3, self.random.random() < 0.5
        made = tuple(self.step(is_timed) for _ in range(steps))
        tables, sources = tuple(self.tables), tuple(self.sources)
        return Program(seed, workers, processes, is_durable, is_timed, tables, sources, (*made, ("commit",)))

    def row(self) -> Row:
        random = self.random
        x = UNLUCKY if random.random() < 0.03 else random.randint(-3, 9)
        return random.randint(0, 4), random.choice(_TEXTS), self.now + random.randint(-14, 6), x

    def rows(self, most: int) -> tuple[Row, ...]:
        return tuple(self.row() for _ in range(self.random.randint(1, most)))

    def step(self, is_timed: bool) -> Step:
        self.now += self.random.choice((0, 1, 1, 3))
        steps = {
            self.state: 10,
            self.write: 8 if self.sources else 0,
            self.commit: 12,
            self.view: 8,
            self.drop: 1,
            self.ask: 3,
            self.advance: 1,
            self.expire: 1,
            self.follow: 4,
            self.sink: 4,
            self.other: 3,
        }
        return self.random.choices(list(steps), list(steps.values()))[0](is_timed)

    def state(self, is_timed: bool) -> Step:
        table = self.random.choice(self.tables)
        how = self.random.choice(("insert", "insert", "insert", "upsert", "upsert", "delete", "delete by key"))
        return "state", table.name, how, self.rows(3), self.random.random()

    def write(self, is_timed: bool) -> Step:
        lines = tuple("bad" if self.random.random() < 0.1 else self.row() for _ in range(self.random.randint(1, 5)))
        return "write", self.random.choice(self.sources).name, lines, self.random.choice(("", "", "part", "replaced"))

    def commit(self, is_timed: bool) -> Step:
        return (self.random.choice(("commit", "commit", "commit", "commit async", "block", "race")),)

    def view(self, is_timed: bool) -> Step:
        name = self.random.choice(("v", "w", "x", "y", "z"))
        return "view", name, self.drawn(name, is_timed)

    def drawn(self, name: str, is_timed: bool) -> View:
        random = self.random
        kind = random.choice(_KINDS)
        reads = [random.choice(("a", "a", "b"))]
        if kind in ("final", "named final"):
            reads = [random.choice([each for each in ("v", "w", "x", "y", "z") if each != name])]
        if kind in ("join", "shared join", "antijoin", "named final"):
            reads.append(random.choice(("b", "c")))
        return View(kind, tuple(reads), is_timed)

    def drop(self, is_timed: bool) -> Step:
        return "drop", self.random.choice(("v", "w", "x", "y", "z", "a", "b", "c"))

    def ask(self, is_timed: bool) -> Step:
        return "ask", self.drawn("", is_timed)

    def advance(self, is_timed: bool) -> Step:
        return "advance", self.random.choice(("a", "b")), self.now + self.random.randint(-20, 0)

    def expire(self, is_timed: bool) -> Step:
        return "expire", self.random.choice(("a", "b")), self.now + self.random.randint(-40, -5)

    def follow(self, is_timed: bool) -> Step:
        number = self.random.randint(0, 3)
        name = self.random.choice(("a", "b", "c", "a_late", "a_watermark", "v", "w", "x", "y", "z"))
        return self.random.choice(("follow", "follow", "watch", "read", "leave")), number, name

    def sink(self, is_timed: bool) -> Step:
        name = self.random.choice(("a", "b", "c", "v", "v", "w", "w", "x", "y", "z"))
        what = self.random.choice(("sink", "sink", "sink", "leave sink", "forget sink"))
        return what, name, self.random.choice(("csv", "json", "parquet", "arrow"))

    def other(self, is_timed: bool) -> Step:
        return (self.random.choice(("rollback", "handle", "reopen", "reopen", "close source", "open source")),)
