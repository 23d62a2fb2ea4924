"""Functions of columns that misbehave.

Each takes the benign function and its surroundings, and returns a function to give to an operator in its place.
`Verdict` is the permitted outcome: `RIGHT`, the answer of the benign one; `REFUSED`, an error that names the line;
`EITHER`, one of both, but never another answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from random import Random
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from tests.fuzz.hostile import columns as forms

Function = Callable[..., Any]


class Verdict(Enum):
    """The permitted outcome of a function."""

    RIGHT = "right"
    REFUSED = "refused"
    EITHER = "either"


class Around(NamedTuple):
    """The surroundings that a function can reach besides its arguments."""

    random: Random
    worker: Any
    session: Any
    output: Any


class Expected(Exception):
    """An exception of the program's own."""


class Hostility(NamedTuple):
    """A way to misbehave: of `sizes` with too few or too many rows, of `returns` if its result alone is wrong."""

    name: str
    verdict: Verdict
    disguise: Callable[[Function, Around], Function]
    sizes: bool = False
    returns: bool = False


def arrays_in(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays in arguments: columns, and those of groups."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from arrays_in(each)
    elif hasattr(value, "offsets"):
        yield from arrays_in((value.keys, value.values, value.counts, value.offsets))


def each_array(value: Any, change: Callable[[np.ndarray[Any, Any]], Any]) -> Any:
    """Return a result in which each array is replaced."""
    if isinstance(value, tuple):
        return tuple(each_array(each, change) for each in value)
    return change(value) if isinstance(value, np.ndarray) else value


def _as(form: forms.Form) -> Callable[[Function, Around], Function]:
    """Return the disguise that puts each column of a result into another form."""

    def disguise(function: Function, around: Around) -> Function:
        def hostile(*arguments: Any) -> Any:
            return each_array(function(*arguments), lambda column: form(column.tolist()) if len(column) else column)

        return hostile

    return disguise


def _one_of(count: int) -> Callable[[Function, Around], Function]:
    """Return the disguise that changes the length of one column."""

    def disguise(function: Function, around: Around) -> Function:
        def hostile(*arguments: Any) -> Any:
            result = function(*arguments)
            found = list(arrays_in(result))
            chosen = id(around.random.choice(found)) if found else None

            def change(column: np.ndarray[Any, Any]) -> Any:
                if id(column) != chosen:
                    return column
                return column[:count] if count < 0 else np.concatenate([column, column[:1]])

            return each_array(result, change)

        return hostile

    return disguise


def _instead(value: Any) -> Callable[[Function, Around], Function]:
    return lambda function, around: lambda *arguments: value


def _writes(function: Function, around: Around) -> Function:
    def hostile(*arguments: Any) -> Any:
        result = function(*arguments)
        found = [column for column in arrays_in(arguments) if len(column)]
        if not found:
            raise Expected("there is nothing to write to")
        column = around.random.choice(found)
        column[:] = column[::-1].copy()
        return result

    return hostile


def _keeps_its_buffers(function: Function, around: Around) -> Function:
    kept: list[np.ndarray[Any, Any]] = []

    def hostile(*arguments: Any) -> Any:
        result = function(*arguments)
        for column in kept:
            _spoil(column)
        kept.extend(arrays_in(result))
        return result

    return hostile


def _returns_views_of_its_buffers(function: Function, around: Around) -> Function:
    kept: list[np.ndarray[Any, Any]] = []

    def view(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        buffer = np.concatenate([column, column])
        kept.append(buffer)
        return buffer[: len(column)]

    def hostile(*arguments: Any) -> Any:
        result = function(*arguments)
        for buffer in kept:
            _spoil(buffer)
        return each_array(result, view)

    return hostile


def _spoil(column: np.ndarray[Any, Any]) -> None:
    """Write a value that no record has to a column, unless it is read-only by now."""
    if column.flags.writeable:
        column[:] = np.zeros(len(column), column.dtype) if column.dtype.kind in "OT" else column.dtype.type(0)


def _keeps_its_arguments(function: Function, around: Around) -> Function:
    kept: list[np.ndarray[Any, Any]] = []

    def hostile(*arguments: Any) -> Any:
        for column in kept:
            _spoil(column)
        kept.extend(arrays_in(arguments))
        return function(*arguments)

    return hostile


def _raises(make: Callable[[], BaseException]) -> Callable[[Function, Around], Function]:
    def disguise(function: Function, around: Around) -> Function:
        def hostile(*arguments: Any) -> Any:
            raise make()

        return hostile

    return disguise


def _meanwhile(act: Callable[[Around], object], *, elsewhere: bool = False) -> Callable[[Function, Around], Function]:
    """Return a function that does something else first, in another thread if `elsewhere` is set."""

    def disguise(function: Function, around: Around) -> Function:
        def hostile(*arguments: Any) -> Any:
            if not elsewhere:
                act(around)
                return function(*arguments)
            raised: list[Exception] = []

            def body() -> None:
                try:
                    act(around)
                except Exception as error:
                    raised.append(error)

            thread = Thread(target=body)
            thread.start()
            thread.join(10)
            assert not thread.is_alive(), "a thread that uses the worker hangs"
            if raised:
                raise raised[0]
            return function(*arguments)

        return hostile

    return disguise


def _in_a_thread(function: Function, around: Around) -> Function:
    def hostile(*arguments: Any) -> Any:
        found: list[Any] = []
        thread = Thread(target=lambda: found.append(function(*arguments)))
        thread.start()
        thread.join(10)
        return found[0]

    return hostile


def _one_argument_more(function: Function, around: Around) -> Function:
    return lambda first, second, third, fourth, fifth: function(first, second)


def _for_scalars(function: Function, around: Around) -> Function:
    def hostile(*arguments: Any) -> Any:
        column = next(arrays_in(arguments))
        if column > 1 or column <= 1:  # means nothing, unless there is one row
            raise Expected("one row")
        return function(*arguments)

    return hostile


RIGHT, REFUSED, EITHER = Verdict

HOSTILE: tuple[Hostility, ...] = (
    # Objects are neither a mask nor positions, though they are a column.
    *(
        Hostility(f"as {form.__name__}", EITHER if form is forms.of_objects else RIGHT, _as(form))
        for form in forms.EXACT
    ),
    *(Hostility(f"as {form.__name__}", REFUSED, _as(form), returns=True) for form in forms.BROKEN),
    Hostility("plain", RIGHT, lambda function, around: function),
    Hostility("a row less", REFUSED, _one_of(-1), sizes=True),
    Hostility("a row more", REFUSED, _one_of(1), sizes=True),
    Hostility("nothing", REFUSED, _instead(None), returns=True),
    Hostility("an object", REFUSED, _instead(object()), returns=True),
    Hostility("an empty tuple", REFUSED, _instead(()), returns=True),
    Hostility("a dictionary", REFUSED, _instead({}), returns=True),
    Hostility("a nested list", REFUSED, _instead([[1, 2], [3]]), returns=True),
    Hostility("an exception class", REFUSED, _instead(ValueError), returns=True),
    Hostility("writes", REFUSED, _writes),
    Hostility("keeps its buffers", EITHER, _keeps_its_buffers),
    Hostility("returns views of its buffers", EITHER, _returns_views_of_its_buffers),
    Hostility("keeps its arguments", EITHER, _keeps_its_arguments),
    *(
        Hostility(f"raises {kind.__name__}", REFUSED, _raises(lambda kind=kind: kind("on purpose")))  # type: ignore[misc]
        for kind in (Expected, ValueError, KeyError, StopIteration, IndexError, AssertionError, MemoryError, TypeError)
    ),
    Hostility("one argument more", REFUSED, _one_argument_more),
    Hostility("for scalars", REFUSED, _for_scalars),
    Hostility("in a thread", RIGHT, _in_a_thread),
    Hostility("steps", EITHER, _meanwhile(lambda around: around.worker.step())),
    Hostility("steps elsewhere", EITHER, _meanwhile(lambda around: around.worker.step(), elsewhere=True)),
    Hostility("builds", EITHER, _meanwhile(lambda around: around.worker.dataflow().__enter__())),
    Hostility("flushes", EITHER, _meanwhile(lambda around: around.session.flush())),
    Hostility("flushes elsewhere", EITHER, _meanwhile(lambda around: around.session.flush(), elsewhere=True)),
    Hostility("inserts nothing", EITHER, _meanwhile(lambda around: around.session.insert([], []))),
    Hostility("closes", EITHER, _meanwhile(lambda around: around.session.close())),
    Hostility("reads", EITHER, _meanwhile(lambda around: around.output.changes())),
    Hostility("explains", EITHER, _meanwhile(lambda around: around.worker.explain())),
)
