"""The command that runs random programs, and what it prints of one that fails: the smallest that fails in the same way.

A program is a NamedTuple with `steps`, and each has a seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from timely.errors import SessionError

P = TypeVar("P", bound=Any)


class Wrong(AssertionError):
    """A session differs from its twin."""


def drops(running: Any, name: str) -> bool:
    """Drop a table or view of `running.db`; return whether that succeeds, as it must unless another one reads it."""
    refused = ""
    try:
        running.db.drop(name)
    except SessionError as error:
        refused = str(error)
    readers = running.readers(name)
    running.expect(bool(readers) == ("cannot be dropped" in refused), f"drop of {name}, read by {readers}: {refused}")
    return not readers


def run_steps(running: Any, steps: Sequence[Any]) -> None:
    """Run each step by the method that has its name, and close the session `running.db` at the end."""
    try:
        for number, step in enumerate(steps):
            running.number = number
            getattr(running, f"do_{step[0].replace(' ', '_')}")(*step[1:])
    except BaseException as error:
        error.add_note(f"in step {running.number}: {steps[running.number]}")
        raise
    finally:
        running.db.close()


def command(
    package: str,
    description: str | None,
    draw: Callable[[int, int | None, bool, int], P],
    run: Callable[[P], None],
    arguments: Sequence[str] | None,
    steps: int,
) -> int:
    """Run the programs of some seeds, as arguments of the command line ask for; return the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description=description)
    parser.add_argument("--cases", type=int, default=1000, help="how many programs (default: 1000)")
    parser.add_argument("--seed", type=int, help="the seed of the first; others follow it (default: a random one)")
    parser.add_argument("--steps", type=int, default=steps, help=f"how many steps a program has (default: {steps})")
    parser.add_argument("--workers", type=int, help="how many workers a session has (default: a random number)")
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
            print(shrunk(program, run, type(error)), file=sys.stderr)
            if not options.keep_going:
                break
    print(f"{options.cases} programs from seed {first}: {failures or 'none'} failed")
    return 1 if failures else 0


def shrunk(program: P, run: Callable[[P], None], kind: type[BaseException]) -> P:
    """Return the program without the steps that it fails without, in the same way."""
    size = len(program.steps) // 2
    while size:
        start = 0
        while start < len(program.steps):
            smaller = program._replace(steps=(*program.steps[:start], *program.steps[start + size :]))
            if smaller.steps and _fails(smaller, run, kind):
                program = smaller
            else:
                start += size
        size //= 2
    return program


def _fails(program: P, run: Callable[[P], None], kind: type[BaseException]) -> bool:
    try:
        run(program)
    except kind:
        return True
    except Exception:
        return False
    return False
