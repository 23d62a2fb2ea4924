"""Compare this checkout with another, piece by piece in turn: for machines whose speed changes.

    python -m benchmarks.paired ../before --only "bfs 100k/1M" --only "barrier 1 worker"

A process of each checkout loads the same graph, and they take turns: one makes some changes while the other waits,
then the other makes them. The medians of both are a pair. The figure is the median of the ratios of all pairs, this
checkout's time by the other's: below 1, this one is faster. Cases without a graph, and those of several workers, run as
a whole in turn. The answers are not checked.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time as clock
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from benchmarks import turns
from benchmarks.__main__ import WORKLOADS
from benchmarks.compiled import stale
from benchmarks.harness import ROOT, Case, Figures, at_least
from benchmarks.incremental import BATCH, BATCH_SIZE, INITIAL, SINGLE_MEDIAN
from timely.run.launched import INTERRUPTED

Measured = TypeVar("Measured")
ROW = "{:<34} {:<32}{:>5}{:>10}{:>10}{:>8}  {}"
ROUNDS = 30
SECONDS = 60.0
MOST, TURN_SECONDS = 40, 0.2
"""How often a piece of work is done in one turn, and about how long a turn may last if it is done several times."""
GRAPHS = ("degrees", "bfs", "wcc", "scc", "pagerank", "closure", "sssp", "triangles")
FIGURES = {turns.LOAD: (INITIAL, 1.0), turns.CHANGE: (SINGLE_MEDIAN, 1e6), turns.BATCH: (BATCH, 1e6 / BATCH_SIZE)}
"""The figure of each piece of work, and by what its seconds are multiplied."""
PLAYER = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
"""Runs a file, with packages from the current directory."""
RUN = """\
import json, sys
from benchmarks.harness import Case, run_case
print(json.dumps(run_case(Case(**json.loads(sys.argv[1])))))"""


class Checkout(NamedTuple):
    """A directory, and the Python to run it with."""

    directory: Path
    python: Path

    @staticmethod
    def at(directory: Path) -> Checkout:
        """Return the checkout in a directory, with the Python of its `.venv` if it has one."""
        own = directory.resolve() / ".venv" / "bin" / "python"
        return Checkout(directory.resolve(), own if own.exists() else Path(sys.executable))

    def run(self, case: Case) -> Figures:
        """Run a case once; return its figures."""
        fields = ("name", "workload", "parameters", "processes", "workers")
        given = json.dumps({field: getattr(case, field) for field in fields})
        command = [str(self.python), "-c", RUN, given]
        done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{self.directory}: {case.name}\n{done.stderr}")
        return dict(json.loads(done.stdout))


class Player:
    """A process that loads and changes a graph, with the code of a checkout."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self._name = name
        self._process = process
        self.pieces: list[str] = json.loads(self._reply())

    @staticmethod
    @contextmanager
    def of(checkout: Checkout, case: Case) -> Iterator[Player]:
        """Provide a player of a case, which ends with the context."""
        command = [str(checkout.python), "-c", PLAYER, turns.__file__, case.workload, json.dumps(dict(case.parameters))]
        with subprocess.Popen(
            command, cwd=checkout.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                yield Player(f"{checkout.directory}: {case.name}", process)
            finally:
                process.terminate()

    def take_turn(self, piece: str, times: int) -> float:
        """Do a piece of work that many times; return the median of the seconds that it took."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{piece} {times}\n")
        self._process.stdin.flush()
        return float(statistics.median(json.loads(self._reply())))

    def _reply(self) -> str:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise SystemExit(f"{self._name}: ended with status {self._process.wait()}")
        return line


class Compared(NamedTuple):
    """A figure of two checkouts: the medians, and the median and quartiles of the ratios of all pairs."""

    figure: str
    pairs: int
    before: float
    after: float
    low: float
    ratio: float
    high: float

    @staticmethod
    def of(figure: str, pairs: Sequence[tuple[float, float]]) -> Compared:
        """Return what pairs show. The ratio of a rate is that of the time that it stands for.

        >>> Compared.of("s", [(2.0, 1.0), (4.0, 3.0), (5.0, 5.0)])
        Compared(figure='s', pairs=3, before=4.0, after=3.0, low=0.5, ratio=0.75, high=1.0)
        """
        before, after = zip(*pairs, strict=True)
        ratios = [first / second if at_least(figure) else second / first for first, second in pairs]
        low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else 3 * ratios
        return Compared(figure, len(pairs), statistics.median(before), statistics.median(after), low, middle, high)


def compare(case: Case, before: Checkout, after: Checkout, rounds: int, seconds: float) -> Iterator[Compared]:
    """Yield each figure of a case."""
    if case.workload in GRAPHS and case.processes * case.workers == 1:
        with Player.of(before, case) as other, Player.of(after, case) as this:
            for piece in other.pieces:
                figure, factor = FIGURES[piece]
                # Both do the same changes in a turn, as many as took a while when they were not measured.
                slowest = max(player.take_turn(piece, 1) for player in (other, this))
                turn = piece, max(1, min(MOST, int(TURN_SECONDS / slowest)))
                pairs = _pairs(lambda: other.take_turn(*turn), lambda: this.take_turn(*turn), rounds, seconds)  # noqa: B023
                yield Compared.of(figure, [(factor * first, factor * second) for first, second in pairs])
        return
    found = defaultdict[str, list[tuple[float, float]]](list)
    for first, second in _pairs(lambda: before.run(case), lambda: after.run(case), rounds, seconds):
        for figure in first.keys() & second.keys():
            found[figure].append((first[figure], second[figure]))
    yield from (Compared.of(figure, pairs) for figure, pairs in found.items() if all(map(all, pairs)))


def main() -> int:
    """Compare the cases that the command line selects; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paired", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="a checkout to compare with; the Python of its .venv runs it")
    parser.add_argument("--only", action="append", required=True, metavar="NAME", help="a case; may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"the most pairs of a figure (default {ROUNDS})")
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help=f"start no pair of a figure after this time (default {SECONDS:g})",
    )
    options = parser.parse_args()
    if not (options.other / "benchmarks" / "incremental.py").is_file():
        parser.error(f"{options.other} is not a checkout: it has no benchmarks/incremental.py")
    cases = {each.name: each for name in WORKLOADS for each in importlib.import_module(f"benchmarks.{name}").CASES}
    if unknown := [name for name in options.only if name not in cases]:
        parser.error(f"there is no case {unknown[0]!r}; there are {', '.join(cases)}")
    if complaint := stale():
        parser.error(complaint)
    before, after = Checkout.at(options.other), Checkout.at(ROOT)
    print(ROW.format("case", "figure", "pairs", "other", "this", "ratio", "of half the pairs"))
    try:
        for name in options.only:
            for each in compare(cases[name], before, after, options.rounds, options.seconds):
                medians, spread = (f"{each.before:.4g}", f"{each.after:.4g}"), f"{each.low:.3f} to {each.high:.3f}"
                print(ROW.format(name, each.figure, each.pairs, *medians, f"{each.ratio:.3f}", spread), flush=True)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _pairs(
    before: Callable[[], Measured], after: Callable[[], Measured], rounds: int, seconds: float
) -> list[tuple[Measured, Measured]]:
    """Return what both return in each round, at least one. Which of them begins alternates."""
    pairs: list[tuple[Measured, Measured]] = []
    end = clock.monotonic() + seconds
    while not pairs or (len(pairs) < rounds and clock.monotonic() < end):
        if len(pairs) % 2:
            second = after()
            pairs.append((before(), second))
        else:
            first = before()
            pairs.append((first, after()))
    return pairs


if __name__ == "__main__":
    sys.exit(main())
