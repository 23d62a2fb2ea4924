"""How much of the past a durable collection keeps: what one may read it as of."""

from __future__ import annotations

import re
from numbers import Integral
from typing import TYPE_CHECKING

from timely.errors import ConfigError

if TYPE_CHECKING:
    from differential.durable.manifest import Manifest

_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_MARKS = 64
"""The number of marks that divide the time that is kept."""

Marks = tuple[tuple[int, float], ...]


def seconds_of(text: str) -> float:
    """Return the seconds of a duration: a number and ms, s, min, h or d. Raises ConfigError if it is none.

    >>> seconds_of("200ms"), seconds_of("1h")
    (0.2, 3600.0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)", text) if isinstance(text, str) else None
    if match is None:
        raise ConfigError(f"{text!r} is not a duration: give a number and {', '.join(_UNITS)}, such as '1h'")
    return float(match[1]) * _UNITS[match[2]]


class Keep:
    """Retention: everything (None), a number of epochs before the last one (an integer), or by age (such as "1h").

    Ages are those of the clock. If it jumps, more or less of the past is kept; what is kept is right.

    >>> Keep("1h").seconds, Keep(10).epochs
    (3600.0, 10)
    """

    def __init__(self, keep: int | str | None) -> None:
        self.epochs = int(keep) if isinstance(keep, Integral) and not isinstance(keep, bool) else None
        self.seconds = seconds_of(keep) if isinstance(keep, str) else None
        is_one = keep is None or self.seconds is not None or self.epochs is not None
        if not is_one or (self.epochs is not None and self.epochs < 0):
            raise ConfigError(f"keep={keep!r} must be a number of epochs of at least 0, or a duration such as '1h'")

    def since(self, manifest: Manifest, now: float) -> int:
        """Return the first time that must stay readable."""
        if self.epochs is not None:
            return manifest.upper - 1 - self.epochs  # perhaps negative: the writer never moves `since` back
        if self.seconds is not None:
            # What was current `seconds` ago is at or after the last mark that is old enough.
            old = [upper for upper, at in manifest.marks if at <= now - self.seconds]
            return max(old, default=0) - 1
        return 0

    def marked(self, marks: Marks, upper: int, now: float) -> Marks:
        """Return the marks after an append at `now`: without those that are no longer needed."""
        if self.seconds is None:
            return ()
        old = [mark for mark in marks if mark[1] <= now - self.seconds]
        kept = (*old[-1:], *(mark for mark in marks if mark not in old))  # `since` reads the last old one only
        # A negative difference means that the clock was set back.
        is_due = not kept or not 0 <= now - kept[-1][1] < self.seconds / _MARKS
        return (*kept, (upper, now)) if is_due else kept
