"""Count the instructions of one change, by function: the same on a busy machine as on a quiet one.

    python -m benchmarks.instructions bfs
    python -m benchmarks.instructions bfs --of Tracker___propagate

Callgrind, of valgrind, runs changes of a small graph and counts. The table has the functions of compiled modules
(`TIMELY_COMPILE=1`): how often one change calls each, and how many instructions these calls take, with all that they
call. `--of` shows what calls a function, and what that calls. Kernels have addresses in place of names. Time that is
spent waiting for memory does not show.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks import bfs, degrees
from benchmarks.graphs import Ints, RandomGraph
from benchmarks.incremental import Definition, Fingerprint, Session
from differential.graphs import strongly_connected_components, weakly_connected_components
from timely import Worker, execute_directly

CASES: dict[str, tuple[Definition, int, int]] = {
    "bfs": (bfs.definition, 10_000, 100_000),
    "degrees": (degrees.distribution, 10_000, 100_000),
    "wcc": (weakly_connected_components, 10_000, 100_000),
    "scc": (strongly_connected_components, 5_000, 10_000),
}
WARM_UP = 300
LEAST = 20
"""Fewer instructions for each change are not shown."""
_COMPILED = re.compile(r"CPyDef_|[a-z_]+___[A-Z]")
_NAME = re.compile(r"\((\d+)\)(?: (.*))?")


class Call(NamedTuple):
    """Who calls whom how often, and how many instructions that takes."""

    caller: str
    callee: str
    calls: int
    instructions: int


class Counted(NamedTuple):
    """What callgrind has counted: each function's own instructions, and the calls."""

    own: dict[str, int]
    calls: list[Call]

    def totals(self) -> dict[str, tuple[int, int]]:
        """Return for each function how often it is called, and its instructions with those of what it calls."""
        times: defaultdict[str, int] = defaultdict(int)
        instructions = defaultdict(int, self.own)
        for call in self.calls:
            times[call.callee] += call.calls
            instructions[call.caller] += call.instructions
        return {name: (times[name], count) for name, count in instructions.items()}


def counted(lines: Iterable[str]) -> Counted:
    """Read a file of callgrind's.

    >>> found = counted(["fn=(1) outer", "7 10", "cfn=(2) inner", "calls=2 0", "7 60", "fn=(2)", "3 60"])
    >>> found.totals()
    {'outer': (0, 70), 'inner': (2, 60)}
    """
    names: dict[str, str] = {}

    def name_of(text: str) -> str:
        match = _NAME.fullmatch(text)
        assert match is not None, text
        return names.setdefault(match[1], match[2] or "")

    own: defaultdict[str, int] = defaultdict(int)
    calls: list[Call] = []
    function = callee = ""
    times = 0
    for line in lines:
        if line.startswith("fn="):
            function = name_of(line[3:].rstrip())
        elif line.startswith("cfn="):
            callee = name_of(line[4:].rstrip())
        elif line.startswith("calls="):
            times = int(line[6:].split()[0])
        elif function and line[:1] in set("0123456789+-*") and len(fields := line.split()) > 1:
            if times:
                calls.append(Call(function, callee, times, int(fields[1])))
                times = 0
            else:
                own[function] += int(fields[1])
    return Counted(dict(own), calls)


def table(found: Counted, changes: int, rows: int) -> Iterator[str]:
    """Yield the functions of compiled modules by the instructions that they take."""
    yield f"{sum(found.own.values()) / changes:12,.0f}  instructions of one change"
    known = [(name, *total) for name, total in found.totals().items() if _COMPILED.match(name)]
    for name, times, instructions in sorted(known, key=lambda each: -each[2])[:rows]:
        yield f"{instructions / changes:12,.0f}  in {times / changes:6.2f} calls of {name}"


def details(found: Counted, changes: int, part: str) -> Iterator[str]:
    """Yield what calls the functions whose name contains `part`, and what these call."""

    def line(instructions: int, times: int, text: str) -> str:
        return f"{instructions / changes:12,.0f}  in {times / changes:6.2f} calls {text}"

    calls = [call for call in found.calls if call.instructions >= LEAST * changes]
    calls.sort(key=lambda call: -call.instructions)
    for name, (times, instructions) in found.totals().items():
        if part in name:
            yield line(instructions, times, f"of {name}")
            yield from [
                line(call.instructions, call.calls, f"  by {call.caller}") for call in calls if call.callee == name
            ]
            yield from [
                line(call.instructions, call.calls, f"  to {call.callee}") for call in calls if call.caller == name
            ]


class Prepared(RandomGraph):
    """The random graph, with changes that are made beforehand: to make them is not counted."""

    def __init__(self, nodes: int, edges: int, changes: int) -> None:
        super().__init__(nodes, edges)
        self._prepared = [RandomGraph.changes(self, first, 1) for first in range(changes)]

    def changes(self, first: int, count: int) -> tuple[Ints, Ints, Ints]:
        return self._prepared[first]


class Unchecked(Fingerprint):
    """Of an answer that is not checked: `python -m benchmarks` does."""

    def add(self, columns: tuple[Any, ...], diffs: Ints) -> None:
        """Do nothing: to check is not counted."""


def run(case: str, changes: int) -> None:
    """Make changes, and have callgrind count while they are made."""
    definition, nodes, edges = CASES[case]

    def program(worker: Worker) -> None:
        session = Session(worker, definition, Prepared(nodes, edges, WARM_UP + changes))
        session.fingerprint = Unchecked()
        session.load()
        for _ in range(WARM_UP):
            session.change(1)
        counting("on")
        for _ in range(changes):
            session.change(1)
        counting("off")
        session.close()

    execute_directly(program)


def counting(state: str) -> None:
    """Switch callgrind on or off."""
    subprocess.run(["callgrind_control", "-i", state, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--changes", type=int, default=1000, metavar="N", help="how many changes to make (1000)")
    parser.add_argument("--rows", type=int, default=60, metavar="N", help="how many functions to show (60)")
    parser.add_argument(
        "--of", metavar="NAME", help="show what calls the functions with this in their names, and what they call"
    )
    parser.add_argument("--under-callgrind", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.under_callgrind:
        run(given.case, given.changes)
        return
    with TemporaryDirectory() as directory:
        file = Path(directory, "counts")
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={file}", sys.executable]
        command += ["-m", "benchmarks.instructions", given.case, "--changes", str(given.changes), "--under-callgrind"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            sys.exit("valgrind is needed: it is in the package of that name")
        if done.returncode or not file.exists():
            sys.exit(f"callgrind failed\n{done.stderr}")
        with file.open() as lines:
            found = counted(lines)
    shown = table(found, given.changes, given.rows) if given.of is None else details(found, given.changes, given.of)
    print("\n".join(shown) or f"no function has {given.of!r} in its name")


if __name__ == "__main__":
    main()
