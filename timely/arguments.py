"""Refuse arguments that an operator cannot use, with the line of the program that passes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, signature
from numbers import Integral
from typing import Any

from timely.errors import BuildError
from timely.origin import Origin, user_origin


def refusal(name: str, problem: str) -> BuildError:
    """Return the error for what the program asks of the operator `name`, with the line that asks for it.

    >>> raise refusal("top_k", "`k` must be at least 1, not 0")
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: top_k (at ...): `k` must be at least 1, not 0
    """
    return BuildError(f"{name} (at {user_origin()}): {problem}")


def check_functions(name: str, /, **given: Any) -> None:
    """Raise BuildError unless each of the arguments of the operator `name` can be called.

    >>> check_functions("map", function="x")
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: map (at ...): `function` must be a function, not 'x'
    """
    for role, value in given.items():
        if not callable(value):
            raise refusal(name, f"`{role}` must be a function, not {value!r:.80}")


def takes_arguments(function: Callable[..., Any], number: int) -> bool:
    """Return whether a function can be called with this many arguments, as far as its signature shows.

    >>> takes_arguments(lambda a, b=0: a, 2), takes_arguments(lambda a: a, 2)
    (True, False)
    """
    try:
        parameters = signature(function)
    except (TypeError, ValueError):  # functions written in C may have no signature
        return True
    try:
        parameters.bind(*[None] * number)
    except TypeError:
        return False
    return True


def check_parameters(name: str, number: int, received: str, /, **given: Any) -> None:
    """Raise BuildError unless each of the arguments is a function of `number` arguments, which `received` describes.

    >>> check_parameters("reduce_each", 2, "a key and its values", function=lambda key: key)
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: reduce_each (at ...): `function` must take 2 arguments: a key and its values
    """
    check_functions(name, **given)
    for role, value in given.items():
        if not takes_arguments(value, number):
            many = "1 argument" if number == 1 else f"{number} arguments"
            raise refusal(name, f"`{role}` must take {many}: {received}")


def check_logic(name: str, logic: Any, at: Origin | None = None) -> None:
    """Raise BuildError unless `logic` is a function that runs when it is called, which one with a `yield` does not.

    `at` is where the operator `name` was built, by default the line that the program is at.

    >>> def doubled(input, output):
    ...     for right, batch in input:
    ...         yield 2 * batch
    >>> check_logic("unary", doubled)
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: unary (at ...): `logic` has a `yield`, so a call would run nothing of it: emit with ...
    """
    check_functions(name, logic=logic)
    function = logic
    while isinstance(function, partial):
        function = function.func
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR):
        what = "is `async`" if flags & CO_COROUTINE else "has a `yield`"
        raise BuildError(
            f"{name} (at {at or user_origin()}): `logic` {what}, so a call would run nothing of it: emit with "
            "output.give()"
        )


def check_kind(name: str, kind: type[Any], what: str, /, **given: Any) -> None:
    """Raise BuildError unless each of the arguments of the operator `name` is of a class, which `what` describes.

    >>> check_kind("connect", int, "a number of a port", port="x")
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: connect (at ...): `port` must be a number of a port, not 'x'
    """
    for role, value in given.items():
        if not isinstance(value, kind):
            raise refusal(name, f"`{role}` must be {what}, not {value!r:.80}")


def check_whole(name: str, least: int, /, **given: Any) -> None:
    """Raise BuildError unless each of the arguments of the operator `name` is a whole number of at least `least`.

    >>> check_whole("k_core", 0, k=1.5)
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: k_core (at ...): `k` must be a whole number of at least 0, not 1.5
    """
    for role, value in given.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise refusal(name, f"`{role}` must be a whole number of at least {least}, not {value!r:.80}")
