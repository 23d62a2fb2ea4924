"""Where in the program an error was raised."""

from __future__ import annotations

from timely.lowlevel import Origin


def raised(error: BaseException | None) -> Origin | None:
    """Return the innermost line of the program in the traceback of an error; None if there is none.

    >>> raised(ValueError("no traceback")) is None
    True
    """
    trace = None if error is None else error.__traceback__
    found = None
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if module not in ("timely", "differential", "threading"):
            found = Origin(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return found
