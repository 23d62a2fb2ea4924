"""The one signature of a kernel, read off its annotations: what it receives, and what it returns."""

from __future__ import annotations

from types import FunctionType
from typing import NamedTuple

RESULTS = {"Ints": 1, "Table": 2}
"""The annotations of arrays of int64 that kernels return, and how many dimensions these have."""
ARRAYS = {**RESULTS, "Batches": 2, "Times": 2}
"""The same, with those of tables for which Python may pass a tuple."""
SCALARS = ("int", "float", "bool")
"""The annotations of single values: int64, float64 and booleans."""

_ARGUMENTS = (*ARRAYS, "int", "float")


class Signature(NamedTuple):
    """The annotations of a kernel's arguments and of its result.

    The annotation of a result is one of `RESULTS` or `SCALARS`, `None`, or a tuple of these. It is empty if there is
    none.
    """

    arguments: tuple[str, ...]
    result: str

    @staticmethod
    def of(function: FunctionType) -> Signature:
        """Return the signature of a function; raise TypeError if an annotation is none that kernels have."""
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        arguments = tuple(function.__annotations__.get(name, "") for name in names)
        for name, annotation in zip(names, arguments, strict=True):
            if annotation not in _ARGUMENTS:
                raise TypeError(
                    f"kernel {function.__qualname__}: the annotation of {name!r} must be one of "
                    f"{', '.join(_ARGUMENTS)}, as text (from __future__ import annotations); it is {annotation!r}"
                )
        signature = Signature(arguments, function.__annotations__.get("return", ""))
        if signature.result and (wrong := [each for each in signature.results() if each not in (*RESULTS, *SCALARS)]):
            known = ", ".join((*RESULTS, *SCALARS))
            raise TypeError(
                f"kernel {function.__qualname__}: it can return {known}, a tuple of these, or "
                f"None, as text (from __future__ import annotations); not {wrong[0]!r}"
            )
        return signature

    def results(self) -> tuple[str, ...]:
        """Return the annotations of the values that are returned, none for `None`.

        >>> Signature(("int",), "tuple[Ints, int]").results()
        ('Ints', 'int')
        """
        if self.result == "None":
            return ()
        inside = self.result.removeprefix("tuple[").removesuffix("]")
        return tuple(each.strip() for each in inside.split(",")) if inside != self.result else (self.result,)

    def __str__(self) -> str:
        return f"({', '.join(self.arguments)}) -> {self.result}"
