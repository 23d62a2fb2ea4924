"""Run random programs of durable collections: `python -m tests.fuzz.durable --cases 1000 --seed 1`.

Each case has a seed of its own, which decides what is drawn. Appends run in threads, so a case that fails may need
several attempts to fail again. It is printed with all its runs.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence

from tests.fuzz.durable.running import Case, Wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.durable", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many programs (default: 1000)")
    parser.add_argument("--seed", type=int, help="the seed of the first; others follow it (default: a random one)")
    options = parser.parse_args(arguments)
    first = random.randrange(1 << 31) if options.seed is None else options.seed
    failures = 0
    for seed in range(first, first + options.cases):
        try:
            Case(seed).run()
        except Wrong as error:
            failures += 1
            print(error, file=sys.stderr)
    print(f"{options.cases} programs from seed {first}: {failures or 'none'} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
