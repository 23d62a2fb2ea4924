"""What a job is: a question about a graph, and how its answer is named, checked and drawn.

A program in `examples/` defines one `Job` and runs it. The definition of the question is a function from collections to
a collection, as in any program of this library; everything else about a job is shared: reading, following changes,
reporting, writing, checking and drawing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from differential import Collection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Column = NDArray[Any]
Columns = Sequence[Column]
Options = argparse.Namespace

AddOption = Callable[..., Any]
"""`add_argument` of the group in which a job's own options stand."""


class Field(NamedTuple):
    """A column of an answer: its name, and whether it holds nodes, which are shown by their names if they have any."""

    name: str
    is_node: bool = False


class Nodes(NamedTuple):
    """Nodes that the command line names, as `--from A`: an input of the question.

    `name` is the name of the input and of the option. Without the option the input holds the source of the first edge,
    if `has_default`, and otherwise nothing. If edges have weights, its records are (node, 0), to which weights can be
    added.
    """

    name: str
    help: str
    has_default: bool = False


class Inputs(NamedTuple):
    """What a question is about: the edges, (source, target) or (source, target, weight), and the nodes it names."""

    edges: Collection
    nodes: Mapping[str, Collection]


class Edges(NamedTuple):
    """All edges of a graph at one time, in columns, as an independent implementation reads them. An edge may repeat."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: Column | None


class Answer(NamedTuple):
    """A complete answer: its columns, and how often each record occurs. Nodes are numbers in it."""

    columns: Columns
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.counts)


class Shown(NamedTuple):
    """What a summary is made of: the answer, the options, and the name of a node."""

    answer: Answer
    options: Options
    name: Callable[[int], str]


Fields = tuple[Field, ...] | Callable[[Options], tuple[Field, ...]]
Question = Callable[[Inputs, Options], Collection]
Summary = Callable[[Shown], Iterator[str]]
Check = Callable[[Edges, Mapping[str, NDArray[np.int64]], Options], Columns]
Picture = Callable[["Axes", Shown], None]


@dataclass(frozen=True)
class Job:
    """A question about a graph.

    `question` returns the answer, a collection of records with the given `fields`. `summary` yields the lines that
    describe an answer. `check` computes the same answer from scratch, from the edges and the named nodes, with another
    library: it returns the columns in any order. `picture` draws the answer. `add_options` adds the job's own options
    to the command line, with the `add_argument` that it receives, and `settle` refuses those that contradict each other
    by raising `ValueError`.
    """

    name: str
    about: str
    """The docstring of the program: the help of its command line."""
    fields: Fields
    question: Question
    summary: Summary
    check: Check | None = None
    picture: Picture | None = None
    nodes: tuple[Nodes, ...] = ()
    is_weighted: Callable[[Options], bool] = field(default=lambda options: False)
    add_options: Callable[[AddOption], None] | None = None
    settle: Callable[[Options], None] | None = None
    is_multiset: bool = False
    """Whether records of the answer may occur more than once; the answer then has one more column, `occurrences`."""

    def fields_for(self, options: Options) -> tuple[Field, ...]:
        """Return the columns of the answer to the question with these options."""
        return self.fields(options) if callable(self.fields) else self.fields
