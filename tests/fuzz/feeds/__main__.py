"""Run random programs of sessions with sources: `python -m tests.fuzz.feeds --cases 1000 --seed 1`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.fuzz.feeds.drawing import draw
from tests.fuzz.feeds.running import run
from tests.fuzz.programs import command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process; return the exit status."""
    return command("tests.fuzz.feeds", __doc__, draw, run, arguments, steps=40)


if __name__ == "__main__":
    sys.exit(main())
