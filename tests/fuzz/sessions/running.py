"""Run a program in a session and in its twin, and compare all that can be read."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from differential import Session
from differential.durable import Directory, Shard
from differential.session import Changes
from tests.fuzz.programs import Wrong, drops, run_steps
from tests.fuzz.sessions.drawing import Program, TableOf
from tests.fuzz.sessions.values import FORMS, OUT, TYPES, Column, Row, as_pandas, contents, rows_of
from tests.fuzz.sessions.views import Failed, Rows, Tree, answer, built, columns_of, sources
from tests.oracle.database import Database
from timely.errors import SessionError


def run(program: Program) -> None:
    """Run a program. Raises Wrong, or what the session raises and must not."""
    with ExitStack() as stack:
        state = stack.enter_context(tempfile.TemporaryDirectory()) if program.is_durable else None
        running = _Running(program, state)
        run_steps(running, program.steps)


class _Running:
    def __init__(self, program: Program, state: str | None) -> None:
        self.program, self.state, self.number = program, state, 0
        self.tables = {table.name: table for table in program.tables}
        self.twin = Database({table.name: _key_places(table) for table in program.tables})
        self.columns: dict[str, tuple[Column, ...]] = {table.name: table.indexed for table in program.tables}
        self.trees: dict[str, Tree] = {}
        self.durable: set[str] = set()
        self.followed: dict[str, tuple[Changes, Rows]] = {}
        self.watched: dict[str, Rows] = {}
        self.open()

    def open(self) -> None:
        program = self.program
        self.db = Session(program.workers, processes=program.processes, state=self.state)
        self.followed, self.watched = {}, {}
        is_first = not self.twin.tables
        for table in program.tables:
            names = [column.name for column in table.columns]
            data = {column.name: TYPES[column.type].stated for column in table.columns}
            if table.rows:
                data = FORMS["arrays"](table.columns, table.rows)
            made = self.db.table(table.name, data, key=table.key if len(table.key) > 1 else table.key[0])
            self.expect(made.columns == tuple(names), f"{table.name} has the columns {made.columns}")
            self.follow(table.name)
            if is_first:
                self.twin.tables[table.name] = Counter(rows_of(table.columns, table.rows))
        self.db.commit()

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise Wrong(otherwise)

    # Steps

    def do_state(self, name: str, how: str, rows: tuple[Row, ...], form: str) -> None:
        table = self.tables[name]
        columns = [each for each in table.columns if how != "delete by key" or each.name in table.key]
        data = FORMS[form](columns, rows)
        {"insert": self.db.table(name).insert, "upsert": self.db.table(name).upsert}.get(
            how, self.db.table(name).delete
        )(data)
        self.twin.pending.append((name, how, rows_of(columns, rows)))

    def do_commit(self) -> None:
        self.commit(self.db.commit)

    def do_rollback(self) -> None:
        self.db.rollback()
        self.twin.pending.clear()

    def do_block(self, statements: tuple[Any, ...], fails: bool) -> None:
        pending = list(self.twin.pending)

        def block() -> None:
            with self.db.transaction():
                for statement in statements:
                    self.do_state(*statement[1:])
                if fails:
                    raise ZeroDivisionError

        if not fails:
            self.commit(block)
            return
        try:
            block()
        except ZeroDivisionError:
            self.twin.pending = pending

    def do_view(self, name: str, tree: Tree, is_durable: bool) -> None:
        if not self.is_readable(tree):
            return
        refused = ""
        try:
            self.db.view(name, built(tree), durable=is_durable)
        except SessionError as error:
            refused = str(error)
        if readers := self.readers(name):
            self.expect("cannot be replaced" in refused, f"{name} was replaced, though {readers} read it: {refused}")
            return
        try:
            answer(tree, self.contents())
        except Failed:
            self.expect("refuses" in refused, f"view {name} was made, though its function fails: {refused}")
            return
        self.expect(not refused, f"view {name} was refused: {refused}")
        self.trees.pop(name, None)  # so that each comes after what it reads
        self.trees[name], self.columns[name] = tree, columns_of(tree)
        self.durable = self.durable | {name} if is_durable else self.durable - {name}
        self.follow(name)
        self.compare_one(name, "records")

    def do_drop(self, name: str) -> None:
        if name in self.tables or name not in self.trees:
            return
        if drops(self, name):
            self.forget(name)

    def do_ask(self, tree: Tree, form: str) -> None:
        if not self.is_readable(tree):
            return
        try:
            expected = answer(tree, self.contents())
        except Failed:
            try:
                self.db.ask(built(tree))
            except SessionError as error:
                self.expect("refuses" in str(error), str(error))
                return
            raise Wrong("a question was answered though its function fails") from None
        found = contents(self.db.ask(built(tree)), form)
        self.same(f"the answer as {form}", found, as_pandas(expected) if form == "pandas" else expected)

    def do_read(self, name: str, form: str) -> None:
        if name in self.tables or name in self.trees:
            self.compare_one(name, form)

    def do_reopen(self) -> None:
        if self.state is None:
            return
        self.do_rollback()
        self.do_commit()  # which appends what durable views have more or less than before they were defined again
        self.db.close()
        for name in self.durable:
            self.compare_shard(name)
        self.trees.clear()
        self.durable.clear()
        self.columns = {table.name: table.indexed for table in self.program.tables}
        self.open()
        for name in self.tables:
            self.compare_one(name, "records")

    # Comparing

    def commit(self, commit: Callable[[], object]) -> None:
        refused = ""
        try:
            commit()
        except SessionError as error:
            refused = str(error)
        if not self.twin.commit():
            self.expect("does not have the row" in refused, f"the commit was not refused: {refused}")
            self.compare()
            return
        failed = self.failed()
        self.expect(bool(failed) == bool(refused), f"the commit should drop {failed}: {refused or 'no error'}")
        for name in failed:
            self.expect(f"view {name!r}" in refused, f"the error does not name {name}: {refused}")
            self.forget(name)
        self.compare()

    def failed(self) -> list[str]:
        """Return the views that fail on the rows that there are now, and those that read them."""
        found = self.indexed()
        failed = []
        for name, tree in self.trees.items():
            try:
                found[name] = answer(tree, found)
            except (Failed, KeyError):
                failed.append(name)
        return failed

    def indexed(self) -> dict[str, Rows]:
        """Return the rows of the tables as definitions have them, with the columns of the key first."""
        found = {}
        for table in self.program.tables:
            places = [table.columns.index(column) for column in table.indexed]
            rows = self.twin.tables[table.name]
            found[table.name] = Counter({tuple(row[each] for each in places): rows[row] for row in rows})
        return found

    def contents(self) -> dict[str, Rows]:
        found = self.indexed()
        for name, tree in self.trees.items():
            found[name] = answer(tree, found)
        return found

    def compare(self) -> None:
        expected = {**self.contents(), **self.twin.tables}
        for place, name in enumerate(expected):
            form = OUT[(self.number + place) % len(OUT)]
            self.compare_one(name, form, expected)
        for name, (changes, rows) in self.followed.items():
            for change in changes.read_nowait():
                _add(rows, change)
            self.same(f"what changes() of {name} add up to", rows, expected[name])
            self.same(f"what watch() of {name} adds up to", self.watched[name], expected[name])

    def compare_one(self, name: str, form: str, expected: dict[str, Rows] | None = None) -> None:
        found = self.db[name]
        rows = (expected or {**self.contents(), **self.twin.tables})[name]
        self.same(f"{name} as {form}", contents(found, form), as_pandas(rows) if form == "pandas" else rows)
        self.expect(len(found) == rows.total(), f"{name} has {len(found)} rows, not {rows.total()}")
        columns = self.tables[name].columns if name in self.tables else self.columns[name]
        names = tuple(column.name for column in columns)
        self.expect(found.columns == names, f"{name} has the columns {found.columns}, not {names}")
        if form == "records":
            repr(found)
        if form == "arrow":
            self.compare_types(name)

    def compare_types(self, name: str) -> None:
        if name in self.tables:
            table = self.db[name].to_arrow()
            for column, field in zip(self.tables[name].columns, table.schema):
                of = TYPES[column.type].arrow
                if column.type != "value" and str(of) != str(field.type):
                    raise Wrong(f"column {column.name} of {name} is {field.type}, not {of}")

    def compare_shard(self, name: str) -> None:
        found = Shard(name, Directory(self.state or "").store(name)).read()
        rows = Counter({rows_of((), [row])[0]: count for row, count in found.items()})
        self.same(f"the durable collection {name}", rows, self.contents()[name])

    def same(self, what: str, found: Rows, expected: Rows) -> None:
        if +found != +expected:
            raise Wrong(f"{what}: more is {dict(found - expected)}, less is {dict(expected - found)}")

    def follow(self, name: str) -> None:
        readable = self.db[name]
        rows = Counter(rows_of((), readable.records()))
        self.followed[name] = readable.changes(), rows
        self.watched[name] = seen = Counter(rows)
        readable.watch(lambda change: _add(seen, change))

    def forget(self, name: str) -> None:
        del self.trees[name], self.columns[name], self.followed[name], self.watched[name]
        self.durable.discard(name)

    def is_readable(self, tree: Tree) -> bool:
        """Return whether all that a tree reads is there, with the columns that it had when the tree was drawn."""
        return all(self.columns.get(name) == columns for name, columns in _wanted(tree))

    def readers(self, name: str) -> list[str]:
        return [each for each, tree in self.trees.items() if name in sources(tree) and each != name]


def _add(rows: Rows, change: Any) -> None:
    for row, diff in change.records():
        (key,) = rows_of((), [row])
        rows[key] += diff
        if not rows[key]:
            del rows[key]


def _wanted(tree: Tree) -> list[tuple[str, tuple[Column, ...]]]:
    if tree[0] == "source":
        return [(tree[1], tree[2])]
    return [pair for each in tree[1:] if isinstance(each, Tree) for pair in _wanted(each)]


def _key_places(table: TableOf) -> tuple[int, ...]:
    names = [column.name for column in table.columns]
    return tuple(sorted(names.index(name) for name in table.key))
