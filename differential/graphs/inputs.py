"""What an algorithm takes as edges and nodes: all else is refused, and plain nodes become a collection.

Algorithms take columns by their positions. Of a collection that knows the names and types of its columns, this finds
what does not fit when the algorithm is called: another order than in its table, where the first column need not be the
key, another number of columns, and nodes of two types.
"""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet
from datetime import date
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from differential import Collection
from differential.lowlevel import check_collections, check_rows
from timely.lowlevel import ColumnLike, as_columns, nullable, refusal

Node: TypeAlias = int | str | bytes | date
Nodes: TypeAlias = Node | Sequence[int] | Sequence[str] | Sequence[bytes] | Sequence[date] | AbstractSet[Node]
"""Nodes that a program gives to an algorithm as plain values, which do not change."""

_COLUMNS: Final = {
    "edges": ("source", "target"),
    "goals": ("source", "target"),
    "labels": ("node", "label"),
    "pairs": ("source", "target"),
    "personalisation": ("node", "weight"),
    "roots": ("node",),
    "shortest_distances edges": ("source", "target", "length"),
    "shortest_distances roots": ("node", "distance"),
}
"""The columns of each argument, of all algorithms or of one."""

_NODES: Final = ("source", "target", "node")


def check_inputs(name: str, **given: Any) -> None:
    """Raise BuildError unless each argument of the algorithm `name` is a collection, or an arrangement of one.

    Of a collection that knows its columns, these must be as many as the algorithm takes, and nodes of one type.
    """
    check_collections(name, **given)
    check_columns(name, **given)


def check_records(name: str, **given: Any) -> None:
    """Raise BuildError as `check_inputs` does, and for an arrangement."""
    check_rows(name, **given)
    check_columns(name, **given)


def check_columns(name: str, **given: Any) -> None:
    """Raise BuildError where the columns of collections that know them do not fit, or not together."""
    first: _Nodes | None = None
    for role, value in given.items():
        names = getattr(value, "names", None)
        if names is None:
            continue
        value.refuse_positions(name)
        columns = _COLUMNS.get(f"{name} {role}") or _COLUMNS[role.partition("[")[0]]
        _refuse_width(name, role, columns, names)
        for column, theirs in zip(columns, names):
            of = value.types.get(theirs) if column in _NODES else None
            if of is None:
                continue
            these = _Nodes(role, columns, theirs, of)
            first = first or these
            if of != first.type and {of, first.type} != {"int64", "bool"}:
                raise refusal(name, f"nodes are of one type, and {first.beside(these)}")


def nodes_of(name: str, edges: Collection, roots: Collection | Nodes) -> Collection:
    """Return the roots of the algorithm `name` as a collection; raise BuildError if they are neither that nor nodes.

    >>> example(lambda scope: nodes_of("bfs", Collection.of(scope, 1, 2), [1, 2]))
    [((1,), 1), ((2,), 1)]
    """
    if isinstance(roots, (tuple, range, set, frozenset)):
        roots = list(roots)
    if isinstance(roots, (int, str, bytes, list, np.ndarray, np.generic, date, ColumnLike)):
        (column,) = as_columns((roots,))
        types = getattr(edges, "types", {}).values()
        return Collection.of(edges.scope, nullable(column) if any(each.endswith("?") for each in types) else column)
    check_records(name, roots=roots)
    check_columns(name, edges=edges, roots=roots)
    return roots  # type: ignore[return-value]


class _Nodes(NamedTuple):
    """A column of nodes of an argument whose columns are known."""

    role: str
    columns: tuple[str, ...]
    """What the argument takes."""
    name: str
    type: str

    def beside(self, other: _Nodes) -> str:
        """Return what differs between two columns, and what makes their nodes alike."""
        both = (
            f"column {self.name!r} of `{self.role}` is of {self.type}, {other.name!r} of `{other.role}` of {other.type}"
        )
        if self.type.rstrip("?") != other.type.rstrip("?"):
            return f"{both}: map(...) converts one of them"
        of = self if other.type.endswith("?") else other
        made = ", ".join(f"nullable({each})" if each in _NODES else each for each in of.columns)
        returned = f"({made})" if len(of.columns) > 1 else made
        return (
            f"{both}: map(lambda {', '.join(of.columns)}: {returned}) of `{of.role}`, with nullable of "
            "differential.frames, makes nodes that may be null"
        )


def _refuse_width(name: str, role: str, columns: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Raise BuildError unless there are as many names as columns."""
    if len(names) != len(columns):
        kept = ", ".join(map(repr, names[: len(columns)]))
        remedy = f": select({kept}) keeps the first {len(columns)}" if len(names) > len(columns) else ""
        raise refusal(
            name,
            f"`{role}` takes records ({', '.join(columns)}), and this collection has "
            f"{len(names)} columns, {', '.join(names)}{remedy}",
        )
