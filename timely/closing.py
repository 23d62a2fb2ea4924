"""Close several things even if closing one of them fails.

A file that cannot be written completely, or a broken connection, must not keep other files and connections open. So all
of them are closed, and then the first error is raised.

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
    """Call every function in turn, even if one raises; then raise the first error.

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
