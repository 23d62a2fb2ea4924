"""Types of arguments, which check a command line before anything runs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Number = TypeVar("Number", int, float)


def at_least(least: Number) -> Callable[[str], Number]:
    """Return the type of an argument that is a finite number of at least `least`, and an integer if `least` is one."""
    kind = type(least)
    what = "whole number" if kind is int else "number"

    def number(text: str) -> Number:
        try:
            given = kind(text)
        except ValueError:
            given = kind(least - 1)
        if given < least or not math.isfinite(given):
            raise argparse.ArgumentTypeError(f"{text!r} is not a {what} of at least {least}")
        return given

    return number


def new_file(text: str) -> Path:
    """Return the path of a file whose directory exists; the type of an argument."""
    path = Path(text)
    if not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {path.parent}")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{path} is a directory")
    return path
