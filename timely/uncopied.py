"""Handles of what one worker runs, which are neither copied nor pickled.

A copy would be a second name for the same counts, and another process has no use for either. `copyreg` has the rule for
each class, so that it applies to classes that are compiled, too, and costs nothing otherwise.
"""

from __future__ import annotations

import copyreg
from typing import NoReturn


def refuse_copies(*kinds: type) -> None:
    """Have `copy` and `pickle` raise TypeError for instances of these classes.

    >>> import copy
    >>> class Handle:
    ...     "Something of a worker."
    >>> refuse_copies(Handle)
    >>> copy.copy(Handle())
    Traceback (most recent call last):
    ...
    TypeError: a Handle belongs to its worker, and cannot be copied or pickled
    """
    for kind in kinds:
        copyreg.pickle(kind, _refuse)


def _refuse(handle: object) -> NoReturn:
    name = type(handle).__name__
    article = "an" if name[0] in "AEIOU" else "a"
    raise TypeError(f"{article} {name} belongs to its worker, and cannot be copied or pickled")
