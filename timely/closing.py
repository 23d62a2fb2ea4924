"""Letting go of several things, whatever becomes of one of them.

A file that cannot be written to its end, or a connection that has broken, must not keep other files and connections
open. So all are closed, and then what the first one raised is raised.

>>> closed = []
>>> def broken():
...     raise OSError("the disk is full")
>>> close_all([broken, lambda: closed.append("the other file")])
Traceback (most recent call last):
    ...
OSError: the disk is full
>>> closed
['the other file']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


def close_all(closers: Iterable[Callable[[], object]]) -> None:
    """Call all functions in turn, also where one raises; then raise what was raised first.

    >>> close_all([lambda: print("one"), lambda: print("two")])
    one
    two
    """
    first: BaseException | None = None
    for close in closers:
        try:
            close()
        except BaseException as error:
            first = first or error
    if first is not None:
        raise first
