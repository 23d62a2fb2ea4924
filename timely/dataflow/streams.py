"""What a stream and a scope are, without the operators: `Stream` and `Scope` add these.

The outermost scope of a dataflow has times of `outer` coordinates (one epoch, unless more are asked for). Each
iterative scope adds a loop counter. A region adds nothing: it is structure for people. Scopes are not operators;
entering, leaving and going round a loop are path summaries on the edges between places.

Operators are functions over these types. Each returns streams of the class that it was given, so that what a program
calls on a stream, it can call on the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from timely.arguments import check_kind
from timely.dataflow.core import DataflowCore
from timely.dataflow.tee import Tee
from timely.errors import BuildError
from timely.order import Time
from timely.origin import user_origin
from timely.progress.summary import PathSummary


class StreamCore:
    """A stream of batches in a scope: where its progress is, and where its messages go on."""

    __slots__ = ("location", "scope", "tee")

    scope: ScopeCore[Self]

    def __init__(self, scope: ScopeCore[Self], location: int, tee: Tee) -> None:
        self.scope = scope
        self.location = location
        self.tee = tee

    def __repr__(self) -> str:
        return f"<stream in {self.scope}>"

    if not TYPE_CHECKING:

        def __getitem__(self, place: object) -> object:
            raise TypeError(
                "a stream is not a list, since records flow on it once the dataflow runs: inspect(print) shows them, "
                "and map and filter take functions of them"
            )


S = TypeVar("S", bound=StreamCore)


class ScopeCore(Generic[S]):
    """A scope of a dataflow, whose streams are of class S."""

    def __init__(self, dataflow: DataflowCore, parent: Self | None, name: str, outer: int, iterative: bool) -> None:
        self.dataflow = dataflow
        self.parent = parent
        self.name = name
        self.outer = outer
        self.origin = user_origin()
        if parent is None:
            self.width, self.path = outer, name
        else:
            self.width = parent.width + iterative
            self.path = f"{parent.path}/{name}"

    def stream(self, location: int, tee: Tee) -> S:
        """Return the stream whose messages pass a tee and whose progress is at a location."""
        raise NotImplementedError

    @contextmanager
    def iterative(self, name: str = "iterative") -> Iterator[Self]:
        """Open a scope whose times have one more coordinate, a loop counter.

        >>> def odd_part(scope):
        ...     with scope.iterative() as loop:
        ...         handle, again = loop.feedback()
        ...         even, odd = scope.to_stream([12]).enter(loop).concat(again).branch(lambda x: x % 2 == 1)
        ...         even.map(lambda x: x // 2).connect_loop(handle)
        ...         return odd.leave()
        >>> example(odd_part)
        [3]
        """
        yield type(self)(self.dataflow, self, name, self.outer, iterative=True)

    @contextmanager
    def region(self, name: str = "region") -> Iterator[Self]:
        """Open a scope with the same times: structure for people, and for what logs and `explain` call its operators.

        >>> def program(scope):
        ...     with scope.region("cleaning") as cleaning:
        ...         return scope.to_stream([3, -1]).enter(cleaning).filter(lambda x: x > 0).leave()
        >>> example(program)
        [3]
        """
        yield type(self)(self.dataflow, self, name, self.outer, iterative=False)

    @property
    def minimum(self) -> Time:
        """The least time of this scope."""
        return (0,) * self.width

    @property
    def index(self) -> int:
        """This worker's index."""
        return self.dataflow.worker_index

    @property
    def peers(self) -> int:
        """The number of workers."""
        return self.dataflow.peers

    def is_within(self, other: ScopeCore[S]) -> bool:
        """Return whether this scope is `other` or lies inside it.

        >>> def program(scope):
        ...     with scope.iterative() as loop:
        ...         print(loop.is_within(scope), scope.is_within(loop))
        ...     return scope.empty()
        >>> example(program)
        True False
        []
        """
        scope: ScopeCore[S] | None = self
        while scope is not None:
            if scope is other:
                return True
            scope = scope.parent
        return False

    def summary_of_entering(self, outer: ScopeCore[S], remedy: str) -> PathSummary:
        """Return the path summary of entering this scope from another; raise BuildError unless it lies inside that.

        `remedy` is what to do instead if the other belongs to another dataflow.
        """
        if not self.is_within(outer):
            where = f"cannot enter {self} from {outer}"
            if self.dataflow is not outer.dataflow:
                raise BuildError(f"{where}, of another dataflow: {remedy}")
            openings = f"{self.name!r} is opened at {self.origin}, {outer.name!r} at {outer.origin}"
            raise BuildError(
                f"{where}, which does not lie around it ({openings}): leave() brings a stream out of a scope"
            )
        return outer.summary_to(self)

    def summary_to(self, target: ScopeCore[S]) -> PathSummary:
        """Return the path summary of entering or leaving to `target`, a scope around this one or inside it."""
        return PathSummary.between(self.width, target.width)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return f"scope {self.path!r}"


def check_scope(name: str, scope: Any) -> None:
    """Raise BuildError unless what is given to the operator `name` is a scope.

    >>> check_scope("input", None)
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: input (at ...): `scope` must be a scope, as in `with worker.dataflow() as scope`, not None
    """
    check_kind(name, ScopeCore, "a scope, as in `with worker.dataflow() as scope`", scope=scope)


def check_streams(name: str, /, **given: Any) -> None:
    """Raise BuildError unless each of the arguments of the operator `name` is a stream.

    >>> check_streams("binary", right=[1, 2])
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: binary (at ...): `right` must be a stream, as scope.to_stream(...) makes, not [1, 2]
    """
    check_kind(name, StreamCore, "a stream, as scope.to_stream(...) makes", **given)
