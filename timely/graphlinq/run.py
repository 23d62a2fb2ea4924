"""One run of a vertex program on one worker: its nodes, their state, and the effect of a superstep on them.

Invariant: `index.nodes` is sorted, and row `slot` of each column of state belongs to node `index.nodes[slot]`. This
module knows nothing of dataflows: messages go in, rows come out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.errors import DataError
from timely.graphlinq.grouping import Combination, group_nodes, identity, meaning, summable, ufuncs_of
from timely.graphlinq.index import Index, Ints, as_nodes
from timely.lowlevel import (
    Array,
    Columns,
    as_columns,
    as_mask,
    call,
    check_functions,
    concatenate,
    consult,
    in_type,
    refusal,
    total,
    total_of_totals,
)

Rows = Ints | slice
"""Some rows of the state; a slice stands for all of them, which avoids a copy."""


@dataclass(frozen=True)
class Superstep:
    """What every node knows in a superstep: its number, and the aggregates of the previous one."""

    number: int
    aggregates: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Aggregator:
    """A value of the whole graph: `values(*state)` of each node updated in a superstep, combined by `combine`.

    All nodes see it in the next superstep, with the same value on every worker.

    Raises BuildError if `combine` is not a ufunc, or `values` not a function.
    """

    combine: np.ufunc
    values: Callable[..., Any]

    def __post_init__(self) -> None:
        if not isinstance(self.combine, np.ufunc):
            problem = f"an aggregator combines values by a ufunc, such as np.add, not by {self.combine!r:.80}"
            raise refusal("Aggregator", problem)
        check_functions("Aggregator", values=self.values)


@dataclass(frozen=True, kw_only=True)
class VertexProgram:
    """What the nodes of a graph do, superstep by superstep.

    All functions receive columns with one row per node, and return a column or a tuple of columns:

    - `init(node, *values)` returns the initial state, given the values that come with the nodes.
    - `message(*state)` returns what a node sends.
    - `along(*message, *edge values)`, with one row per edge, returns what arrives at the end of the edge. With
      `everyone` its columns must have the types of `message`, since nodes that receive nothing get a message, too.
    - `combine`, a ufunc or one for each column, combines the messages to a node.
    - `update(superstep, *state, *message)` returns the new state (see `Superstep`).
    - `sends(*state)` returns whether a node sends; by default, if its state has changed, or always with `everyone`.

    `aggregators` are values of the whole graph, which all nodes see in the next superstep. If `until(superstep)` is
    true, the run ends before that superstep. `supersteps` is the largest number of supersteps after superstep 0.

    Raises BuildError if `supersteps` is not a whole number, or is negative, if `aggregators` is not a dictionary of
    aggregators by name, and if what should be a function is not one.
    """

    init: Callable[..., Any]
    message: Callable[..., Any]
    combine: Combination
    update: Callable[..., Any]
    along: Callable[..., Any] | None = None
    sends: Callable[..., Any] | None = None
    everyone: bool = False
    aggregators: Mapping[str, Aggregator] = field(default_factory=dict)
    until: Callable[[Superstep], Any] | None = None
    supersteps: int | None = None

    def __post_init__(self) -> None:
        check_functions("VertexProgram", init=self.init, message=self.message, update=self.update)
        optional = {"along": self.along, "sends": self.sends, "until": self.until}
        check_functions("VertexProgram", **{role: given for role, given in optional.items() if given is not None})
        number = self.supersteps
        if number is not None and (not isinstance(number, Integral) or isinstance(number, bool) or number < 0):
            problem = f"it cannot run {number!r:.80} supersteps: it is a whole number from 0 on"
            raise refusal("VertexProgram", problem)
        given = self.aggregators
        if not isinstance(given, Mapping) or not all(isinstance(each, Aggregator) for each in given.values()):
            problem = f"aggregators are a dictionary, such as {{'sum': Aggregator(...)}}, not {given!r:.80}"
            raise refusal("VertexProgram", problem)


class Run:
    """The nodes of one run on this worker."""

    __slots__ = ("_changed", "_index", "_program", "_silence", "_updated", "state")

    def __init__(self, program: VertexProgram, batches: Sequence[Columns]) -> None:
        self._program = program
        columns = concatenate(batches).columns
        nodes = as_nodes(columns[0])
        self._index = Index()
        self._index.include(nodes)
        order = np.argsort(nodes, kind="stable")
        if len(self._index) < len(nodes):
            repeated = nodes[order][1:][np.diff(nodes[order]) == 0]
            raise DataError(f"node {repeated[0]} was given more than once, so it has more than one initial state")
        initial = as_columns(call(program.init, (self.nodes, *(column[order] for column in columns[1:]))), len(nodes))
        # Copied, because `step` writes to it: the result of `init` may be a column of the program, or `nodes`.
        self.state = tuple(column.copy() for column in initial)
        self._updated: Rows = slice(None)
        self._changed: Rows = slice(None)
        self._silence: tuple[Array, ...] = ()
        if program.everyone:
            self._silence = as_columns(call(program.message, self._rows(slice(0))), 0)

    @property
    def nodes(self) -> Ints:
        """The nodes, in order."""
        return self._index.nodes

    def step(self, superstep: Superstep, batches: Sequence[Columns]) -> None:
        """Update the nodes that receive batches of (node, message), or all nodes with `everyone`."""
        slots, values = self._received(batches)
        if self._program.everyone:
            values = tuple(self._for_everyone(slots, values))
            self._updated = slice(None)
        else:
            self._updated = slice(None) if len(slots) == len(self.nodes) else slots
            if not len(slots):
                self._changed = slots
                return
        before = self._rows(self._updated)
        rows = len(before[0])
        after = as_columns(call(self._program.update, (*before, *values), superstep), rows)
        if len(after) != len(before):
            raise DataError(f"update returned {len(after)} column(s) of state, but init returned {len(before)}")
        # A view may show another column of the state, which is written below before the view is read.
        after = tuple(
            new if new is old or new.base is None else new.copy() for old, new in zip(before, after, strict=True)
        )
        is_changed = np.zeros(rows, np.bool_)
        for whole, old, new in zip(self.state, before, after):
            # `call` returns the column itself where `update` returns it as it was received.
            if new is not old:
                new = _like(old, new)
                is_changed |= _differ(old, new)
                # In place: all messages computed from the old state were sent before this superstep could begin.
                whole[self._updated] = new
        changed = np.flatnonzero(is_changed)
        self._changed = changed if isinstance(self._updated, slice) else slots[changed]

    def sent(self) -> Columns | None:
        """Return (node, message) of the nodes that send after the last superstep; None if none does."""
        program = self._program
        rows: Rows = slice(None) if program.everyone else self._changed
        nodes, state = self.nodes[rows], self._rows(rows)
        if program.sends is not None:
            mask = as_mask(consult(program.sends, state), len(nodes))
            nodes, state = nodes[mask], tuple(column[mask] for column in state)
        return Columns((nodes, *as_columns(call(program.message, state), len(nodes)))) if len(nodes) else None

    def contribution(self) -> tuple[Any, ...]:
        """Return the number of nodes changed in the last superstep, then each aggregator's value for updated nodes."""
        changed = len(self.nodes[self._changed])
        state = self._rows(self._updated)
        totals = []
        for name, aggregator in self._program.aggregators.items():
            values, *others = as_columns(consult(aggregator.values, state), len(state[0]))
            if others:
                raise DataError(f"the values of aggregator {name!r} are one column, not {1 + len(others)}")
            values = summable(aggregator.combine, values)
            totals.append(total(aggregator.combine, values, identity(aggregator.combine, values.dtype)))
        return (changed, *totals)

    def result(self) -> Columns:
        return Columns((self.nodes, *self.state))

    def _rows(self, rows: Rows) -> tuple[Array, ...]:
        return tuple(column[rows] for column in self.state)

    def _received(self, batches: Sequence[Columns]) -> tuple[Ints, tuple[Array, ...]]:
        """Return the sorted slots of the nodes on this worker that have messages, and the combined message to each."""
        if not batches:
            return np.empty(0, np.int64), self._silence
        columns = concatenate(batches).columns
        nodes, values = group_nodes(self._program.combine, as_nodes(columns[0]), columns[1:])
        # In order, as the nodes are: one call included all nodes of the run, so slots increase with them.
        slots = self._index.slots(nodes)
        if len(slots) and slots.min() < 0:
            is_here = slots >= 0
            return slots[is_here], tuple(column[is_here] for column in values)
        return slots, values

    def _for_everyone(self, slots: Ints, values: tuple[Array, ...]) -> list[Array]:
        """Return a message for every node; nodes that received none get the identity."""
        ufuncs = ufuncs_of(self._program.combine, values)
        values, silence = tuple(map(summable, ufuncs, values)), self._silence
        if len(silence) == len(values):
            silence = tuple(map(summable, ufuncs, silence))
        given, sent = ([column.dtype for column in columns] for columns in (values, silence))
        if given != sent:
            # The identity depends on the type, and a worker that has received nothing knows only this one.
            raise DataError(
                f"`along` returned columns of {_listed(given)}, but `message` returned {_listed(sent)}: with "
                "`everyone`, nodes that receive nothing get a message of that type, so the types must be the same"
            )
        messages = []
        for ufunc, column in zip(ufuncs, values):
            message = np.full(len(self.nodes), identity(ufunc, column.dtype), column.dtype)
            message[slots] = column
            messages.append(message)
        return messages


