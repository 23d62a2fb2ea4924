"""Random programs over pairs of small integers, and random circumstances."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.graphs import GRAPHS, OF_EDGES
from tests.oracle.kinds import KINDS
from tests.oracle.part import INPUTS
from tests.oracle.programs import BINARY, DRESSED, LARGE, SIZE, UNARY, Program
from tests.oracle.scenario import Scenario
from tests.strategies_updates import histories

MONOTONE_UNARY = ("swap", "fold", "even", "both", "distinct", "consolidate", "numbered", "self", "window", "nothing",
                  "index distinct", "there and back")  # fmt: skip
MONOTONE_BINARY = ("concat", "join", "semijoin", "union", "intersect", "delta", "index join")
MONOTONE_LARGE = ("extended", *(name for name, graph in GRAPHS.items() if graph.is_monotone))

inputs: st.SearchStrategy[Program] = st.sampled_from(
    (*[("input", 0), ("input", 1)] * 3, *[("input", INPUTS)] * 2, ("input", INPUTS + 1))
)


@st.composite
def operators(draw: st.DrawFn, names: tuple[str, ...], dressed: bool = False) -> tuple[str, ...]:
    """An operator, sometimes of columns dressed as of other kinds; always and as text if `dressed`."""
    name = draw(st.sampled_from(tuple(name for name in names if name in DRESSED) if dressed else names))
    if name in DRESSED and (dressed or draw(st.integers(0, 3)) == 0):
        kinds = st.sampled_from(tuple(name for name in KINDS if not dressed or "te" in name))
        return ("dressed", draw(kinds), draw(kinds), name)
    return (name,)


@st.composite
def large(draw: st.DrawFn, names: tuple[str, ...], operands: st.SearchStrategy[Program]) -> Program:
    """An operator of many operators: a graph algorithm, of edges or of edges and other pairs, or a join of three."""
    name = draw(st.sampled_from(names))
    return (name, draw(operands)) if name in OF_EDGES else (name, draw(operands), draw(operands))


@st.composite
def bodies(draw: st.DrawFn, variables: int, depth: int, dressed: bool = False) -> Program:
    """Monotone programs of inputs and of the variables around them."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        if draw(st.booleans()):
            return ("variable", draw(st.integers(0, variables - 1)))
        return draw(inputs)
    shape = draw(st.integers(0, 6))
    again = bodies(variables, depth - 1, dressed)
    if shape == 0 and variables < 4:
        return draw(loops(again, lambda more: bodies(variables + more, depth - 1, dressed)))
    if shape == 1 and not dressed and draw(st.booleans()):
        return draw(large(MONOTONE_LARGE, again))
    if shape <= 3:
        return (*draw(operators(MONOTONE_UNARY, dressed)), draw(again))
    return (*draw(operators(MONOTONE_BINARY, dressed)), draw(again), draw(again))


@st.composite
def loops(draw: st.DrawFn, starts: st.SearchStrategy[Program], inside: object) -> Program:
    """Loops that settle: they only add records, of a bounded domain."""
    name = draw(st.sampled_from(("settle", "later", "mutual")))
    number = 2 if name == "mutual" else 1
    start = [("bound", draw(starts)) for _ in range(number)]
    body = [("bound", draw(inside(number))) for _ in range(number)]  # type: ignore[operator]
    return (name, *start, *body)


@st.composite
def programs(draw: st.DrawFn, depth: int = 4, dressed: bool = False) -> Program:
    """Programs of all operators, with loops nested up to three deep."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(inputs)
    shape = draw(st.integers(0, 9))
    again = programs(depth - 1, dressed)
    if shape == 0:
        return draw(loops(again, lambda more: bodies(more, 3, dressed)))
    if shape == 1:
        edges, start = draw(again), draw(again)
        return ("iterate", ("min", start), ("min", ("concat", ("swap", ("join", ("variable", 0), edges)), start)))
    if shape == 2:
        return ("delay", draw(again))
    if shape == 3 and not dressed:
        return draw(large(LARGE, again))
    if shape <= 6:
        return (*draw(operators(UNARY, dressed)), draw(again))
    return (*draw(operators(BINARY, dressed)), draw(again), draw(again))


@st.composite
def scenarios(
    draw: st.DrawFn, depth: int = 4, most: int = 8, size: int = 8, latest: int = 2, dressed: bool = False
) -> Scenario:
    """Some programs and everything that happens to them, at times whose coordinates are not above `latest`."""
    coordinates = st.integers(0, SIZE - 1)
    values = st.none() | coordinates
    statements = st.lists(
        st.tuples(st.tuples(coordinates, values), st.tuples(st.integers(0, latest))), max_size=size // 2
    )
    history = draw(histories(INPUTS, st.tuples(coordinates, coordinates), outer=(1, 1, 2), size=size, latest=latest))
    return Scenario(
        draw(st.lists(programs(depth, dressed), min_size=min(most, 4), max_size=most)),
        history.inputs,
        history.outer,
        draw(st.integers(1, 4)),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from((0, 0, 0, 1, 2, 3))),
        history.seed,
        sorted(draw(statements), key=lambda one: one[1]) if history.outer == 1 else (),
    )
