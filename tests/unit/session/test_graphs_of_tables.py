"""Algorithms over tables: what their columns do not have is refused when the algorithm is called, with the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from differential import Session
from differential.frames import nullable
from differential.graphs import (
    bfs,
    grammar_reachability,
    landmark_distances,
    pagerank,
    propagate,
    reachability,
    shortest_distances,
    weakly_connected_components,
)
from timely.errors import SessionError

NULLABLE = "map(lambda source, target: (nullable(source), nullable(target))) of `edges`, with nullable of diff"

REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "edges with a length": (
        lambda t: reachability(t.roads, "ann"),
        r"`edges` takes records (source, target), and this collection has 3 columns, src, dst, length: "
        "select('src', 'dst') keeps the first 2",
    ),
    "edges without a length": (
        lambda t: shortest_distances(t.edges, t.weights),
        "`edges` takes records (source, target, length), and this collection has 2 columns, src, dst",
    ),
    "roots with another column": (lambda t: bfs(t.edges, t.weights), "select('name') keeps the first 1"),
    "landmarks with another column": (lambda t: landmark_distances(t.edges, t.weights), "select('name') keeps the"),
    "nodes without labels": (lambda t: propagate(t.edges, t.people), "`labels` takes records (node, label)"),
    "nodes without weights": (lambda t: pagerank(t.edges, personalisation=t.people), "takes records (node, weight)"),
    "edges of a label": (lambda t: grammar_reachability({"a": t.roads}, [("b", ["a"])])["b"], "`edges['a']` takes"),
    "targets that may be null": (
        lambda t: weakly_connected_components(t.open_edges),
        "column 'src' of `edges` is of text, 'dst' of `edges` of text?: " + NULLABLE,
    ),
    "roots that may be null": (
        lambda t: reachability(t.edges, t.open_people),
        "column 'src' of `edges` is of text, 'name' of `roots` of text?: " + NULLABLE,
    ),
    "edges that may be null": (
        lambda t: reachability(t.null_edges, t.people),
        "`edges` is of text?, 'name' of `roots` of text: map(lambda node: nullable(node)) of `roots`",
    ),
    "numbers and text": (
        lambda t: reachability(t.edges, t.numbers),
        "column 'src' of `edges` is of text, 'n' of `roots` of int64: map(...) converts one of them",
    ),
}

TAKEN: dict[str, Callable[[Any], Any]] = {
    "both may be null": lambda t: reachability(t.null_edges, t.open_people),
    "one node": lambda t: reachability(t.null_edges, "ann"),
    "some nodes": lambda t: reachability(t.null_edges, ["ann"]),
    "the remedy": lambda t: reachability(
        t.open_edges.map(lambda source, target: (nullable(source), nullable(target))), t.open_people
    ),
    "the columns named": lambda t: reachability(t.roads.select("src", "dst"), t.people),
}


@pytest.fixture
def db() -> Any:
    with Session() as db:
        edges = {"src": ["ann", "bob"], "dst": ["bob", "cem"]}
        db.table("edges", edges)
        db.table("roads", {**edges, "length": [1, 2]})
        db.table("open_edges", {"src": str, "dst": str | None}).insert(**edges)
        db.table("null_edges", {"src": str | None, "dst": str | None}).insert(**edges)
        db.table("people", {"name": ["ann"]})
        db.table("open_people", {"name": str | None}).insert(name="ann")
        db.table("weights", {"name": ["ann"], "weight": [1]})
        db.table("numbers", {"n": [1]})
        db.table("flags", {"a": [1], "b": [True]})
        db.commit()
        yield db


@pytest.mark.parametrize("name", REFUSED)
def test_columns_that_do_not_fit_are_refused_with_the_remedy(db: Session, name: str) -> None:
    definition, message = REFUSED[name]
    with pytest.raises(SessionError) as raised:
        db.ask(definition)
    assert __file__ in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize("name", TAKEN)
def test_columns_that_fit_are_taken(db: Session, name: str) -> None:
    assert db.ask(TAKEN[name]).records() == [("ann", "ann"), ("bob", "ann"), ("cem", "ann")]


def test_truth_values_are_nodes_beside_numbers(db: Session) -> None:
    assert db.ask(lambda t: reachability(t.flags, t.numbers)).records() == [(1, 1)]
