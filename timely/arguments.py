"""Refuse arguments that an operator cannot use, with the line of the program that passes them."""

from __future__ import annotations

from typing import Any

from timely.errors import BuildError
from timely.origin import user_origin


def check_functions(name: str, /, **given: Any) -> None:
    """Raise BuildError unless each of the arguments of the operator `name` can be called.

    >>> check_functions("map", function="x")
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: map (at ...): `function` must be a function, not 'x'
    """
    for role, value in given.items():
        if not callable(value):
            raise BuildError(f"{name} (at {user_origin()}): `{role}` must be a function, not {value!r:.80}")


def check_kind(name: str, kind: type[Any], what: str, /, **given: Any) -> None:
    """Raise BuildError unless each of the arguments of the operator `name` is of a class, which `what` describes.

    >>> check_kind("connect", int, "a number of a port", port="x")
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: connect (at ...): `port` must be a number of a port, not 'x'
    """
    for role, value in given.items():
        if not isinstance(value, kind):
            raise BuildError(f"{name} (at {user_origin()}): `{role}` must be {what}, not {value!r:.80}")
