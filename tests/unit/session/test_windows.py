"""Windows of fixed size are those of brute force, whatever the pieces, and carry only the columns that are needed."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Session
from differential.data.updates import Updates
from differential.errors import SessionError
from differential.operators import in_pieces as pieces
from differential.session import sessions, sliding, tumbling, windows
from tests.thorough import examples
from timely.lowlevel import typed

Bounds = tuple[int, int, int]
EPOCH = dt.datetime(1970, 1, 1)

NAMES = st.sampled_from(["", "ann", "bob", "a name of more than fifteen bytes"])
COMMITS = st.lists(st.lists(st.tuples(NAMES, st.integers(-20, 20)), max_size=12), min_size=1, max_size=3)
MULTIPLES = st.tuples(st.integers(1, 5), st.integers(1, 4)).map(lambda each: (each[0] * each[1], each[0]))
BOUNDS = st.tuples(MULTIPLES | st.tuples(st.integers(1, 12), st.integers(1, 12)), st.integers(-9, 9)).map(
    lambda each: (*each[0], each[1])
)
"""Sizes, steps and offsets: multiples of the step, others, and sizes that are less than the step."""


def starts(time: int, bounds: Bounds) -> list[int]:
    """Return the starts of the windows of a time, by trying all near it."""
    size, step, offset = bounds
    return [start for start in range(time - size + 1, time + 1) if (start - offset) % step == 0]


@pytest.mark.parametrize("are_timestamps", [False, True])
@given(BOUNDS, COMMITS, st.integers(1, 2), st.sampled_from([1, 4, 1 << 18]))
@settings(max_examples=examples(15), deadline=None)
def test_windows_are_those_of_brute_force_after_every_change(
    are_timestamps: bool, bounds: Bounds, commits: list[list[tuple[str, int]]], workers: int, most: int
) -> None:
    def span(count: int) -> Any:
        return dt.timedelta(seconds=count) if are_timestamps else count

    def moment(count: int) -> Any:
        return EPOCH + span(count) if are_timestamps else count

    size, step, offset = bounds
    kind = sliding(span(size), span(step), offset=span(offset))
    there: dict[int, tuple[str, int]] = {}
    with Session(workers) as db, pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "ROWS_PER_PIECE", most)
        patch.setattr(pieces, "ROWS_PER_PIECE", most)
        table = db.table("visits", {"id": int, "name": str, "at": dt.datetime if are_timestamps else int}, key="id")
        rows = db.view("rows", lambda t: t.visits.window(kind, at="at").rows())
        counts = db.view("counts", lambda t: t.visits.window(kind, at="at").count())
        named = db.view(
            "named", lambda t: t.visits.window(kind, at="at").group_by("name").aggregate(n="count", last=("id", "max"))
        )
        for commit in commits:
            for number in [*there][::3]:
                table.delete(id=number)
                del there[number]
            for number, (name, at) in enumerate(commit, start=max(there, default=0) + 1):
                there[number] = name, at
                table.insert(id=number, name=name, at=moment(at))
            db.commit()
            expected = [
                (number, name, moment(at), moment(start), moment(start + size))
                for number, (name, at) in there.items()
                for start in starts(at, bounds)
            ]
            groups = defaultdict(list)
            for number, name, _, start, end in expected:
                groups[name, start, end].append(number)
            assert rows.records() == sorted(expected)
            assert counts.records() == sorted(
                (*each, number) for each, number in Counter(row[3:] for row in expected).items()
            )
            assert named.records() == sorted((*each, len(found), max(found)) for each, found in groups.items())


Emitted = list[tuple[int, int]]


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> Emitted:
    """Return a list that receives the numbers of columns and of updates of all that windows emit."""
    found: Emitted = []

    def seen(updates: Updates) -> Updates:
        found.append((len(updates.columns), len(updates)))
        return updates

    def in_pieces(collection: Any, transform: Callable[[Any], Iterator[Updates]], **options: Any) -> Any:
        return pieces.in_pieces(collection, lambda updates: map(seen, transform(updates)), **options)

    def linear(collection: Any, transform: Callable[[Any], Updates], **options: Any) -> Any:
        return of_one(collection, lambda updates: seen(transform(updates)), **options)

    of_one = windows.linear
    monkeypatch.setattr(windows, "in_pieces", in_pieces)
    monkeypatch.setattr(windows, "linear", linear)
    return found


@pytest.mark.parametrize(
    ("definition", "columns"),
    [
        (lambda made: made.count(), 2),
        (lambda made: made.group_by("name").count(), 3),
        (lambda made: made.sum("x"), 3),
        (lambda made: made.max("at"), 3),
        (lambda made: made.group_by("name").aggregate(n="count", x=("x", "sum"), last=("at", "max")), 5),
        (lambda made: made.rows().select("window_end", "y"), 3),
        (lambda made: made.rows().select("y", start="window_start"), 3),
        (lambda made: made.rows().filter(lambda r: r.x > 1), 6),
    ],
)
@pytest.mark.parametrize("kind", [tumbling(10), sliding(10, 5), sliding(10, 4)])
def test_windows_carry_only_the_columns_that_are_needed(
    kind: Any, definition: Any, columns: int, emitted: Emitted
) -> None:
    with Session() as db:
        db.table("visits", {"at": range(20), "name": ["a", "b"] * 10, "x": range(20), "y": range(20)})
        db.commit()
        assert len(db.ask(lambda t: definition(t.visits.window(kind, at="at"))))
        assert emitted
        assert {width for width, _ in emitted} == {columns}


def test_a_window_of_a_join_is_made_of_the_columns_that_are_needed(emitted: Emitted) -> None:
    with Session() as db:
        db.table("visits", {"at": [1, 7], "page": ["a", "b"], "x": [1, 2]})
        db.table("pages", {"id": ["a", "b"], "owner": ["ann", "bob"], "y": [1, 2]})
        db.commit()
        found = db.ask(
            lambda t: t.visits.join(t.pages, on={"page": "id"}).window(sliding(6, 3), at="at").group_by("owner").count()
        )
        assert found.records() == [("ann", -3, 3, 1), ("ann", 0, 6, 1), ("bob", 3, 9, 1), ("bob", 6, 12, 1)]
        assert {width for width, _ in emitted} == {3}


@pytest.mark.parametrize("step", [7, 10])
def test_pieces_of_windows_are_of_bounded_length(step: int, emitted: Emitted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "ROWS_PER_PIECE", 1000)
    with Session() as db:
        db.table("visits", {"at": np.arange(2000)})
        db.commit()
        db.ask(lambda t: t.visits.window(sliding(100, step), at="at").count())
        lengths = [length for _, length in emitted]
        assert sum(lengths) == sum(len(starts(at, (100, step, 0))) for at in range(2000))
        assert max(lengths) <= 1000
        assert len(lengths) < 1.5 * sum(lengths) / 1000


def test_an_event_time_that_is_null_is_refused_at_the_line_of_its_window() -> None:
    def counted(t: Any) -> Any:
        found = t.visits.window(sliding(10, 5), at="at").group_by("name")  # the line of the window
        return found.count()

    line = counted.__code__.co_firstlineno + 1
    message = rf"(?s)test_windows\.py:{line}\b.*column 'at': an event time is null: filter"
    with Session() as db:
        db.table("visits", {"at": typed([1, None], "int64?"), "name": ["a", "b"]})
        db.commit()
        with pytest.raises(SessionError, match=message):
            db.ask(counted)


LEAST, MOST = -(1 << 63), (1 << 63) - 1


@pytest.mark.parametrize("kind", [sessions, tumbling])
@pytest.mark.parametrize(("size", "times"), [(1 << 70, [0]), (5, [MOST - 4, 0]), (5, [LEAST + 4, 0])])
def test_windows_whose_bounds_do_not_fit_are_refused(kind: Any, size: int, times: list[int]) -> None:
    with Session() as db:
        db.table("visits", {"at": times})
        db.commit()
        with pytest.raises(SessionError, match="so the bounds of its windows do not fit into 64 bits"):
            db.ask(lambda t: t.visits.window(kind(size), at="at").count())


def test_the_farthest_sessions_are_found() -> None:
    with Session() as db:
        db.table("visits", {"at": [MOST - 5, LEAST + 5]})
        db.commit()
        found = db.ask(lambda t: t.visits.window(sessions(5), at="at").count()).records()
        assert found == [(LEAST + 5, LEAST + 10, 1), (MOST - 5, MOST, 1)]
