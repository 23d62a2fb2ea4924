"""Refuse what an algorithm cannot take as edges or nodes."""

from __future__ import annotations

from typing import Any

from differential.lowlevel import check_collections, check_rows


def check_inputs(name: str, **given: Any) -> None:
    """Raise BuildError unless each argument of the algorithm `name` is a collection, or an arrangement of one.

    Algorithms take columns by their positions. So a collection that knows names must have its columns in the order of
    its table, where the first one need not be the key.
    """
    check_collections(name, **given)
    _check_positions(name, given)


def check_records(name: str, **given: Any) -> None:
    """Raise BuildError as `check_inputs` does, and for an arrangement."""
    check_rows(name, **given)
    _check_positions(name, given)


def _check_positions(name: str, given: dict[str, Any]) -> None:
    for value in given.values():
        refuse = getattr(value, "refuse_positions", None)
        if refuse is not None:
            refuse(name)
