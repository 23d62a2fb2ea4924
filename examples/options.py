"""Types of arguments, for command lines that are refused before anything is run."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Number = TypeVar("Number", int, float)


def at_least(least: Number) -> Callable[[str], Number]:
    """Return the type of an argument that is a finite number, not below `least`, and a whole one if `least` is."""
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
    """Return the path of a file that can be written, as far as its directory tells; the type of an argument."""
    path = Path(text)
    if not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {path.parent}")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{path} is a directory")
    return path
