"""Random programs over pairs of small integers, and random changes of their inputs."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from tests.oracle.programs import BINARY, SIZE, UNARY, Pair, Program

INPUTS = 2
MONOTONE_UNARY = ("swap", "fold", "even", "both", "distinct", "consolidate", "numbered", "self")
MONOTONE_BINARY = ("concat", "join", "semijoin", "union", "intersect")


class Edit(NamedTuple):
    """A record of an input occurs once more, or once less where it can."""

    input: int
    pair: Pair
    insert: bool
    worker: int


class Case(NamedTuple):
    """A program, the edits of each epoch, how many epochs are handed over at once, how many workers, and a seed."""

    program: Program
    epochs: list[list[Edit]]
    together: int
    workers: int
    seed: int


@st.composite
def bodies(draw: st.DrawFn, variables: int, depth: int) -> Program:
    """Monotone programs of inputs and of the variables around them."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        if draw(st.booleans()):
            return ("variable", draw(st.integers(0, variables - 1)))
        return ("input", draw(st.integers(0, INPUTS - 1)))
    shape = draw(st.integers(0, 6))
    if shape == 0 and variables < 3:
        return loop(draw(bodies(variables, depth - 1)), draw(bodies(variables + 1, depth - 1)))
    if shape <= 3:
        return (draw(st.sampled_from(MONOTONE_UNARY)), draw(bodies(variables, depth - 1)))
    return (draw(st.sampled_from(MONOTONE_BINARY)), *(draw(bodies(variables, depth - 1)) for _ in range(2)))


def loop(start: Program, body: Program) -> Program:
    """Return a loop that settles: it only adds records, of a bounded domain."""
    return ("settle", ("bound", start), ("bound", body))


@st.composite
def programs(draw: st.DrawFn, depth: int = 4) -> Program:
    """Programs of all operators, with loops nested up to three deep."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return ("input", draw(st.integers(0, INPUTS - 1)))
    shape = draw(st.integers(0, 7))
    if shape == 0:
        return loop(draw(programs(depth - 1)), draw(bodies(1, 3)))
    if shape == 1:
        edges, start = draw(programs(depth - 1)), draw(programs(depth - 1))
        return ("iterate", ("min", start), ("min", ("concat", ("swap", ("join", ("variable", 0), edges)), start)))
    if shape <= 4:
        return (draw(st.sampled_from(UNARY)), draw(programs(depth - 1)))
    return (draw(st.sampled_from(BINARY)), *(draw(programs(depth - 1)) for _ in range(2)))


@st.composite
def cases(draw: st.DrawFn, depth: int = 4) -> Case:
    """A program and everything that happens to it."""
    workers = draw(st.integers(1, 4))
    coordinates = st.integers(0, SIZE - 1)
    edits = st.builds(
        Edit,
        st.integers(0, INPUTS - 1),
        st.tuples(coordinates, coordinates),
        st.booleans(),
        st.integers(0, workers - 1),
    )
    epochs = draw(st.lists(st.lists(edits, max_size=6), min_size=1, max_size=5))
    return Case(
        draw(programs(depth)), epochs, draw(st.integers(1, len(epochs))), workers, draw(st.integers(0, 1 << 16))
    )
