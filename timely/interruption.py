"""An interrupt that came while compiled code ran, told from an error of that code.

The system's signal is heeded when the interpreter next looks. Where that is inside a compiled function that goes on to
return its result, as it does between a loop over rows and the making of its arrays, Python finds a result and an
exception at once: it raises a `SystemError` about the function, with what the handler raised as its cause. Whoever
reports errors asks here first, so that an interrupt ends a run as an interrupt.

>>> error = SystemError("a function returned a result with an exception set")
>>> error.__cause__ = KeyboardInterrupt()
>>> interruption(error)
KeyboardInterrupt()
>>> interruption(SystemError("something else"))
"""

from __future__ import annotations


def interruption(error: BaseException) -> BaseException | None:
    """Return the `KeyboardInterrupt`, or the `SystemExit` of a handler, that a `SystemError` stands for, if it does."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__ or cause.__context__
    return cause if cause is not error and not isinstance(cause, Exception) else None
