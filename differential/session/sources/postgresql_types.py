"""Which types of PostgreSQL fill which columns, and how their texts are parsed.

>>> of_postgresql("bool")("t"), of_postgresql("int64?")(None), of_postgresql("bytes")("\\\\x6162")
(True, None, b'ab')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential.session.sources.convert import Parse, family, may_be_null, of_text

_INTEGERS = ("int2", "int4", "int8", "oid")
FITTING: dict[str, tuple[str, ...]] = {
    "int64": _INTEGERS,
    "uint64": (*_INTEGERS, "numeric"),
    "float64": ("float4", "float8"),
    "float32": ("float4",),
    "bool": ("bool",),
    "decimal": (*_INTEGERS, "numeric"),
    "date": ("date",),
    "time": ("time",),
    "bytes": ("bytea",),
    "value": ("json", "jsonb"),
}
"""The types of PostgreSQL whose values a family of columns can hold. Text columns hold all types, as texts."""


def fits(of: str, given: str) -> bool:
    """Return whether a column of a type can hold the values of a type of PostgreSQL.

    >>> fits("timestamp[us, UTC]", "timestamptz"), fits("int64", "text"), fits("text?", "uuid")
    (True, False, True)
    """
    kind = family(of)
    if kind == "text":
        return True
    if kind == "timestamp":
        return given == ("timestamptz" if "," in of else "timestamp")
    return given in FITTING.get(kind, ())


def of_postgresql(of: str) -> Parse | None:
    """Return a function that parses a text of PostgreSQL (None for a null) as a value of a type, if there is one."""
    kind = family(of)
    parse: Callable[[str], Any] | None
    if kind == "bytes":
        parse = _bytes
    else:
        parse = of_text(of.removesuffix("?"))
    if parse is None:
        return None
    takes_nulls, parse_text = may_be_null(of), parse

    def parsed(value: str | None) -> Any:
        if value is None:
            if takes_nulls:
                return None
            raise TypeError("a null")
        return parse_text(value)

    return parsed


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("\\x"))
