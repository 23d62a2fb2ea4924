"""Send random signals to runs of `timely` at random moments: `python -m tests.fuzz.signals --runs 500 --seed 0`.

Each run is drawn from its number; `--seed N` begins with that of number N. Faults are printed with their number, and
the exit status is 1 if there are any. A machine that is busy has more time, in proportion to its load.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.fuzz.signals.cases import Case, Fault, Outcome
from tests.integration.launcher.launching import PROMPT, signals_enabled


def main() -> int:
    """Run the cases that the arguments ask for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.signals", description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first (default: 0)")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (default: 1)")
    parser.add_argument(
        "--prompt", type=float, default=PROMPT, help=f"seconds in which a run has to end (default: {PROMPT:g})"
    )
    options = parser.parse_args()

    def outcome(number: int) -> Outcome:
        try:
            return Case.drawn(number).run(options.prompt)
        except Fault as fault:
            print(f"run {number}: {fault}", flush=True)
            return Outcome("fault", 0.0)

    with signals_enabled(), ThreadPoolExecutor(options.jobs) as pool:  # here, since only the main thread can
        outcomes = list(pool.map(outcome, range(options.seed, options.seed + options.runs)))
    numbers = Counter(outcome.name for outcome in outcomes)
    counts = ", ".join(f"{numbers[name]} {name}" for name in ("complete", "ended", "fault"))
    slowest = max((outcome.seconds for outcome in outcomes if outcome.name == "ended"), default=0.0)
    print(f"{len(outcomes)} runs: {counts}s; the slowest of those that ended took {slowest:.1f} s")
    return int(numbers["fault"] > 0)


if __name__ == "__main__":
    sys.exit(main())
