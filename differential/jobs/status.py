"""How a job ends: its exit status, and the one line that it prints if it fails."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

from timely import fail
from timely.errors import ConfigError, DataError, OperatorError
from timely.services import empty_standard_output

INTERRUPTED = 130
"""The exit status after Ctrl-C."""


class CheckError(Exception):
    """An answer differs from the one computed from scratch."""


def status_of(name: str, body: Callable[[], object]) -> int:
    """Run a job; return its exit status: 0, 130 after Ctrl-C, or another after a line about what is wrong.

    >>> status_of("job", lambda: None)
    0
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for names that the locale cannot write
    try:
        body()
    except BrokenPipeError:
        empty_standard_output()
        return fail(f"{name}: standard output was closed before the job had ended")
    except (DataError, CheckError, ConfigError, OperatorError) as error:
        # Where an operator refuses what it received, whoever gave the job its data needs the reason alone.
        reason = error.__cause__ if isinstance(error, OperatorError) else error
        if not isinstance(reason, (DataError, CheckError, ConfigError)):
            raise
        empty_standard_output()
        return fail(f"{name}: {reason}")
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0