def combined(program: VertexProgram, contributions: Sequence[tuple[Any, ...]]) -> tuple[int, dict[str, Any]]:
    """Return the number of nodes changed on all workers, and the aggregates, given (worker, contribution ...) of each.

    They are combined in the order of the workers, so that all workers get the same result.

    Raises DataError if a sum or product of integers does not fit into 64 bits.
    """
    columns = list(zip(*sorted(contributions)))
    totals = {}
    for (name, aggregator), column in zip(program.aggregators.items(), columns[2:]):
        totals[name] = total_of_totals(aggregator.combine, list(column))
        if not fits(totals[name]):
            raise DataError(
                f"what the values of aggregator {name!r} {meaning(aggregator.combine)} does not fit into 64 bits: "
                "divide them first, or combine floats"
            )
    return sum(columns[1]), totals


def _differ(old: Array, new: Array) -> NDArray[np.bool_]:
    """Return which values differ; NaN does not differ from NaN."""
    different: NDArray[np.bool_] = new != old
    if old.dtype.kind == "f" and new.dtype.kind == "f" and (is_none := np.isnan(new)).any():
        different &= ~(is_none & np.isnan(old))
    return different


def _listed(dtypes: Sequence[np.dtype[Any]]) -> str:
    return ", ".join(map(str, dtypes)) or "nothing"


def _like(old: Array, new: Array) -> Array:
    """Return new values in the type of the old ones; raise DataError if they do not fit."""
    try:
        return in_type(new, old.dtype)
    except DataError as error:
        raise DataError(f"update returned a column of {new.dtype}, but init returned {old.dtype}: {error}") from None


def fits(number: Any) -> bool:
    """Return whether a number, if it is an integer, fits into 64 bits, signed or unsigned.

    >>> fits(1 << 63), fits(1 << 64), fits(1e300)
    (True, False, True)
    """
    return not isinstance(number, int) or -(1 << 63) <= number < 1 << 64
