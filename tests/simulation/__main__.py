"""`python -m tests.simulation --steps N`: simulate N events of random programs, twice, and compare.

Each of the two simulations of `long_runs` runs for `N` events, in two processes whose strings hash differently. Both
must see the same events in the same order.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tests.simulation.long_runs import SIMULATIONS, long_run


def main() -> int:
    """Run the simulations that the command line names; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description="Simulate, check, and repeat.")
    parser.add_argument("--steps", type=int, default=100_000, help="events of each simulation (default 100,000)")
    parser.add_argument("--seed", type=int, default=0, help="the first program (default 0)")
    parser.add_argument("--once", choices=SIMULATIONS, help="run one simulation, once, and print its digest last")
    options = parser.parse_args()
    if options.once:
        print(long_run(options.once, options.steps, options.seed))
        return 0
    return max(compare(simulation, options.steps, options.seed) for simulation in SIMULATIONS)


def compare(simulation: str, steps: int, seed: int) -> int:
    """Run a simulation in two processes; 0 if both end well and saw the same."""
    command = [sys.executable, "-m", "tests.simulation", "--steps", str(steps), "--seed", str(seed)]
    runs = [
        subprocess.Popen(
            [*command, "--once", simulation],
            env=os.environ | {"PYTHONHASHSEED": str(number)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in (1, 2)
    ]
    printed = [run.communicate()[0].strip() for run in runs]
    if any(run.returncode for run in runs):
        return 1
    print(f"{simulation}: {printed[0]}")
    first, second = (text.split()[-1] for text in printed)
    if first != second:
        print(f"the same seed gave other events the second time: {first}, then {second}")
    return int(first != second)


if __name__ == "__main__":
    sys.exit(main())
