"""Load a graph and change it when it is this process's turn, for the program that started it (see `paired`).

It may run in an older checkout: of that it needs `incremental`, and a workload that calls its `measure`.
"""

from __future__ import annotations

import importlib
import json
import sys

from benchmarks import incremental
from benchmarks.graphs import ChangingGraph
from benchmarks.harness import Figures
from benchmarks.incremental import BATCH_SIZE, Definition, FromScratch, Session
from timely import Worker, execute_directly

LOAD, CHANGE, BATCH = "load", "change", "batch"


def main() -> None:
    """Take turns with the case that the arguments give: its workload, and its parameters as JSON."""
    workload, parameters = sys.argv[1:]

    def measure(
        definition: Definition,
        from_scratch: FromScratch,
        graph: ChangingGraph,
        singles: int,
        batches: int,
        at_hand: int | None = None,
    ) -> Figures:
        pieces = [LOAD, *([CHANGE] if singles else []), *([BATCH] if batches else [])]
        execute_directly(lambda worker: incremental.warm_up(worker, definition))
        execute_directly(lambda worker: take_turns(worker, definition, graph, pieces))
        return {}

    incremental.measure = measure  # workloads import it from there
    importlib.import_module(f"benchmarks.{workload}").measure(**json.loads(parameters))


def take_turns(worker: Worker, definition: Definition, graph: ChangingGraph, pieces: list[str]) -> None:
    """Print which pieces of work there are, then follow the lines of the input.

    A line has a piece and a number: the piece is done that many times, and the seconds of each time are printed.
    """
    session = Session(worker, definition, graph)
    print(json.dumps(pieces), flush=True)
    for line in sys.stdin:
        piece, times = line.split()
        seconds = []
        for _ in range(int(times)):
            if piece == LOAD:
                session.close()
                session = Session(worker, definition, graph)
                seconds.append(session.load())
            else:
                seconds.append(session.change({CHANGE: 1, BATCH: BATCH_SIZE}[piece]))
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main()
