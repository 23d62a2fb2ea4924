"""Run a program in a session and in its twin, and compare all that can be read."""

from __future__ import annotations

import asyncio
import csv
import datetime as dt
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from glob import escape, glob
from typing import Any
from unittest.mock import patch

import polars

from differential import Session
from differential.durable import Directory, Shard
from differential.session import Changes, sinks, sources
from differential.session.sources import files
from tests.fuzz.feeds.drawing import Program, SourceOf, TableOf
from tests.fuzz.feeds.twin import COLUMNS, Fails, Feed, Rejected, Row, Rows, Statement, Twin
from tests.fuzz.feeds.views import FINAL, NOON, View, plain, real
from tests.fuzz.programs import Wrong, drops, run_steps
from timely.errors import SessionError

_WINDOWS = ("tumbling", "sliding", "sessions")
_SINKS: dict[str, Any] = {
    "csv": sinks.csv,
    "json": sinks.json_lines,
    "parquet": sinks.parquet,
    "arrow": sinks.arrow,
}
_READERS: dict[str, tuple[str, Callable[[str], polars.DataFrame]]] = {
    "parquet": (".parquet", polars.read_parquet),
    "arrow": (".arrow", polars.read_ipc),
}
"""How the files in directories end, and how they are read."""


def run(program: Program) -> None:
    """Run a program. Raises Wrong, or what the session raises and must not."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(files, "QUIET", 0.0))  # nobody writes to files that were replaced
        running = _Running(program, stack.enter_context(tempfile.TemporaryDirectory()))
        run_steps(running, program.steps)


class _Follower:
    """One who follows a table or view: what each commit has changed, in the session and in the twin."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changes: Changes | None = None
        self.found: dict[int, Rows] = {}
        self.expected: dict[int, Rows] = {}

    def take(self, change: Any) -> None:
        rows = self.found.setdefault(change.time, Counter())
        for row, diff in change.records():
            rows[tuple(map(plain, row))] += diff


class _SinkOf:
    """A file, or a directory of files, to which a table or view is written."""

    def __init__(self, delivery: Any, form: str, path: str) -> None:
        self.delivery, self.form, self.path = delivery, form, path
        self.expected: dict[int, Rows] = {}


