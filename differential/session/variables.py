"""The variables that a function of a view reads, which must stay as they are while the view exists."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from dis import get_instructions
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, NoneType
from typing import Any, NamedTuple

import numpy as np

from timely.errors import BuildError

_SIMPLE = (bool, int, float, complex, str, bytes, NoneType, Decimal, date, time, timedelta, np.generic)
_UNBOUND = object()


class FunctionVariable(NamedTuple):
    """A variable that a function reads, `place`, and the value that it has had from the beginning."""

    name: str
    place: CellType | dict[str, Any]
    value: Any

    def now(self) -> Any:
        """Return the value that it has now, `_UNBOUND` if it has none."""
        if isinstance(self.place, dict):
            return self.place.get(self.name, _UNBOUND)
        try:
            return self.place.cell_contents
        except ValueError:
            return _UNBOUND


def variables_of(function: object) -> list[FunctionVariable]:
    """Return the variables with plain values that a function reads from around it, and does not assign.

    >>> least = 10
    >>> [(name, value) for name, _, value in variables_of(lambda r: r.total > least)]
    [('least', 10)]
    """
    plain = _written(function)
    if plain is None:
        return []
    codes = list(_all_code(plain.__code__))
    around = {name for code in codes for name in code.co_names if _is_simple(plain.__globals__.get(name, _UNBOUND))}
    if not around and not plain.__closure__:
        return []
    read, assigned = set(), set()
    for code in codes:
        for each in get_instructions(code):
            if each.opname == "LOAD_GLOBAL":
                read.add(each.argval)
            elif each.opname in ("STORE_GLOBAL", "STORE_DEREF", "DELETE_GLOBAL", "DELETE_DEREF"):
                assigned.add(each.argval)
    places: dict[str, CellType | dict[str, Any]] = dict.fromkeys(read & around, plain.__globals__)
    places |= zip(plain.__code__.co_freevars, plain.__closure__ or ())
    found = [FunctionVariable(name, place, None) for name, place in sorted(places.items()) if name not in assigned]
    known = [each._replace(value=each.now()) for each in found]
    return [each for each in known if _is_simple(each.value)]


def _written(function: object) -> FunctionType | None:
    """Return the function that a program has written, of one that was made of it."""
    while not isinstance(function, FunctionType) or hasattr(function, "rowwise"):
        if isinstance(function, partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif hasattr(function, "rowwise"):
            function = function.rowwise
        else:
            return None
    return function


def _all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _all_code(each)


def _is_simple(value: object) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_simple, value))
    return isinstance(value, _SIMPLE)


def refuse_changes(variables: list[FunctionVariable]) -> None:
    """Raise BuildError if a variable has another value than from the beginning."""
    for each in variables:
        now = each.now()
        # By identity first: NaN is not equal to itself.
        if now is not each.value and (type(now) is not type(each.value) or now != each.value):
            raise BuildError(
                f"the function reads the variable {each.name!r}, which was {each.value!r:.80} when it was given to the "
                f"view, and is {now!r:.80} now: what the view has computed before would not match. A default keeps the "
                f"value, as in `lambda r, {each.name}={each.name}: ...`"
            )
