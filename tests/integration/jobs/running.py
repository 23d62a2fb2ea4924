"""Run a graph job in this process, and write the graphs and changes that it reads."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from differential.jobs.command_line import parse
from differential.jobs.entry import check, task_of
from differential.jobs.gathered import Delta
from differential.jobs.interrupt import Interrupt
from differential.jobs.job import Job
from differential.jobs.program import JobOutcome, JobRun
from tests.examples_loading import EXAMPLES, example_module
from timely import Config, execute
from timely.services import Display

DEBIAN = EXAMPLES / "data" / "debian-bookworm.tsv.gz"
UPGRADE = EXAMPLES / "data" / "debian-to-trixie.tsv.gz"
ENRON = EXAMPLES / "data" / "email-enron.txt.gz"

Edge = tuple[Any, ...]


def job(name: str) -> Job:
    """Return the job of an example."""
    found = example_module(name).JOB
    assert isinstance(found, Job)
    return found


def outcome(name: str, arguments: Sequence[str | Path], workers: int = 1) -> tuple[JobOutcome, list[tuple[Any, Delta]]]:
    """Run a job on threads; check its answer from scratch. Return the outcome and how the answer changed."""
    options = parse(job(name), [*map(str, arguments), "--check"], name)
    task = task_of(job(name), options, Interrupt())
    deltas: list[tuple[Any, Delta]] = []

    def program(worker: Any) -> JobOutcome | None:
        return JobRun(worker, task, Display(False), lambda label, delta: deltas.append((label, delta)))()

    found, *_ = execute(program, Config(workers=workers))
    assert found is not None
    check(task, found)
    return found, deltas


def head(source: Path, path: Path, count: int) -> list[Edge]:
    """Write the first edges of a compressed file to `path`, and return them as text."""
    with gzip.open(source, "rt") as lines:
        kept = list(islice((line for line in lines if not line.startswith("#")), count))
    path.write_text("".join(kept))
    return [tuple(line.split()) for line in kept]


def write_changes(path: Path, edges: Sequence[Edge], count: int, seed: int = 0) -> Path:
    """Write changes of a graph: each removes an edge, or adds one, often against the direction of another."""
    random, present = Random(seed), list(edges)
    nodes = sorted({node for edge in edges for node in edge[:2]})
    lines = []
    for epoch in range(count):
        if present and random.random() < 0.5:
            gone = present.pop(random.randrange(len(present)))
            lines.append((epoch // 3, "-", *gone))
        else:
            source, target, *weight = random.choice(edges)
            new = (target, source if random.random() < 0.7 else random.choice(nodes), *weight)
            present.append(new)
            lines.append((epoch // 3, "+", *new))
    return write_lines(path, lines)


def write_lines(path: Path, rows: Iterable[Iterable[Any]]) -> Path:
    """Write rows of fields separated by tabs; return the path."""
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    return path
