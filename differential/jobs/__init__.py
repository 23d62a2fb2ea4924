"""Graph jobs: programs that answer a question about anyone's graph, and keep the answer up to date.

    python -m differential.jobs components graph.tsv.gz changes.tsv --plot sizes.svg
    timely run -n 2 -m differential.jobs components graph.parquet --parquet labels.parquet

A job is a short program in `examples/`, which an installed package contains, too: a definition of the question, and a
`Job` that names its columns, checks it and draws it. This package is what jobs share: the command line, input in many
formats, changes, progress, output, pictures, and answers from scratch to check against. It needs the extra `jobs`.

Jobs that are not about a graph in a file share the command line, outputs and pictures; they need the extra only for
what draws, decompresses or checks, so that they run in an installation without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from differential.extra import needed_for
from differential.jobs.command_line import at_least
from differential.jobs.job import AddOption, Answer, Edges, Field, Inputs, Job, Nodes, Options, Shown
from differential.jobs.report import counted
from timely import fail
from timely.errors import ConfigError

__all__ = [
    "AddOption",
    "Answer",
    "Edges",
    "Field",
    "Inputs",
    "Job",
    "Nodes",
    "Options",
    "Shown",
    "at_least",
    "counted",
    "run",
]


def run(job: Job, arguments: Sequence[str] | None = None, program: str | None = None) -> int:
    """Run a job with the arguments of the command line, or with others; return the exit status."""
    try:
        with needed_for("a job about a graph"):
            from differential.jobs import entry
    except ConfigError as error:
        return fail(f"{job.name}: {error}")
    return entry.run(job, arguments, program)
