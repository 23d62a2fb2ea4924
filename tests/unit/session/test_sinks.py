"""Each commit arrives once at a sink, in order, whatever fails in between; a sink in memory stands in for others."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.session import Change, Session
from differential.session.sinks import Mark, Outlet, csv, json_lines, npy
from differential.session.sources import csv as csv_source, json_lines as json_source
from timely.errors import DataError, SessionError, StoreError
from timely.lowlevel import typed

Failure = Literal["", "before", "after", "never", "refuse", "mistake", "silent"]


@dataclass
class Memory:
    """A sink whose next attempts fail as listed: before what is written, after it, at opening, or for good."""

    name: str = "memory"
    failures: list[Failure] = field(default_factory=list)
    log: list[tuple[Any, int, int]] = field(default_factory=list)
    at: Mark | None = None

    def open(self, outlet: Outlet) -> _MemoryWriter:
        return _MemoryWriter(self)

    def contents(self) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for row, _, diff in self.log:
            found[row] += diff
        assert not [each for each in found.values() if each < 0]
        return +found


class _MemoryWriter:
    def __init__(self, sink: Memory) -> None:
        self._sink = sink

    def mark(self) -> Mark | None:
        if self._sink.failures and self._sink.failures[0] == "never":
            raise StoreError("it is away")
        return self._sink.at

    def write(self, changes: Sequence[Change], mark: Mark) -> None:
        failure = self._sink.failures.pop(0) if self._sink.failures else ""
        if failure == "before":
            raise OSError("the connection was lost")
        if failure == "silent":
            raise TimeoutError
        if failure == "mistake":
            raise ValueError("a mistake")
        if failure == "refuse":
            raise DataError("column 'x' is too wide")
        for change in changes:
            self._sink.log += [(row, change.time, diff) for row, diff in change.records()]
        self._sink.at = mark
        if failure == "after":
            raise StoreError("the acknowledgement was lost")

    def clear(self) -> None:
        self._sink.log, self._sink.at = [], None

    def close(self) -> None:
        pass


def test_a_sink_begins_with_the_contents_and_receives_what_each_commit_changes() -> None:
    sink = Memory()
    with Session() as db:
        numbers = db.table("numbers", {"x": [1, 2, 2]})
        view = db.view("all", lambda t: t.numbers)
        db.commit()
        delivery = view.write_to(sink)
        numbers.delete(x=[1, 2])
        numbers.insert(x=3)
        db.commit()
        db.commit()
        assert sink.log == [((1,), 1, 1), ((2,), 1, 2), ((1,), 2, -1), ((2,), 2, -1), ((3,), 2, 1)]
        assert sink.at is not None
        assert (sink.at.commit, delivery.commit, delivery.rows) == (2, 3, 5)
        assert db.status().sinks.records() == [("memory", "all", 3, 5, "is up to date")]


def test_lost_attempts_are_repeated_and_lost_acknowledgements_are_not() -> None:
    sink = Memory(failures=["", "before", "after", "before"])
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        db.view("all", lambda t: t.numbers).write_to(sink)
        for number in range(3):
            numbers.insert(x=number)
            db.commit()
    assert sink.log == [((number,), number + 1, 1) for number in range(3)]


def test_an_attempt_that_fails_without_a_text_is_named_by_its_class() -> None:
    sink = Memory()
    with Session() as db:
        numbers = db.table("numbers", {"x": [1]})
        delivery = db.view("all", lambda t: t.numbers).write_to(sink, patience=0)
        sink.failures = ["silent"]
        with pytest.raises(
            SessionError, match=r"\(1 attempt\(s\) in succession failed, the last one with: TimeoutError\)"
        ):
            db.commit()
        assert delivery.state == "waits after 1 attempt(s): TimeoutError"
        numbers.insert(x=2)
        db.commit()
    assert sink.contents() == {(1,): 1, (2,): 1}


@pytest.mark.parametrize("failure", ["before", "mistake"])
def test_a_sink_that_fails_at_first_is_not_attached_and_the_error_states_so(failure: Failure) -> None:
    sink = Memory(failures=[failure])
    with Session() as db:
        numbers = db.table("numbers", {"x": [1]})
        db.commit()
        view = db.view("all", lambda t: t.numbers)
        with pytest.raises(SessionError, match=r"; the sink is not attached: call write_to\(\) again"):
            view.write_to(sink, patience=0)
        numbers.insert(x=2)
        assert (db.commit(), sink.log, len(db.status().sinks)) == (2, [], 0)
        view.write_to(sink)
    assert sink.contents() == {(1,): 1, (2,): 1}


def test_a_sink_whose_writer_has_a_mistake_is_named_and_others_have_the_commit() -> None:
    first, second = Memory("first"), Memory("second")
    with Session() as db:
        numbers = db.table("numbers", {"x": [1]})
        view = db.view("all", lambda t: t.numbers)
        delivery, _ = view.write_to(first), view.write_to(second)
        seen: list[int] = []
        view.watch(lambda change: seen.append(change.time))
        first.failures = ["mistake"]
        numbers.insert(x=2)
        with pytest.raises(SessionError, match=r"sink 'first' of view 'all' \(at .*ValueError: a mistake") as raised:
            db.commit()
        assert raised.value.__cause__ is not None
        assert isinstance(raised.value.__cause__.__cause__, ValueError)
        assert delivery.state == "waits after 1 attempt(s): a mistake"
        assert (second.contents(), seen[-1]) == ({(1,): 1, (2,): 1}, 1)
        db.commit()
        assert (first.contents(), delivery.state) == (second.contents(), "is up to date")


def test_a_sink_that_is_away_makes_the_commit_raise_and_has_all_later() -> None:
    sink = Memory()
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        delivery = db.view("all", lambda t: t.numbers).write_to(sink, patience=0)
        sink.failures = ["before"]
        numbers.insert(x=1)
        with pytest.raises(SessionError, match=r"sink 'memory' of view 'all' \(at .*test_sinks.py:.*commit 1.*lost"):
            db.commit()
        assert delivery.state == "waits after 1 attempt(s): the connection was lost"
        numbers.insert(x=2)
        assert db.commit() == 2
        assert delivery.state == "is up to date"
    assert sink.log == [((1,), 1, 1), ((2,), 2, 1)]


def test_a_sink_that_refuses_a_value_stops_and_other_sinks_go_on() -> None:
    bad, good = Memory("bad"), Memory("good")
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        view = db.view("all", lambda t: t.numbers)
        stopped = view.write_to(bad)
        view.write_to(good)
        bad.failures = ["refuse"]
        numbers.insert(x=1)
        with pytest.raises(SessionError, match=r"sink 'bad' of view 'all' .*has stopped: column 'x' is too wide"):
            db.commit()
        assert stopped.is_over
        numbers.insert(x=2)
        assert db.commit() == 2
        assert (len(bad.log), len(good.log)) == (0, 2)
        with pytest.raises(SessionError, match="is already written to 'good'"):
            view.write_to(good)
        view.forget("good")
        assert [name for name, *_ in db.status().sinks.records()] == ["bad"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": "1 s"}, "patience is a number of seconds, not '1 s'"),
        ({"patience": None}, "patience is a number of seconds, not None"),
        ({"patience": float("nan")}, "patience is a number of seconds, not nan"),
        ({"existing": "append"}, "existing is 'stop' or 'replace', not 'append'"),
    ],
)
def test_options_that_a_delivery_cannot_have_are_refused(options: dict[str, Any], message: str) -> None:
    with Session() as db, pytest.raises(SessionError, match=message):
        db.table("numbers", {"x": [1]}).write_to(Memory(failures=["never"]), **options)


def test_a_sink_of_another_session_is_refused_or_replaced() -> None:
    sink = Memory()
    for existing in ("stop", "replace"):
        with Session() as db:
            db.table("numbers", {"x": [1]})
            db.commit()
            view = db.view("all", lambda t: t.numbers)
            if existing == "replace":
                with pytest.raises(SessionError, match="another view or session"):
                    view.write_to(sink)
            view.write_to(sink, existing="replace")
    assert sink.log == [((1,), 1, 1)]


def test_a_sink_of_a_durable_session_needs_a_durable_view(tmp_path: Path) -> None:
    with Session(state=str(tmp_path)) as db:
        db.table("numbers", {"x": [1]})
        with pytest.raises(SessionError, match="must be durable"):
            db.view("all", lambda t: t.numbers).write_to(Memory())
        db.rollback()


@pytest.mark.parametrize("kind", ["table", "view"])
def test_commits_that_a_sink_lacks_are_retained_until_it_is_forgotten(tmp_path: Path, kind: str) -> None:
    sink, state = Memory(), str(tmp_path)
    for number in range(6):
        with Session(state=state) as db:
            numbers = db.table("numbers", {"x": int})
            all_of_them = db.view("all", lambda t: t.numbers, durable=True)
            view = all_of_them if kind == "view" else numbers
            if number in (0, 3):
                view.write_to(sink)
            for part in range(2):
                numbers.insert(x=2 * number + part)
                db.commit()
            if number == 4:
                assert db.status().sinks.records()[0][4] == "is not attached: what it does not have is retained"
                view.forget("memory")
            if number == 5:
                with pytest.raises(SessionError, match="commits up to 8 only"):
                    view.write_to(sink)
    assert sink.log == [((number,), number + 1, 1) for number in range(8)]


@pytest.mark.parametrize("commits_before", [False, True])
def test_a_changed_definition_reaches_the_sink_as_a_difference(tmp_path: Path, commits_before: bool) -> None:
    sink = Memory()
    for least in (0, 2):
        with Session(state=str(tmp_path)) as db:
            db.table("numbers", {"x": [1, 2, 3]})
            if commits_before or not least:
                db.commit()
            kept = db.view("all", lambda t, least=least: t.numbers.filter(lambda x: x >= least), durable=True)
            kept.write_to(sink)
            if not commits_before or not least:
                db.commit()
    assert sink.log[-1] == ((1,), 3, -1)
    assert sink.contents() == {(2,): 1, (3,): 1}


def test_a_view_that_is_replaced_is_written_to_again_and_nothing_is_lost(tmp_path: Path) -> None:
    sink = Memory()
    with Session(state=str(tmp_path)) as db:
        numbers = db.table("numbers", {"x": [1, 2, 3]})
        for least in (0, 2):
            kept = db.view("all", lambda t, least=least: t.numbers.filter(lambda x: x >= least), durable=True)
            kept.write_to(sink)
            db.commit()
        numbers.insert(x=4)
        db.commit()
    assert sink.log == [((1,), 1, 1), ((2,), 1, 1), ((3,), 1, 1), ((1,), 2, -1), ((4,), 3, 1)]


@pytest.mark.parametrize("how", ["dropped", "other columns"])
def test_a_sink_of_a_view_that_was_another_one_is_refused(tmp_path: Path, how: str) -> None:
    sink = Memory()
    with Session(state=str(tmp_path)) as db:
        db.table("numbers", {"x": [1, 2], "name": ["one", "two"]})
        db.commit()
        db.view("all", lambda t: t.numbers.select("x"), durable=True).write_to(sink)
        if how == "dropped":
            db.drop("all")
            view = db.view("all", lambda t: t.numbers.select("x").filter(lambda x: x > 1), durable=True)
        else:
            view = db.view("all", lambda t: t.numbers.select("name"), durable=True)
        with pytest.raises(SessionError, match="what another view or session has written"):
            view.write_to(sink)
        view.write_to(sink, existing="replace")
    assert sink.contents() == ({(2,): 1} if how == "dropped" else {("one",): 1, ("two",): 1})


@pytest.mark.parametrize("how", ["replaced", "dropped"])
def test_what_ends_with_a_view_that_is_replaced_or_dropped_is_named(
    how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Session(progress=False) as db:
        db.table("numbers", {"x": [1, 2]})
        view = db.view("all", lambda t: t.numbers)
        delivery = view.write_to(Memory())
        view.write_to(Memory(name="other")).close()
        kept, watch = [view.changes(), view.changes()], view.watch(print)
        db.commit()
        capsys.readouterr()
        if how == "replaced":
            db.view("all", lambda t: t.numbers.filter(lambda x: x > 1))
        else:
            db.drop("all")
        shown = capsys.readouterr().err
        assert re.fullmatch(
            rf"timely: view 'all' is {how} \(at .*test_sinks.py:\d+\), which ends its sink 'memory', what changes\(\) "
            r"has returned \(2 times\), what watch\(\) has returned: .*\n",
            shown,
        )
        assert delivery.is_over
        assert all(each.is_over for each in kept)
        db.view("all", lambda t: t.numbers.filter(lambda x: x > 1))
        db.drop("all")
        assert capsys.readouterr().err == ""
        watch.close()


@pytest.mark.parametrize("failures", [[], ["before"], ["after"]])
@pytest.mark.parametrize("between", [False, True])
def test_a_view_that_replaces_one_of_its_name_takes_over_its_sink(failures: list[Failure], between: bool) -> None:
    sink = Memory()
    with Session(progress=False) as db:
        numbers = db.table("numbers", {"x": [1, 1, 2]})
        db.view("some", lambda t: t.numbers.filter(lambda x: x < 2)).write_to(sink)
        db.commit()
        if between:
            db.view("some", lambda t: t.numbers)
            numbers.insert(x=5)
            db.commit()
        sink.failures = list(failures)
        delivery = db.view("some", lambda t: t.numbers.filter(lambda x: x > 0)).write_to(sink)
        expected = Counter({(1,): 2, (2,): 1, (5,): 1} if between else {(1,): 2})
        assert sink.contents() == expected
        numbers.insert(x=3)
        last = db.commit()
        assert sink.contents() == expected | {(2,): 1, (3,): 1}
        assert {time for _, time, _ in sink.log} == {*range(1, last + 1)}
        db.commit()
        assert (delivery.commit, delivery.state) == (last + 1, "is up to date")
        names = db.view("some", lambda t: t.numbers.map(lambda x: -x).named("y"))
        with pytest.raises(SessionError, match="what another view or session has written"):
            names.write_to(sink)


def test_a_view_whose_rows_cannot_be_read_is_replaced_though_a_sink_follows_it() -> None:
    with Session(progress=False) as db:
        numbers = db.table("numbers", {"x": int})
        view = db.view("some", lambda t: t.numbers.negate())
        view.write_to(Memory())
        numbers.insert(x=1)
        db.commit()
        with pytest.raises(DataError, match="negative"):
            len(view)
        again = db.view("some", lambda t: t.numbers)
        assert again.records() == [(1,)]
        with pytest.raises(SessionError, match="was dropped"):
            view.records()


def test_a_sink_that_was_emptied_before_it_is_taken_over_begins_with_the_contents() -> None:
    sink = Memory()
    with Session(progress=False) as db:
        numbers = db.table("numbers", {"x": [1, 2]})
        db.view("some", lambda t: t.numbers.filter(lambda x: x < 2)).write_to(sink)
        db.commit()
        sink.log, sink.at = [], None
        db.view("some", lambda t: t.numbers).write_to(sink)
        numbers.insert(x=3)
        db.commit()
    assert sink.contents() == {(1,): 1, (2,): 1, (3,): 1}


@pytest.mark.parametrize("existing", ["stop", "replace"])
def test_a_sink_of_a_view_whose_first_row_shows_other_columns_is_refused_or_replaced(
    tmp_path: Path, existing: Literal["stop", "replace"]
) -> None:
    sink = Memory()
    with Session(state=str(tmp_path)) as db:
        db.table("numbers", {"x": [1, 2]})
        texts = db.table("texts", {"x": str})
        db.commit()
        db.view("all", lambda t: t.numbers, durable=True).write_to(sink)
        delivery = db.view("all", lambda t: t.texts, durable=True).write_to(sink, existing=existing)
        texts.insert(x="a")
        if existing == "stop":
            with pytest.raises(SessionError, match="what another view or session has written"):
                db.commit()
        else:
            db.commit()
            texts.insert(x="b")
        assert delivery.is_over == (existing == "stop")
        db.commit()
    assert sink.contents() == ({(1,): 1, (2,): 1} if existing == "stop" else {("a",): 1, ("b",): 1})


@pytest.mark.parametrize("first", [0, 9])
def test_a_new_sink_of_a_view_that_was_replaced_before_a_commit_has_each_row_once(tmp_path: Path, first: int) -> None:
    sink = Memory()
    with Session(state=str(tmp_path)) as db:
        db.table("numbers", {"x": [1, 2, 3]})
        db.commit()
        for least in (first, 2):
            kept = db.view("all", lambda t, least=least: t.numbers.filter(lambda x: x >= least), durable=True)
        kept.write_to(sink)
        db.commit()
    assert sink.contents() == {(2,): 1, (3,): 1}


@pytest.mark.parametrize("kind", ["csv", "json_lines", "npy", "postgresql", "kafka"])
def test_names_that_a_sink_cannot_write_are_refused_before_there_are_rows(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "sink"
    if kind in ("postgresql", "kafka"):
        sinks = pytest.importorskip(f"differential.session.sinks.{kind}", reason="the extra `test` has it")
        make = {
            "postgresql": lambda: sinks.postgresql("host=127.0.0.1 port=1", "spent", key="customer"),
            "kafka": lambda: sinks.kafka("127.0.0.1:1", "spent", key="customer"),
        }[kind]
        message = "the view has no column 'customer' for the key: it has name, time"
    else:
        make = {"csv": lambda: csv(path), "json_lines": lambda: json_lines(path), "npy": lambda: npy(path)}[kind]
        message = "the view has a column 'time', the name of one that the sink adds: rename it"
    with Session() as db:
        db.table("visits", {"name": str, "time": int})
        view = db.view("view", lambda t: t.visits.map(lambda name, time: (name, time)).named("name", "time"))
        with pytest.raises(SessionError, match=f"{message}$"):
            view.write_to(make())
    assert not path.is_file()


def test_what_is_too_much_for_memory_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("differential.session.sinks.delivery.ROWS", 2)
    sink = Memory()
    with Session(state=str(tmp_path)) as db:
        numbers = db.table("numbers", {"x": int})
        delivery = db.view("all", lambda t: t.numbers, durable=True).write_to(sink, patience=0)
        sink.failures = ["never"]
        delivery._lose(None)  # its writer is closed, so each commit asks for the mark
        for number in range(5):
            numbers.insert(x=number)
            with pytest.raises(SessionError, match=f"up to commit {number + 1} .*it is away"):
                db.commit()
        assert len(delivery._pending) <= 2
        sink.failures = []
        db.commit()
    assert sink.log == [((number,), number + 1, 1) for number in range(5)]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.integers(0, 5)),
        st.just(("delete", 0)),
        st.tuples(st.just("fail"), st.sampled_from(["before", "after"])),
        st.tuples(st.just("open"), st.booleans()),
    ),
    max_size=12,
)


@pytest.mark.parametrize("name", ["numbers", "all"])
@settings(max_examples=5, deadline=None)
@given(steps=STEPS)
def test_a_sink_has_each_commit_once_after_any_failures(
    tmp_path_factory: pytest.TempPathFactory, name: str, steps: list[tuple[str, Any]]
) -> None:
    """The oracle: the rows that the program inserts and deletes, commit by commit."""
    state, sink = str(tmp_path_factory.mktemp("state")), Memory()
    rows: Counter[tuple[int]] = Counter()
    expected: list[tuple[Any, int, int]] = []
    commit = 0

    def opened() -> Session:
        db = Session(state=state)
        db.table("numbers", {"x": int})
        db.view("all", lambda t: t.numbers, durable=True)
        return db

    db = opened()
    try:
        db[name].write_to(sink, patience=0)
        is_attached = True
        for step, value in [("insert", 0), *steps, ("open", True)]:  # a sink of a table is known after a commit
            if step == "fail":
                sink.failures = [value]
            elif step == "open":
                db.close()
                db, is_attached = opened(), value
                if value:
                    sink.failures = []
                    db[name].write_to(sink, patience=0)
                    assert sorted(sink.log, key=lambda each: each[1]) == sink.log == expected
                continue
            elif step == "insert" or rows:
                row = (value,) if step == "insert" else min(rows)
                getattr(db["numbers"], step)(x=row[0])
                rows[row] += 1 if step == "insert" else -1
                rows = +rows
                commit += 1
                expected.append((row, commit, 1 if step == "insert" else -1))
                try:
                    assert db.commit() == commit
                except SessionError:
                    assert is_attached
        assert sink.contents() == rows
    finally:
        db.close()


VALUES: dict[str, list[Any]] = {
    "whole": [1, -2],
    "float": [float("inf"), 0.5],
    "text": ['a,"b"\n\r\u2028\x85\x1c', ""],
    "flag": [True, False],
    "day": [dt.date(2026, 2, 28), None],
    "moment": [dt.datetime(2026, 2, 28, 1, 2, 3, 4), None],
    "zone": [dt.datetime(2026, 2, 28, 1, tzinfo=dt.UTC), None],
    "exact": [np.datetime64("2026-02-28T01:02:03.000000004"), None],
    "exact zone": [np.datetime64("2026-02-28T01:02:03.123456789"), None],
    "clock": [dt.time(1, 2, 3), None],
    "exact clock": [np.timedelta64(3_723_000_000_004, "ns"), None],
    "price": [Decimal("1.50"), None],
    "maybe": [7, None],
    "bytes": [b"\0\xff\n", b""],
    "maybe bytes": [b"x", None],
}
TYPES = {
    "whole": "int64",
    "float": "float64",
    "text": "text",
    "flag": "bool",
    "day": "date",
    "moment": "timestamp[us]",
    "zone": "timestamp[us, UTC]",
    "exact": "timestamp[ns]",
    "exact zone": "timestamp[ns, UTC]",
    "clock": "time[us]",
    "exact clock": "time[ns]",
    "price": "decimal(9, 2)",
    "maybe": "int64?",
    "bytes": "bytes",
    "maybe bytes": "bytes?",
}


@pytest.mark.parametrize("form", ["csv", "json"])
def test_what_a_sink_writes_a_source_reads_as_the_same(tmp_path: Path, form: str) -> None:
    data = {name: typed(values, TYPES[name]) for name, values in VALUES.items()}
    path = tmp_path / "rows"
    with Session() as db:
        rows = db.table("rows", data)
        sink = csv(path) if form == "csv" else json_lines(path)
        db.view("all", lambda t: t.rows).write_to(sink)
        db.commit()
        types = {name: {"float": float, "bytes": bytes}.get(name) or typed([], TYPES[name]) for name in VALUES}
        copy = db.table("copy", types | {"time": int, "diff": int})
        copy.read_from(csv_source(path) if form == "csv" else json_source(path))
        db.run()
        assert [row[:-2] for row in copy.records()] == rows.records()
        assert {row[-2:] for row in copy.records()} == {(1, 1)}


def test_a_torn_end_of_a_file_is_cut_off_and_written_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for number in range(2):
        with Session(state=str(tmp_path / "state")) as db:
            numbers = db.table("numbers", {"x": int})
            view = db.view("all", lambda t: t.numbers, durable=True)
            view.write_to(csv(path))
            numbers.insert(x=number)
            db.commit()
        with path.open("a") as file:
            file.write("7,9")
    with Session(state=str(tmp_path / "state")) as db:
        db.view("all", lambda t: t.numbers, durable=True).write_to(csv(path))
    assert path.read_text() == "x,time,diff\n0,1,1\n1,2,1\n"


def test_the_files_of_a_session_stay_where_the_program_named_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program, or somebody in a notebook, may change to another directory, in which there are such files, too."""
    (tmp_path / "elsewhere" / "in").mkdir(parents=True)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("x\n1\n")
    (tmp_path / "elsewhere" / "in" / "2.csv").write_text("x\n7\n")
    monkeypatch.chdir(tmp_path)
    with Session(state="state") as db:
        numbers = db.table("numbers", {"x": int})
        view = db.view("all", lambda t: t.numbers, durable=True)
        view.write_to(csv("rows.csv"))
        numbers.read_from(csv_source("in/*.csv", follow=True))
        db.run(until=lambda: bool(numbers.records()))
        monkeypatch.chdir(tmp_path / "elsewhere")
        (tmp_path / "in" / "2.csv").write_text("x\n2\n")
        db.run(until=lambda: len(numbers.records()) == 2)
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["in"]
    assert (tmp_path / "rows.csv").read_text() == "x,time,diff\n1,1,1\n2,2,1\n"


