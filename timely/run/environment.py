"""Report environment variables that look like settings of this library but are unknown: a misspelt one has no effect.

Under `timely run` only the launcher reports them, and of several processes started by hand only the first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields

from timely.communication.notes import REPORT_VARIABLE
from timely.config import Config, variable
from timely.observe.notices import notify

STATE_VARIABLE = "TIMELY_STATE_DIR"
"""The variable by which `timely run --state DIR` passes the directory to the program."""

PREFIXES = ("TIMELY_", "DIFFERENTIAL_")

KNOWN = frozenset(
    {variable(field.name) for field in fields(Config)}
    | {REPORT_VARIABLE, "TIMELY_LIFELINE", "TIMELY_PREFIX", STATE_VARIABLE, "TIMELY_COMPILE", "TIMELY_KERNELS"}
    | {"TIMELY_LIVE_TOKEN", "TIMELY_LIVE_CERTIFICATE", "TIMELY_LIVE_KEY"}
    | {"DIFFERENTIAL_CACHE_DIR", "DIFFERENTIAL_KERNELS"}
)
"""All variables that the packages, or their builds, read."""

_reported: set[str] = set()


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return a line for each unknown variable that begins with one of `PREFIXES`.

    >>> unknown_variables({"TIMELY_STALL": "5", "TIMELY_WORKERS": "2", "HOME": "/root"})
    ['unknown variable TIMELY_STALL: did you mean TIMELY_STALL_SECONDS?']
    """
    lines = []
    for name in sorted(name for name in environ if name.startswith(PREFIXES) and name not in KNOWN):
        from difflib import get_close_matches

        close = get_close_matches(name, sorted(KNOWN), 1, cutoff=0.7)
        lines.append(f"unknown variable {name}" + (f": did you mean {close[0]}?" if close else " is ignored"))
    return lines


def report_unknown_variables(config: Config) -> None:
    """Print a line on stderr for each unknown variable, once per run."""
    if REPORT_VARIABLE in os.environ or config.process:
        return
    for line in unknown_variables(os.environ):
        if line not in _reported:
            _reported.add(line)
            notify(line)
