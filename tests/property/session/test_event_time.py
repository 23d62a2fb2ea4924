"""Windows, watermarks and late changes of a session are those of a table that recomputes everything."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from differential import Session
from differential.errors import SessionError
from differential.session import sessions, sliding, tumbling
from tests.oracle import event_time as oracle

rows = st.tuples(st.integers(0, 2), st.integers(-3, 3), st.integers(-12, 24))
statements = st.one_of(
    st.tuples(st.sampled_from(["insert", "insert", "insert", "upsert", "delete"]), rows),
    st.tuples(st.just("again"), st.integers(0, 9)),
    st.tuples(st.just("delete by key"), st.integers(0, 2)),
    st.tuples(st.just("advance"), st.integers(-12, 40)),
    st.tuples(st.just("expire"), st.integers(0, 20)),
)


@given(
    st.integers(1, 2),
    st.sampled_from([0, 10, 30]),
    st.lists(st.lists(statements, max_size=6), min_size=2, max_size=6),
    st.sampled_from([(10, 10), (10, 5), (7, 3), (3, 7)]),
)
@example(
    workers=1,
    lateness=0,
    commits=[[("insert", (0, 1, 0)), ("insert", (0, 1, 1))], [("delete by key", 0), ("insert", (0, 1, 1))]],
    shape=(10, 10),
)
@example(
    workers=1,
    lateness=0,
    commits=[
        [("insert", (0, 1, 0)), ("insert", (1, 1, 24))],
        [("upsert", (0, 2, 24)), ("expire", 4)],
        [("insert", (0, 3, 24)), ("advance", 30)],
        [("expire", 4), ("delete by key", 0), ("insert", (0, 1, 33))],
    ],
    shape=(10, 10),
)
@settings(max_examples=25, deadline=None)
def test_windows_of_a_changing_table(
    workers: int, lateness: int, commits: list[list[Any]], shape: tuple[int, int]
) -> None:
    size, step = shape
    twin = oracle.Table(lateness)
    with Session(workers) as db:
        table = db.table("rows", {"key": int, "x": int, "time": int}, key="key")
        table.event_time("time", lateness=lateness)
        kind = tumbling(size) if size == step else sliding(size, step)
        views = {
            "fixed": db.view("fixed", lambda t: t.rows.window(kind).group_by("key").sum("x")),
            "runs": db.view("runs", lambda t: t.rows.window(sessions(8)).group_by("key").count()),
            "fixed final": db.view("fixed final", lambda t: t.final(t.fixed)),
            "runs final": db.view("runs final", lambda t: t.final(t.runs)),
        }
        answered: dict[str, Counter[Any]] = {"fixed final": Counter(), "runs final": Counter()}
        for commit in commits:
            made = [make(statement, twin) for statement in commit]
            expiring = [each for each in made if each[0] == "expire"]
            made = [each for each in made if each[0] != "expire" or (twin.mark is not None and each is expiring[0])]
            for kind_of, given_row in made:
                if kind_of == "advance":
                    table.advance_watermark(given_row)
                elif kind_of == "expire":
                    table.expire(given_row)
                elif kind_of == "delete by key":
                    table.delete(key=given_row)
                else:
                    getattr(table, kind_of)([given_row])
            if twin.commit(made):
                with pytest.raises(SessionError, match="does not have the row"):
                    db.commit()
            else:
                db.commit()
            assert Counter(table.records()) == twin.rows
            assert Counter(table.late.records()) == twin.late
            assert table.watermark == views["runs final"].watermark == twin.mark
            expected = {"fixed": oracle.fixed(twin.rows, size, step), "runs": oracle.in_sessions(twin.rows, 8)}
            for name, each in list(expected.items()):
                expected[f"{name} final"] = Counter(
                    {row: count for row, count in each.items() if twin.mark is not None and row[2] <= twin.mark}
                )
            for name, view in views.items():
                assert Counter(view.records()) == expected[name], name
            for name, before in answered.items():
                assert before <= expected[name] or expiring  # what is final stays until its rows expire
                answered[name] = expected[name]


def make(statement: tuple[str, Any], twin: oracle.Table) -> tuple[str, Any]:
    """Return a statement; "again" deletes a row that is there."""
    kind, given_row = statement
    if kind == "expire":
        return kind, (twin.mark or 0) - given_row
    if kind != "again":
        return statement
    there = sorted(twin.rows.elements())
    return ("delete", there[given_row % len(there)]) if there else ("insert", (0, 1, given_row))
