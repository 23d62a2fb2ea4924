"""Refuse arguments that an operator cannot use, with the line of the program that passes them."""

from __future__ import annotations

import re
from typing import Any

from timely.lowlevel import refusal


def check_collections(name: str, **given: Any) -> None:
    """Raise BuildError unless each of the arguments of the operator `name` is a collection, or an arrangement of one.

    >>> check_collections("bfs", roots=[1])
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: bfs (at ...): `roots` must be a collection, not [1]; Collection.of(scope, ...) makes one
    """
    for role, value in given.items():
        if isinstance(value, type) or not hasattr(value, "scope") or not hasattr(value, "keys"):
            shown, made = _described(value)
            raise refusal(name, f"`{role}` must be a collection, not {shown}; {made}")


def is_url(path: str) -> bool:
    """Return whether a path of a file is the address of something else; one of `pathlib` has lost a slash.

    >>> is_url("s3://bucket/db"), is_url("s3:/bucket/db"), is_url("C:/db"), is_url("./s3:/db")
    (True, True, False, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path) is not None


def _described(value: Any) -> tuple[str, str]:
    """Return what a value is that is not a collection, and how to get one."""
    if isinstance(value, type):
        return f"{value!r:.80}", "Collection.of(scope, ...) makes one"
    if hasattr(value, "to_pandas") and isinstance(label := getattr(value, "name", None), str):
        # A table or view of a session, whose own description would have all of its rows.
        return f"{type(value).__name__.lower()} {label!r}", f"a definition receives its rows, as t.{label}"
    made = "Collection(stream) makes one of updates" if hasattr(value, "tee") else "Collection.of(scope, ...) makes one"
    return f"{value!r:.80}", made


def check_rows(name: str, **given: Any) -> None:
    """Raise BuildError unless each of the arguments of the operator `name` is a collection, not an arrangement.

    >>> check_rows("bfs", roots=None)
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: bfs (at ...): `roots` must be a collection, not None; Collection.of(scope, ...) makes one
    """
    check_collections(name, **given)
    for role, value in given.items():
        if hasattr(value, "as_collection"):
            raise refusal(name, f"`{role}` must be a collection, not an arrangement; its as_collection() is one")
