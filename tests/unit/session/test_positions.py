"""Columns of a table whose key is not its first column, where they are taken by position."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from differential import Session
from differential.graphs import bfs, pagerank, reachability, shortest_distances, weakly_connected_components
from timely.errors import SessionError

EDGES = {"src": ["ann", "bob"], "dst": ["bob", "cem"]}

REFUSED: dict[str, Callable[[Any], Any]] = {
    "named": lambda t: t.edges.named("start", "end"),
    "t.named": lambda t: t.named(t.edges, "start", "end"),
    "after filter": lambda t: t.edges.filter(lambda r: r.src != "x").distinct().named("start", "end"),
    "map": lambda t: t.edges.map(lambda one, other: (one, other)),
    "filter": lambda t: t.edges.filter(lambda one, other: one != other),
    "reachability": lambda t: reachability(t.edges, "ann"),
    "bfs": lambda t: bfs(t.edges, "ann"),
    "components": lambda t: weakly_connected_components(t.edges),
    "pagerank": lambda t: pagerank(t.edges),
    "roots": lambda t: shortest_distances(t.edges.select("src", "dst", length=lambda r: 1), t.edges),
}
"""What would take the destination for the source."""

TAKEN: dict[str, Callable[[Any], Any]] = {
    "a row": lambda t: t.edges.map(lambda r: (r.src, r.dst)),
    "the names": lambda t: t.edges.map(lambda dst, src: (src, dst)),
    "select": lambda t: t.edges.select("src", "dst").named("a", "b"),
    "without the key": lambda t: t.plain.named("a", "b"),
    "key first": lambda t: t.first.named("a", "b"),
    "the same names": lambda t: t.edges.named("dst", "src").map(lambda one, other: (other, one)),
    "groups": lambda t: t.edges.group_by("dst").aggregate(first=("src", "min")).select("first", "dst"),
    "by name": lambda t: t.edges.join(t.plain, on=["src", "dst"]).named("a", "b"),
}


@pytest.fixture
def db() -> Any:
    with Session() as db:
        db.table("edges", EDGES, key="dst")
        db.table("plain", EDGES)
        db.table("first", EDGES, key="src")
        db.commit()
        yield db


@pytest.mark.parametrize("name", REFUSED)
def test_by_position_is_refused_with_the_order_and_the_remedy(db: Session, name: str) -> None:
    with pytest.raises(SessionError) as raised:
        db.ask(REFUSED[name])
    assert __file__ in str(raised.value)
    assert "in the order dst, src, because the key of a table comes first: select('src', 'dst')" in str(raised.value)


@pytest.mark.parametrize("name", TAKEN)
def test_by_name_is_not(db: Session, name: str) -> None:
    assert db.ask(TAKEN[name]).records() == [("ann", "bob"), ("bob", "cem")]


def test_a_graph_is_that_of_the_names(db: Session) -> None:
    assert [node for node, _ in db.ask(lambda t: reachability(t.edges.select("src", "dst"), "ann")).records()] == [
        "ann",
        "bob",
        "cem",
    ]


def test_a_durable_table_may_be_read_in_another_order_by_name_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with Session(state=state) as db:
        db.table("people", {"id": [1], "first": ["Ann"], "last": ["Smith"]}, key="id")
        db.commit()
    with Session(state=state) as db:
        people = db.table("people", {"id": int, "last": str, "first": str}, key="id")
        assert (people.columns, people.records()) == (("id", "last", "first"), [(1, "Smith", "Ann")])
        assert db.ask(lambda t: t.people.select("last")).records() == [("Smith",)]
        with pytest.raises(SessionError, match=r"in the order id, first, last, .* select\('id', 'last', 'first'\)"):
            db.ask(lambda t: t.people.named("id", "family", "given"))
