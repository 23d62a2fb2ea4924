"""Where in the program an error was raised."""

from __future__ import annotations

from timely.lowlevel import Origin, raised_at


def raised(error: BaseException | None) -> Origin | None:
    """Return the innermost line of the program in the traceback of an error; None if there is none.

    >>> raised(ValueError("no traceback")) is None
    True
    """
    return None if error is None else raised_at(error.__traceback__)
