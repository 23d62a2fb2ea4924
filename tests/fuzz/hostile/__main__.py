"""Pass hostile functions and columns to every operator: `python -m tests.fuzz.hostile --cases 100000`.

Each case is drawn from its number; `--seed N` begins with that of number N. Faults are printed with their number, and
the exit status is 1 if there are any. `--count` prints how often each hostility was right or refused.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.fuzz.hostile.cases import Case, Fault


def main() -> int:
    """Run the cases that the arguments ask for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.hostile", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first (default: 0)")
    parser.add_argument("--count", action="store_true", help="print what came of each hostility")
    parser.add_argument("--faults", type=int, default=10, help="stop after this many faults (default: 10)")
    options = parser.parse_args()
    outcomes: Counter[tuple[str, str]] = Counter()
    faults = 0
    for number in range(options.seed, options.seed + options.cases):
        case = Case.drawn(number)
        try:
            outcomes[case.hostility.name, case.run()] += 1
        except Fault as fault:
            faults += 1
            outcomes[case.hostility.name, "fault"] += 1
            print(f"case {number}: {fault}", flush=True)
            if faults >= options.faults:
                break
    if options.count:
        for (name, outcome), count in sorted(outcomes.items()):
            print(f"{name:32} {outcome:8} {count}")
    total = Counter(outcome for _, outcome in outcomes.elements())
    print(f"{total.total()} cases: {total['right']} right, {total['refused']} refused, {faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
