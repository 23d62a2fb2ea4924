"""Run random programs of sessions: `python -m tests.fuzz.sessions --cases 1000 --seed 1`.

Each case has a seed of its own, which is printed if the case fails, after the smallest program that fails in the same
way. `--cases 1 --seed N` runs it again.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections.abc import Sequence

from tests.fuzz.sessions.drawing import draw
from tests.fuzz.sessions.running import run, shrunk


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sessions", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many programs (default: 1000)")
    parser.add_argument("--seed", type=int, help="the seed of the first; others follow it (default: a random one)")
    parser.add_argument("--steps", type=int, default=24, help="how many steps a program has (default: 24)")
    parser.add_argument("--workers", type=int, help="how many workers a session has (default: one or two)")
    parser.add_argument("--processes", action="store_true", help="let each worker but the first be a process")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first case that fails")
    options = parser.parse_args(arguments)
    first = random.randrange(1 << 31) if options.seed is None else options.seed
    failures = 0
    for seed in range(first, first + options.cases):
        program = draw(seed, options.workers, options.processes, options.steps)
        try:
            run(program)
        except Exception as error:
            failures += 1
            traceback.print_exception(error, limit=-6)
            print(shrunk(program, type(error)), file=sys.stderr)
            if not options.keep_going:
                break
    print(f"{options.cases} programs from seed {first}: {failures or 'none'} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
