"""Run random programs for a chosen time or number: `python -m tests.soak --minutes 60`, or `--programs 2000`.

A seed is some twenty scenarios; it is printed when it begins, and `--seed` starts with it again. The first failure ends
the run, and the smallest scenario that fails in the same way is printed as a program. `--count` prints at the end how
often each operator was drawn, and how often each event happened.
"""

from __future__ import annotations

import argparse
import math
import random
import signal
import sys
import time
from random import Random
from types import FrameType

from tests.oracle.counts import Counts
from tests.oracle.drawing import Drawing
from tests.oracle.scenario import check
from tests.oracle.shrink import check_and_shrink

SCENARIOS = 20
MOST_PROGRAMS = 10


def run(number: int, counts: Counts | None = None) -> int:
    """Run the scenarios of a seed; return how many programs they had."""
    drawing = Drawing(Random(number))
    programs = 0
    for _ in range(SCENARIOS):
        scenario = drawing.scenario(2 + number % 4, MOST_PROGRAMS, 6 + number % 11, (2, 2, 5)[number % 3])
        check_and_shrink(scenario, check if counts is None else counts.run)
        programs += len(scenario.programs)
    return programs


def main() -> int:
    """Run one seed after the other until the limit is reached, or until interrupted; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, help="stop after this many minutes (default: 60)")
    parser.add_argument("--programs", type=int, help="stop after this many programs")
    parser.add_argument(
        "--seed",
        type=int,
        default=random.randrange(1 << 31),
        help="the first; others follow it (default: a random one)",
    )
    parser.add_argument("--count", action="store_true", help="print how often what was drawn and happened")
    options = parser.parse_args()
    if options.minutes is None and options.programs is None:
        options.minutes = 60.0
    end = math.inf if options.minutes is None else time.monotonic() + 60 * options.minutes
    most = math.inf if options.programs is None else options.programs
    number, programs = options.seed, 0
    counts = Counts() if options.count else None
    interrupts: list[int] = []

    def interrupt(signum: int, frame: FrameType | None) -> None:
        interrupts.append(signum)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        # An exception raised during garbage collection is printed and lost, so `interrupts` notes the signal too.
        while programs < most and time.monotonic() < end and not interrupts:
            print(f"seed {number}", file=sys.stderr, flush=True)
            programs += run(number, counts)
            number += 1
    except KeyboardInterrupt:
        print(f"interrupted in seed {number}", file=sys.stderr)
    if counts is not None:
        print(counts)
    print(f"{programs} programs of {number - options.seed} seeds were right")
    return 128 + signal.SIGINT if interrupts else 0


if __name__ == "__main__":
    sys.exit(main())
