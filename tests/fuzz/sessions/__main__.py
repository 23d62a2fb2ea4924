"""Run random programs of sessions: `python -m tests.fuzz.sessions --cases 1000 --seed 1`.

Each case has a seed of its own, which is printed if the case fails, after the smallest program that fails in the same
way. `--cases 1 --seed N` runs it again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.fuzz.programs import command
from tests.fuzz.sessions.drawing import draw
from tests.fuzz.sessions.running import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process; return the exit status."""
    return command("tests.fuzz.sessions", __doc__, draw, run, arguments, steps=24)


if __name__ == "__main__":
    sys.exit(main())
