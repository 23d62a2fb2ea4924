"""The two packages belong together: they are installed together, and compiled as one."""

from __future__ import annotations

from pathlib import Path

import timely


def check_beside(timely_file: str, differential_file: str) -> None:
    """Raise ImportError where the packages were not found in one directory.

    >>> check_beside("/here/timely/__init__.py", "/there/differential/__init__.py")
    Traceback (most recent call last):
    ImportError: timely was found in /here, but differential in /there; use both from one place: ...
    """
    homes = [Path(file).resolve().parents[1] for file in (timely_file, differential_file)]
    if homes[0] != homes[1]:
        raise ImportError(
            f"timely was found in {homes[0]}, but differential in {homes[1]}; use both from one place: start elsewhere "
            "than in a directory that has one of them, or install what is there ('pip install --editable .')"
        )


check_beside(str(timely.__file__), __file__)
