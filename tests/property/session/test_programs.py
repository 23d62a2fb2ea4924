"""Random programs give in a session what they give in a database that recomputes everything.

The slow twin is `tests.oracle.database`: dictionaries, and a plain function for each view. After each commit all
tables and views are equal, and what `changes()` has collected adds up to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from differential import Session
from differential.errors import SessionError
from differential.graphs import reachability
from differential.session import Changes
from tests.oracle.database import Database, Question, Row, Rows

TABLES = {"a": ("k", "x"), "b": ("k", "name")}


class Definition(NamedTuple):
    """A question in both languages, and the tables or views that it reads."""

    ours: Any
    plain: Question
    reads: tuple[str, ...] = ()


def sums(tables: Mapping[str, Rows]) -> Rows:
    total: Counter[Any] = Counter()
    for (key, x), count in tables["a"].items():
        total[key] += x * count
    return Counter({(key, total[key]): 1 for key in {row[0] for row in tables["a"]}})


def several(tables: Mapping[str, Rows]) -> Rows:
    groups: dict[Any, list[int]] = {}
    for key, x in tables["a"].elements():
        groups.setdefault(key, []).append(x)
    return Counter((key, len(xs), max(xs), sum(xs), min(xs), sum(xs) / len(xs)) for key, xs in groups.items())


def joined(left: Rows, right: Rows) -> Rows:
    return Counter(
        {
            (*one, *other[1:]): here * there
            for one, here in left.items()
            for other, there in right.items()
            if one[0] == other[0]
        }
    )


def reached(tables: Mapping[str, Rows]) -> Rows:
    found, new = {0}, {0}
    while new:
        new = {x for k, x in tables["a"] if k in new} - found
        found |= new
    return Counter((node, 0) for node in found)


def largest(tables: Mapping[str, Rows]) -> Rows:
    best: dict[Any, Any] = {}
    for k, name in tables["b"]:
        best[k] = max(best.get(k, name), name)
    return Counter(best.items())


DEFINITIONS = {
    "count": Definition(
        lambda t: t.a.group_by("k").count(),
        lambda t: Counter(Counter(row[0] for row in t["a"].elements()).items()),
    ),
    "sum": Definition(lambda t: t.a.group_by("k").sum("x"), sums),
    "several": Definition(
        lambda t: t.a.group_by("k").aggregate(
            n="count", most=("x", "max"), total=("x", "sum"), least=("x", "min"), average=("x", "mean")
        ),
        several,
    ),
    "join": Definition(lambda t: t.a.join(t.b, on="k"), lambda t: joined(t["a"], t["b"])),
    "distinct": Definition(lambda t: t.a.select("x").distinct(), lambda t: Counter({(x,) for _, x in t["a"]})),
    "some": Definition(
        lambda t: t.b.filter(lambda r: r.name == "n"),
        lambda t: Counter({row: count for row, count in t["b"].items() if row[1] == "n"}),
    ),
    "max": Definition(lambda t: t.b.group_by("k").max("name"), largest),
    "reached": Definition(lambda t: reachability(t.a, t.constant(0)), reached),
    "over": Definition(lambda t: t.count.join(t.max), lambda t: joined(t["count"], t["max"]), ("count", "max")),
    "same": Definition(lambda t: t.a, lambda t: t["a"]),
}

keys = st.integers(0, 3)
rows = {"a": st.tuples(keys, st.integers(0, 3)), "b": st.tuples(keys, st.sampled_from(["m", "n", "ö"]))}
statements = st.one_of(
    *(
        st.tuples(
            st.just(name), st.sampled_from(["insert", "insert", "upsert", "delete"]), st.lists(rows[name], max_size=4)
        )
        for name in TABLES
    ),
    st.tuples(st.sampled_from(list(TABLES)), st.just("delete by key"), st.lists(st.tuples(keys), max_size=2)),
)
steps = st.one_of(
    statements,
    statements,
    statements,
    st.just(("commit",)),
    st.just(("commit",)),
    st.just(("rollback",)),
    st.tuples(st.sampled_from(["ask", "view", "view", "drop"]), st.sampled_from(list(DEFINITIONS))),
    st.tuples(st.sampled_from(["block", "failing block"]), st.lists(statements, max_size=3)),
)


class Program:
    """A session and its twin, and the steps of a program made on both."""

    def __init__(self, db: Session) -> None:
        self.db, self.twin = db, Database()
        self.followed: dict[str, tuple[Changes, Rows]] = {}
        for name, columns in TABLES.items():
            types = {"k": int, "x": int, "name": str}
            db.table(name, {column: types[column] for column in columns}, key="k")
            self.twin.tables[name] = Counter()
            self.follow(name)

    def step(self, what: str, *given: Any) -> None:
        if what in TABLES:
            self.state(what, *given)
        elif what == "rollback":
            self.db.rollback()
            self.twin.pending.clear()
        elif what == "commit":
            self.commit(self.db.commit)
        elif what == "ask" and self.is_readable(given[0]):
            question = DEFINITIONS[given[0]]
            assert Counter(self.db.ask(question.ours).records()) == self.twin.ask(question.plain)
        elif what == "view" and self.is_readable(given[0]):
            self.view(given[0])
        elif what == "drop" and given[0] in self.twin.views:
            self.drop(given[0])
        elif what == "block":
            self.commit(lambda: self.block(given[0]))
        elif what == "failing block":
            pending = list(self.twin.pending)
            with pytest.raises(ZeroDivisionError):
                self.block([*given[0], None])
            self.twin.pending = pending

    def block(self, made: list[Any]) -> None:
        with self.db.transaction():
            for statement in made:
                if statement is None:
                    raise ZeroDivisionError
                self.state(*statement)

    def state(self, name: str, kind: str, given: list[Row]) -> None:
        table = self.db[name]
        if kind == "delete by key":
            table.delete(k=[key for (key,) in given])  # type: ignore[union-attr]
        elif given:
            getattr(table, kind)(given)
        self.twin.pending.append((name, kind, given))

    def commit(self, commit: Any) -> None:
        refused = ""
        try:
            commit()
        except SessionError as error:
            refused = str(error)
        assert self.twin.commit() == (not refused)
        assert not refused or "does not have the row" in refused
        self.compare()

    def is_readable(self, name: str) -> bool:
        return all(each in self.twin.views for each in DEFINITIONS[name].reads)

    def readers(self, name: str) -> list[str]:
        return [each for each in self.twin.views if name in DEFINITIONS[each].reads]

    def view(self, name: str) -> None:
        if self.readers(name):
            with pytest.raises(SessionError, match="cannot be replaced"):
                self.db.view(name, DEFINITIONS[name].ours)
            return
        self.db.view(name, DEFINITIONS[name].ours)
        self.twin.views[name] = DEFINITIONS[name].plain
        self.follow(name)

    def drop(self, name: str) -> None:
        if self.readers(name):
            with pytest.raises(SessionError, match="cannot be dropped"):
                self.db.drop(name)
            return
        self.db.drop(name)
        del self.twin.views[name], self.followed[name]

    def follow(self, name: str) -> None:
        self.followed[name] = self.db[name].changes(), Counter(self.db[name].records())

    def compare(self) -> None:
        for name, (changes, contents) in self.followed.items():
            expected = self.twin.contents(name)
            found = self.db[name]
            assert Counter(found.records()) == expected, name
            assert len(found) == expected.total(), name
            for change in changes.read_nowait():
                for row, diff in change.records():
                    contents[row] += diff
            assert {row: count for row, count in contents.items() if count} == expected, name


def compare(db: Session, views: list[str], program: list[Any]) -> None:
    """Run a program in a session that is new and in its twin, and compare them."""
    twins = Program(db)
    for name in views:
        twins.step("view", name)
    for step in program:
        twins.step(*step)
    twins.commit(db.commit)


@given(
    st.integers(1, 2),
    st.lists(st.sampled_from(list(DEFINITIONS)), min_size=2, unique=True),
    st.lists(steps, min_size=5, max_size=25),
)
def test_a_session_has_what_a_database_that_recomputes_everything_has(
    workers: int, views: list[str], program: list[Any]
) -> None:
    with Session(workers) as db:
        compare(db, views, program)