def test_a_file_that_is_another_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("something\n")
    with Session() as db:
        db.table("numbers", {"x": [1]})
        view = db.view("all", lambda t: t.numbers)
        db.commit()
        with pytest.raises(SessionError, match="or something else"):
            view.write_to(json_lines(path))
        delivery = view.write_to(json_lines(path), existing="replace")
        with pytest.raises(SessionError, match="being written to by another session"):
            db.view("more", lambda t: t.numbers).write_to(json_lines(path), patience=0)
        delivery.close()
        assert json.loads((tmp_path / "rows.jsonl.mark").read_text())["commit"] == 1
        assert json.loads(path.read_text()) == {"x": 1, "time": 1, "diff": 1}


def test_a_file_that_another_program_truncates_is_written_to_no_more(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for is_first in True, False:
        with Session(state=tmp_path / "db") as db:
            numbers = db.table("numbers", {"x": int})
            view = db.view("all", lambda t: t.numbers, durable=True)
            if is_first:
                delivery = view.write_to(csv(path), patience=0)
                numbers.insert(x=1)
                db.commit()
                size = path.stat().st_size
                os.truncate(path, 0)
                numbers.insert(x=2)
                with pytest.raises(SessionError, match=f"rows.csv has 0 bytes, but {size} were written"):
                    db.commit()
                assert path.read_text() == ""
                assert "0 bytes" in delivery.state
            else:
                with pytest.raises(SessionError, match=f"has 0 bytes, but {size} were written"):
                    view.write_to(csv(path))
                view.write_to(csv(path), existing="replace")
                assert path.read_text() == "x,time,diff\n1,2,1\n2,2,1\n"


def test_a_table_does_not_replace_a_view_of_which_a_sink_lacks_changes(tmp_path: Path) -> None:
    with Session(state=tmp_path / "db") as db:
        db.table("numbers", {"x": int})
        db.view("all", lambda t: t.numbers, durable=True).write_to(csv(tmp_path / "all.csv", name="all"))
        db.view("spare", lambda t: t.numbers, durable=True)
        db.commit()
    with Session(state=tmp_path / "db") as db:
        with pytest.raises(SessionError, match=r"table 'all' .* view of an earlier session, of which sink 'all'"):
            db.table("all", {"x": int})
        db.table("spare", {"x": [7]})
        db.commit()
        db.view("all", lambda t: t.numbers, durable=True)
        db.commit()
        db.drop("all")
        db.table("all", {"x": [8]})
        db.commit()
        assert db["all"].records() == [(8,)]


def test_what_is_no_file_is_refused_as_a_sink_and_stays_as_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    with Session() as db:
        db.table("numbers", {"x": [1]})
        view = db.view("all", lambda t: t.numbers)
        for name in ("pipe", "directory"):
            with pytest.raises(SessionError, match=f"{name} is not a file"):
                view.write_to(csv(tmp_path / name))
        db.commit()
    assert sorted(os.listdir(tmp_path)) == ["directory", "pipe"]


def test_names_and_types_that_a_file_cannot_have_are_refused(tmp_path: Path) -> None:
    with Session() as db:
        db.table("numbers", {"time": [1]})
        db.table("spans", {"x": [dt.timedelta(1)]})
        db.commit()
        with pytest.raises(SessionError, match="has a column 'time'"):
            db.view("all", lambda t: t.numbers).write_to(csv(tmp_path / "a"))
        with pytest.raises(SessionError, match=r"column 'x' is of type duration\[us\]"):
            db.view("more", lambda t: t.spans).write_to(csv(tmp_path / "b"))


@pytest.mark.parametrize(
    "damage",
    [
        "garbage",
        "{}",
        "[]",
        '{"size": -5, "commit": 1, "stream": "s"}',
        '{"size": 1e999, "commit": 1, "stream": "s"}',
        '{"size": 1, "commit": 1, "stream": "s", "last": 7}',
        "short",
        "exchanged",
    ],
)
def test_a_file_that_is_not_that_of_its_mark_is_replaced_if_asked(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "out.csv"

    def go(existing: str) -> str:
        with Session(state=tmp_path / "db") as db:
            numbers = db.table("numbers", {"k": int})
            view = db.view("all", lambda t: t.numbers, durable=True)
            if not len(numbers):
                numbers.insert(k=1)
                db.commit()
            view.write_to(csv(str(path)), existing=existing)  # type: ignore[arg-type]
            db.commit()
        return path.read_text()

    expected = go("stop")
    if damage in ("short", "exchanged"):
        path.write_text(expected[:-2] if damage == "short" else expected.replace("1", "2"))
    else:
        (tmp_path / "out.csv.mark").write_text(damage)
    with pytest.raises(
        SessionError, match=r"cannot go on, because the sink .*(is damaged|were written|another file).*replace"
    ):
        go("stop")
    assert go("replace").splitlines()[0] == expected.splitlines()[0]
    assert len(path.read_text().splitlines()) == len(expected.splitlines())


def test_a_mark_without_a_digest_is_continued(tmp_path: Path) -> None:
    path, mark = tmp_path / "out.csv", tmp_path / "out.csv.mark"
    for number in range(2):
        with Session(state=tmp_path / "db") as db:
            numbers = db.table("numbers", {"k": int})
            db.view("all", lambda t: t.numbers, durable=True).write_to(csv(str(path)))
            numbers.insert(k=number)
            db.commit()
        noted = json.loads(mark.read_text())
        assert noted.pop("last")
        mark.write_text(json.dumps(noted))
    assert path.read_text() == "k,time,diff\n0,1,1\n1,2,1\n"


def test_a_sink_that_was_closed_is_refused_with_the_reason_in_a_session_without_state(tmp_path: Path) -> None:
    with Session() as db:
        db.table("numbers", {"x": [1]})
        view = db.view("all", lambda t: t.numbers)
        delivery = view.write_to(csv(tmp_path / "out.csv"))
        db.commit()
        delivery.close()
        with pytest.raises(SessionError, match=r"written, or an earlier write_to of a session without state="):
            view.write_to(csv(tmp_path / "out.csv"))
        view.write_to(csv(tmp_path / "out.csv"), existing="replace")
