"""Capture a changing collection, and replay it in another program with a different number of workers.

    timely run -n 2 examples/capture.py write /tmp/degrees
    timely run -n 3 examples/capture.py read /tmp/degrees

The first program counts the edges of each node of a changing graph, and captures the counts in one file for each
worker. The second program reads all files and prints how many nodes have each degree at the end. The answers are the
same for any number of workers.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from differential import new_input, replay_into
from timely import Worker, execute, fail
from timely.capture import EventFileReader, EventFileWriter

NODES, EDGES, EPOCHS = 50, 200, 20


def write(worker: Worker, directory: Path) -> None:
    """Capture the degrees of a random graph that changes in each epoch."""
    with worker.dataflow() as scope:
        edges, graph = new_input(scope)
        graph.count().capture_into(EventFileWriter(directory / f"{worker.index}.events"))
    if worker.index == 0:
        source, target = np.random.default_rng(7).integers(0, NODES, (2, EDGES + EPOCHS))
        edges.insert(source[:EDGES], target[:EDGES])
        for epoch in range(EPOCHS):
            edges.advance_to(epoch + 1)
            edges.remove(int(source[epoch]), int(target[epoch]))
            edges.insert(int(source[EDGES + epoch]), int(target[EDGES + epoch]))
    edges.close()


def read(worker: Worker, directory: Path) -> None:
    """Print how many nodes have each degree."""
    sources = [EventFileReader(path) for path in files(directory)]
    with worker.dataflow() as scope:
        degrees = replay_into(scope, sources)
        answer = degrees.map(lambda node, degree: degree).count().output()
    worker.step_while(lambda: not answer.done())
    for (degree, nodes), _ in sorted(answer.contents().items()):
        print(f"degree {degree}: {nodes} nodes")


def files(directory: Path) -> list[Path]:
    """Return the files of a capture in a directory."""
    return sorted(directory.glob("*.events"))


def objection(command: str, directory: Path) -> str | None:
    """Make the directory for `write`; return the reason why the command cannot run, or None.

    Workers start after all processes have done this, so no process finds a file here that another has just made.
    """
    if command == "write":
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return f"cannot make the directory {directory}: {error.strerror}"
    found = [path.name for path in files(directory)]
    if command == "write" and found:
        return f"{directory} has files of a capture ({', '.join(found)}); remove them, or write somewhere else"
    if command == "read" and not found:
        return f"{directory} has no files of a capture (*.events)"
    return None


def main() -> int:
    """Run the given command; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "read"])
    parser.add_argument("directory", type=Path, help="the directory of the files, one for each worker that writes")
    options = parser.parse_args()
    wrong = objection(options.command, options.directory)
    if wrong is not None:
        return fail(f"capture: {wrong}")
    command = write if options.command == "write" else read
    execute(lambda worker: command(worker, options.directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
