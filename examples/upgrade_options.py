"""The command line of `upgrade.py`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import debian

from differential.jobs import at_least
from differential.jobs.command_line import add_output, options_from, parser_of

WITHOUT_TABLE = "the four answers have no columns in common; --json FILE writes them"

WATCHED = ["libssl3", "libssl3t64", "python3"]

DESCRIPTION = """\
Replay the upgrade of a whole Linux distribution, Debian bookworm to trixie: 19,521 steps, each the migration of one
source package, change a graph of 279,192 dependencies. After every step these answers are up to date:
  components  weakly connected components: their number, and the size of the largest
  cycles      strongly connected components of more than one package: their number, and the members of the largest
  watch       for each watched package, the number of packages that depend on it, directly or indirectly
  top         the ten packages on which most others depend directly
The answers are the same for any number of processes, of workers, and of steps in a batch."""

EPILOG = """\
Latency is the time from inserting a batch until all answers are final, divided by the number of steps in the batch.
Differences are the updates (record, step, diff), with equal ones added up, of the collections behind the answers: the
component of each package, the cycle of each package that is in one, the packages reached, and the degree of each
package.

examples:
  timely run -n 2 {script}                      (two processes)
  timely run -w 2 {script} --batch 100          (two threads, 100 steps at once)
  {program} --only watch --watch perl --print-changes --steps 300
  {program} --steps 2000 --check 500 --json report.json --plot upgrade.svg
"""


def parse(questions: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line, for these questions."""
    parser = parser_of(DESCRIPTION, EPILOG)
    defaults = {"only": list(questions), "initial": debian.INITIAL, "upgrade": debian.CHANGES}
    parser.set_defaults(steps=sys.maxsize, batch=1, check=0, quiet=False, **defaults)
    add = parser.add_argument
    add("--steps", type=at_least(0), metavar="N", help="stop after N steps (default: all)")
    add("--batch", type=at_least(1), metavar="B", help="insert B steps at once, each in its own epoch (default: 1)")
    add("--only", type=some_of(questions), metavar="A,B", help="maintain only these answers (default: all)")
    add(
        "--watch",
        action="append",
        metavar="PACKAGE",
        help=f"watch this package; may be repeated (default: {' '.join(WATCHED)})",
    )
    add(
        "--print-changes",
        action="store_true",
        help="print each change of a watched answer, with its step and the first package that changes in it",
    )
    add(
        "--check",
        type=at_least(1),
        metavar="K",
        help="recompute the answers with SciPy every K steps, at the start and at the end, and fail if they differ",
    )
    add(
        "--initial",
        type=Path,
        metavar="FILE",
        help="start from another graph (data/README.md describes the format; default: that of bookworm)",
    )
    add("--upgrade", type=Path, metavar="FILE", help="replay other steps (default: those to trixie)")
    add_output(
        parser,
        without={
            "--csv": WITHOUT_TABLE,
            "--parquet": WITHOUT_TABLE,
            "--quiet": "the answers are printed as they change",
        },
        changes="write how the watched answers change: lines of a step, '+' or '-', a package and a number",
        json="write answers and figures to FILE",
        plot="draw the latency of each step, and the answers, over the steps (.svg, .png, .pdf)",
    )
    options = options_from(parser, None)
    for option, given in (("--print-changes", options.print_changes), ("--changes", options.changes_to is not None)):
        if given and "watch" not in options.only:
            parser.error(f"{option} is about the answer 'watch', which --only leaves out")
    if options.watch and "watch" not in options.only:
        parser.error("--watch is about the answer 'watch', which --only leaves out")
    return options


def some_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Return the type of an argument that lists some of the known words, separated by commas."""

    def words(text: str) -> list[str]:
        given = text.split(",")
        for word in given:
            if word not in known:
                raise argparse.ArgumentTypeError(f"{word!r} is not one of {', '.join(known)}")
        return [word for word in known if word in given]

    return words