class _Running:
    def __init__(self, program: Program, place: str) -> None:
        self.program, self.place, self.number, self.made = program, place, 0, 0
        self.twin = Twin()
        self.views: dict[str, View] = {}
        self.durable: set[str] = set()
        self.sources = {each.name: each for each in program.sources}
        self.tables = {each.name: each for each in program.tables}
        self.lines: dict[str, list[Row | Rejected]] = {}
        """The lines of the file of each source."""
        self.done: dict[str, int] = {}
        """How many of them are committed."""
        self.attached: dict[str, Any] = {}
        for source in program.sources:
            self.begin_file(source)
        self.open()

    # Opening

    def open(self) -> None:
        program = self.program
        state = os.path.join(self.place, "db") if program.is_durable else None
        self.db = Session(program.workers, processes=program.processes, state=state)
        self.followers: dict[int, _Follower] = {}
        self.sinks: dict[str, _SinkOf] = {}
        self.rejects = self.db.rejects()
        self.twin.tables.setdefault("rejects", Counter())
        for table in program.tables:
            self.make(table)
        self.twin.feeds = []
        for source in program.sources:
            self.attach(source)

    def make(self, of: TableOf) -> None:
        """Make a table, or take the one of an earlier session."""
        types = {"k": int, "s": str | None, "at": type(NOON) if self.program.is_timed else int, "x": int}
        table = self.db.table(of.name, types, key=of.key)
        if of.has_clock:
            table.event_time("at", lateness=None if of.lateness is None else self.length(of.lateness))
        if of.name not in self.twin.tables:
            self.twin.add(of.name, of.key, of.lateness, of.has_clock)
        elif of.has_clock:
            self.twin.clocks[of.name].highest = {}  # which is not durable

    def length(self, minutes: int) -> Any:
        return real(minutes, self.program.is_timed) - real(0, self.program.is_timed)

    def attach(self, source: SourceOf) -> None:
        """Let a source fill its table, from the lines on that are not committed, if the session remembers which."""
        made: Any = sources.csv if source.form == "csv" else sources.json_lines
        how: Any = self.rejects if source.on_error == "rejects" else source.on_error
        self.attached[source.name] = self.db.table(source.table).read_from(
            made(self.path(source), follow=True, name=source.name), on_error=how, upsert=source.upsert
        )
        feed = Feed(source.name, source.table, source.on_error, source.upsert)
        feed.arrived = self.lines[source.name][self.done.get(source.name, 0) if self.program.is_durable else 0 :]
        self.twin.feeds = [*(each for each in self.twin.feeds if each.name != source.name), feed]

    def path(self, source: SourceOf) -> str:
        return os.path.join(self.place, f"{source.name}.{source.form}")

    def begin_file(self, source: SourceOf) -> None:
        """Put an empty file in the place of a source's."""
        path = self.path(source)
        with open(f"{path}.new", "w") as file:
            file.write("" if source.form == "json" else "x,extra,at,k,s\n")
        os.replace(f"{path}.new", path)
        self.lines[source.name] = []

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise Wrong(otherwise)

    # Steps: rows

    def do_write(self, name: str, lines: tuple[Any, ...], how: str) -> None:
        source = self.sources[name]
        feed = next((each for each in self.twin.feeds if each.name == name), None)
        if how == "replaced":
            if feed is None or feed.is_over or source.on_error == "stop":
                return
            self.db._catalog.arrived()  # a file that was never opened is not followed yet
            self.write(source, feed, lines[:1], False)
            self.begin_file(source)
            lines = lines[1:]
        self.write(source, feed, lines, how == "part")
        if how == "replaced":  # the rest of the old file is gone with the session
            self.do_commit()

    def write(self, source: SourceOf, feed: Feed | None, lines: tuple[Any, ...], in_parts: bool) -> None:
        known = self.lines[source.name]
        before = len(known)
        with open(self.path(source), "a") as file:
            for line in lines:
                text = self.text(source, line)
                number = len(known) + (2 if source.form == "csv" else 1)
                known.append(Rejected(number, text) if line == "bad" else line)
                if in_parts:
                    file.write(text[:4])
                    file.flush()
                    self.db._catalog.arrived()
                    text = text[4:]
                file.write(f"{text}\n")
        if feed is not None:
            feed.arrived += known[before:]

    def text(self, source: SourceOf, line: Any) -> str:
        if line == "bad":
            return "1,,oops,2,x" if source.form == "csv" else '{"k": "oops"}'
        k, s, at, x = line
        moment = str(real(at, True)) if self.program.is_timed else at
        if source.form == "json":
            return json.dumps({"at": moment, "more": [1], "x": x, "k": k} | ({} if s is None else {"s": s}))
        quoted = "" if s is None else '"' + s.replace('"', '""') + '"'
        return f"{x},,{moment},{k},{quoted}"

    def do_state(self, name: str, how: str, rows: tuple[Row, ...], form: float) -> None:
        table, of = self.db.table(name), self.tables[name]
        if how == "delete" and form < 0.7:
            rows = tuple(row for row in self.twin.tables[name] if row[0] == rows[0][0])[:2]
        columns = list(of.key) if how == "delete by key" else list(COLUMNS)
        rows = tuple(dict.fromkeys(tuple(row[COLUMNS.index(each)] for each in columns) for row in rows))
        if not rows:
            return
        data = [dict(zip(columns, self.real_row(columns, row))) for row in rows]
        {"insert": table.insert, "upsert": table.upsert}.get(how, table.delete)(data)
        if how == "upsert":  # of the rows of a key, the last counts
            rows = tuple({tuple(row[COLUMNS.index(each)] for each in of.key): row for row in rows}.values()) and rows
        self.twin.pending.append(Statement(name, how, rows))

    def real_row(self, columns: list[str], row: Row) -> tuple[Any, ...]:
        return tuple(real(v, self.program.is_timed) if name == "at" else v for name, v in zip(columns, row))

    def do_advance(self, name: str, at: int) -> None:
        if name in self.twin.clocks:
            self.db.table(name).advance_watermark(real(at, self.program.is_timed))
            self.twin.advanced.append((name, at))

    def do_expire(self, name: str, at: int) -> None:
        clock = self.twin.clocks.get(name)
        if clock is None:
            return
        is_refused = clock.mark is None or at > clock.mark
        is_there = name in self.twin.expired
        there = any(row[2] < at for row in self.twin.tables[name])
        try:
            self.db.table(name).expire(real(at, self.program.is_timed))
        except SessionError as error:
            self.expect(is_refused or is_there, str(error))
            return
        self.expect(not is_refused and not is_there, "expire was not refused")
        if there:
            self.twin.expired[name] = at

    def do_handle(self) -> None:
        """Delete the late changes that are there."""
        if rows := list(self.twin.tables["a_late"].elements()):
            self.db.table("a").late.delete([self.real_row([*COLUMNS, "change"], row) for row in rows])
            self.twin.pending.append(Statement("a_late", "delete", tuple(rows)))

    def do_rollback(self) -> None:
        self.db.rollback()
        self.twin.rollback()

    # Steps: commits

    def do_commit(self) -> None:
        self.commit(self.db.commit)

    def do_commit_async(self) -> None:
        self.commit(lambda: asyncio.run(self.db.commit_async()))

    def do_block(self) -> None:
        def block() -> None:
            with self.db.transaction():
                pass

        self.commit(block)

    def do_race(self) -> None:
        """Read, and ask, while another thread commits."""
        before = self.contents()
        names = [name for name in before if name in self.db]
        readables = [self.db[name] for name in names]  # the commit may drop a view
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(lambda: list(map(self.read, names, readables)))
            asking = pool.submit(lambda: self.rows(self.db.ask(lambda t: t.c)))
            self.commit(self.db.commit)
            after = self.contents()
            try:
                found = reading.result(60)
            except SessionError as error:
                self.expect("dropped" in str(error) or "failed" in str(error), f"reading beside a commit: {error}")
                found = []
            answer = asking.result(60)
        for name, rows in zip(names, found):
            self.expect(rows in (before.get(name), after.get(name)), f"{name}, read beside a commit, is {rows}")
        self.expect(answer in (before["c"], after["c"]), f"a question beside a commit has the answer {answer}")

    def commit(self, commit: Callable[[], object]) -> None:
        before, last = self.contents(), self.db._catalog.last
        refused = ""
        try:
            commit()
        except SessionError as error:
            refused = str(error)
        is_made, stopping = self.twin.commit()
        if not is_made:
            self.expect("does not have the row" in refused, f"the commit was not refused: {refused}")
            self.expect(self.db._catalog.last == last, "a commit that is refused has a number")
            self.compare(is_commit=False)
            return
        for feed in self.twin.feeds:
            self.done[feed.name] = len(self.lines[feed.name]) - len(feed.arrived)
        if "what another view or session has written" in refused:
            refused = self.without_ended_sinks()
        failed = self.twin.failed({name: view.reads for name, view in self.views.items()})
        self.expect(bool(failed or stopping) == bool(refused), f"{failed} and {stopping} stop: {refused or 'no error'}")
        for name in failed:
            self.forget(name)
        after = self.contents()
        for follower in [*self.followers.values(), *self.sinks.values()]:
            name = follower.name if isinstance(follower, _Follower) else follower.delivery.item.name
            change = {
                row: after[name][row] - before[name][row]
                for row in {*after[name], *before[name]}
                if after[name][row] != before[name][row]
            }
            if change:
                follower.expected[last + 1] = Counter(change)
        self.compare()

    # Steps: views

    def known(self, view: View) -> View | None:
        """Return a view with the tables whose watermarks it goes by; None if it cannot be made now."""
        if any(name not in self.tables and name not in self.views for name in view.reads):
            return None
        first = view.reads[0]
        if view.kind in ("changes", "marks") and first not in self.twin.clocks:
            return None
        if view.kind in _WINDOWS and first not in self.twin.clocks:
            return None
        if view.kind in FINAL:
            of = self.views[first]
            if of.kind not in _WINDOWS or (view.kind == "named final" and of.kind == "sliding"):
                return None
            used = {of.reads[0], *view.reads[1:]}
            view = view._replace(marks=tuple(sorted(each for each in used if each in self.twin.clocks)))
        return view

    def do_view(self, name: str, view: View) -> None:
        made = self.known(view)
        if made is None:
            return
        refused, durable = "", self.program.is_durable
        try:
            self.db.view(name, made.built, durable=durable)
        except SessionError as error:
            refused = str(error)
        if readers := self.readers(name):
            self.expect("cannot be replaced" in refused, f"{name} was replaced, though {readers} read it: {refused}")
            return
        try:
            made.answer(self.contents())
        except Fails:
            self.expect("unlucky" in refused, f"view {name} was made, though its function fails: {refused}")
            return
        self.expect(not refused, f"view {name} was refused: {refused}")
        if name in self.views:
            self.forget(name)
        self.views[name] = made
        self.twin.views[name] = made.answer
        if durable:
            self.durable.add(name)
        self.compare_one(name)

    def do_drop(self, name: str) -> None:
        if name not in self.views and name not in self.tables:
            return
        if not drops(self, name):
            return
        if name in self.views:
            self.forget(name)
            return
        self.sinks.pop(name, None)
        self.expect(f"{name}_late" not in self.db, f"{name}_late is there, and {name} is not")
        for number, follower in [*self.followers.items()]:
            if follower.name in (name, f"{name}_late", f"{name}_watermark"):
                self.check_follower(follower)
                del self.followers[number]
        self.twin.remove(name)
        for source in self.program.sources:
            if source.table == name:
                self.done.pop(source.name, None)
        self.make(self.tables[name])

    def readers(self, name: str) -> list[str]:
        names = {name, f"{name}_late", f"{name}_watermark"}
        found = []
        for each, view in self.views.items():
            reads = {*view.reads, *(f"{mark}_watermark" for mark in view.marks)}
            reads |= {f"{view.reads[0]}_late"} if view.kind == "changes" else set()
            reads |= {f"{view.reads[0]}_watermark"} if view.kind == "marks" else set()
            reads -= set(view.reads) if view.kind in ("changes", "marks") else set()
            if names & reads and each != name:
                found.append(each)
        return found

    def forget(self, name: str) -> None:
        del self.views[name], self.twin.views[name]
        self.durable.discard(name)
        self.followers = {key: each for key, each in self.followers.items() if each.name != name}
        self.sinks.pop(name, None)

    def do_ask(self, view: View) -> None:
        made = self.known(view)
        if made is None:
            return
        try:
            expected = +made.answer(self.contents())
        except Fails:
            try:
                self.db.ask(made.built)
            except SessionError as error:
                self.expect("unlucky" in str(error), str(error))
                return
            raise Wrong("a question was answered though its function fails") from None
        self.same("the answer", self.rows(self.db.ask(made.built)), expected)

    # Steps: who follows

    def do_follow(self, number: int, name: str) -> None:
        if name not in self.db:
            return
        self.followers[number] = follower = _Follower(name)
        follower.changes = self.db[name].changes()

    def do_watch(self, number: int, name: str) -> None:
        if name not in self.db:
            return
        self.followers[number] = follower = _Follower(name)
        self.db[name].watch(follower.take)

    def do_read(self, number: int, name: str) -> None:
        if number in self.followers:
            self.check_follower(self.followers[number])

    def do_leave(self, number: int, name: str) -> None:
        if (follower := self.followers.pop(number, None)) is not None:
            if follower.changes is not None:
                follower.changes.close()
            self.check_follower(follower)

    def check_follower(self, follower: _Follower) -> None:
        if follower.changes is not None:
            for change in follower.changes.read_nowait():
                follower.take(change)
        self.same_changes(f"the changes of {follower.name}", follower.found, follower.expected)

    def do_sink(self, name: str, form: str) -> None:
        if name not in self.db or name in self.sinks:
            return
        self.made += 1
        path = self.out(name if self.program.is_durable else str(self.made), form)
        made: Any = _SINKS[form](path)
        try:
            delivery = self.db[name].write_to(made)
        except SessionError as error:  # of a file that another view, or another form, has written to
            self.expect(self.program.is_durable and "another view or session" in str(error), str(error))
            delivery = self.db[name].write_to(made, existing="replace")
        self.sinks[name] = sink = _SinkOf(delivery, form, path)
        sink.expected[self.db._catalog.last] = self.contents()[name]

    def out(self, name: str, form: str) -> str:
        """Return the path of a sink: the same one for both forms of text."""
        return os.path.join(self.place, f"out {name}{_READERS.get(form, ('',))[0]}")

    def without_ended_sinks(self) -> str:
        """Forget the sinks of durable views whose first row showed that they are others; return no error."""
        ended = [name for name, sink in self.sinks.items() if sink.delivery.is_over]
        self.expect(bool(ended) and self.program.is_durable, "a sink was refused, and none has ended")
        for name in ended:
            del self.sinks[name]
        return ""

    def do_forget_sink(self, name: str, form: str) -> None:
        """Let a durable table or view retain nothing for a sink, which is attached or not."""
        if name in self.db:
            path = self.out(name, form)
            self.db[name].forget(path)
            if name in self.sinks and self.sinks[name].path == path:
                del self.sinks[name]

    def do_leave_sink(self, name: str, form: str) -> None:
        if (sink := self.sinks.pop(name, None)) is not None:
            self.compare(is_commit=False)
            sink.delivery.close()

    def check_sink(self, sink: _SinkOf) -> None:
        found: dict[int, Rows] = {}
        for line in self.lines_of(sink):
            *values, time, diff = line
            rows = found.setdefault(int(time), Counter())
            rows[tuple(map(self.shown, values))] += int(diff)
        expected = {
            time: Counter({tuple(self.shown(value) for value in row): count for row, count in rows.items()})
            for time, rows in sink.expected.items()
        }
        if self.program.is_durable:  # a sink may have what former sessions wrote, and a new definition one commit later
            contents = self.contents()[sink.delivery.item.name]
            expected = {0: Counter({tuple(map(self.shown, row)): count for row, count in contents.items()})}
            found = self.added_up(found)
        self.same_changes(f"the sink of {sink.delivery.item.name}", found, expected)

    def lines_of(self, sink: _SinkOf) -> list[Any]:
        """Return the rows that a sink has, with their times and differences."""
        if sink.form in _READERS:
            ending, read = _READERS[sink.form]
            return [row for path in glob(f"{escape(sink.path)}/*{ending}") for row in read(path).rows()]
        with open(sink.path, newline="") as file:
            return [*csv.reader(file)][1:] if sink.form == "csv" else [[*json.loads(line).values()] for line in file]

    def added_up(self, changes: dict[int, Rows]) -> dict[int, Rows]:
        rows: Rows = Counter()
        for each in changes.values():
            for row, diff in each.items():
                rows[row] += diff
        return {0: rows}

    def shown(self, value: Any) -> str:
        """Return a text for a value in a file, or in the twin."""
        text = "" if value is None else str(value)
        return str(plain(dt.datetime.fromisoformat(text))) if text.startswith(f"{NOON.year}-") else text

    # Steps: sessions and sources

    def do_close_source(self) -> None:
        for feed in self.twin.feeds[:1]:
            self.attached[feed.name].close()
            self.twin.feeds = self.twin.feeds[1:]

    def do_open_source(self) -> None:
        for source in self.program.sources:
            if all(feed.name != source.name or feed.is_over for feed in self.twin.feeds):
                self.attach(source)
                return

    def do_reopen(self) -> None:
        if not self.program.is_durable:
            return
        self.do_rollback()
        self.do_commit()
        for sink in self.sinks.values():
            self.check_sink(sink)
        self.db.close()
        contents = self.contents()
        for name in self.durable:
            shard = Shard(name, Directory(os.path.join(self.place, "db")).store(name)).read()
            rows = Counter({tuple(map(plain, row)): count for row, count in shard.items()})
            self.same(f"the durable collection {name}", rows, contents[name])
        self.views.clear()
        self.twin.views.clear()
        self.durable.clear()
        self.open()
        self.compare()

    # Comparing

    def contents(self) -> dict[str, Rows]:
        return self.twin.contents()

    def rows(self, readable: Any) -> Rows:
        return Counter(tuple(map(plain, row)) for row in readable.records())

    def read(self, name: str, readable: Any) -> Rows:
        rows = self.rows(readable)
        if name == "rejects":
            return Counter({(row[0], row[2], row[3]): count for row, count in rows.items()})
        return rows

    def compare(self, is_commit: bool = True) -> None:
        for name in self.contents():
            self.compare_one(name)
        for name, clock in self.twin.clocks.items():
            found = plain(self.db.table(name).watermark)
            self.expect(found == clock.mark, f"the watermark of {name} is {found}, not {clock.mark}")
        for feed in self.twin.feeds:
            state = self.attached[feed.name].state
            self.expect(("stopped" in state) == feed.is_over, f"source {feed.name}: {state}")
        for sink in self.sinks.values():
            if not self.program.is_durable or is_commit:
                self.check_sink(sink)

    def compare_one(self, name: str) -> None:
        expected = self.contents()[name]
        self.same(name, self.read(name, self.db[name]), expected)
        self.expect(len(self.db[name]) == expected.total(), f"{name} has {len(self.db[name])} rows")

    def same(self, what: str, found: Rows, expected: Rows) -> None:
        if found != expected:
            raise Wrong(f"{what}: more is {dict(found - expected)}, less is {dict(expected - found)}")

    def same_changes(self, what: str, found: dict[int, Rows], expected: dict[int, Rows]) -> None:
        for time in {*found, *expected}:
            one = {row: diff for row, diff in found.get(time, Counter()).items() if diff}
            two = {row: diff for row, diff in expected.get(time, Counter()).items() if diff}
            self.expect(one == two, f"{what} in commit {time}: {one}, not {two}")
