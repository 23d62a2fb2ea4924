"""Run a job from the command line: read its options, start its workers, report, write, check and draw."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from differential.jobs.command_line import parse, program_of
from differential.jobs.files import write_changes
from differential.jobs.gathered import Delta, added_up
from differential.jobs.input.changes import OpenedChanges
from differential.jobs.input.faults import Faults
from differential.jobs.input.generate import PREFIX, Replacements
from differential.jobs.input.graph import open_graph
from differential.jobs.input.layout import InputLayout
from differential.jobs.input.open_changes import open_changes
from differential.jobs.interrupt import Interrupt
from differential.jobs.job import Answer, Edges, Job, Shown
from differential.jobs.outputs import Outputs, Result, reporting
from differential.jobs.picture import answer_panels
from differential.jobs.program import JobOutcome, JobRun, Task
from differential.jobs.report import counted
from differential.jobs.status import CheckError, status_of
from timely import Config, Worker, execute


def run(job: Job, arguments: Sequence[str] | None = None, program: str | None = None) -> int:
    """Run a job with the arguments of the command line, or with others; return the exit status."""
    options = parse(job, arguments, program or program_of(sys.argv[0]))

    def body() -> None:
        with Interrupt(options.follow) as interrupt:
            task = task_of(job, options, interrupt)
            execute(lambda worker: _work(worker, task))

    return status_of(job.name, body)


def task_of(job: Job, options: argparse.Namespace, interrupt: Interrupt) -> Task:
    """Return the job with its input opened."""
    faults = Faults(options.on_error)
    weight = options.weight or ("3" if job.is_weighted(options) else None)
    layout = InputLayout(weight, options.time, options.header, options.names, options.separator)
    is_first = Config.from_environ().process == 0
    graph = open_graph(options.graph, layout, faults, is_first=is_first)
    changes: OpenedChanges | Replacements | None = None
    if options.changes is not None and is_first:
        if options.changes.startswith(PREFIX):
            changes = Replacements(options.changes, graph)
        else:
            over = interrupt.has_come
            changes = open_changes(
                options.changes, graph.names, layout, faults, follow=options.follow, is_over=over, weight=graph.weight
            )
    reopened = None
    if graph.names is None and os.path.isfile(options.graph):
        # Faults of its own: those of `graph` have been counted, or have ended the run.
        reopened = partial(open_graph, options.graph, layout, Faults("skip"))
    return Task(job, options, graph, reopened, changes, faults, interrupt)


def _work(worker: Worker, task: Task) -> None:
    """Run the job on a worker, and on worker 0 write what the options ask for."""
    inputs = task.options.graph, task.options.changes
    with reporting(task.job.name, worker, task.options, inputs, has_tables=True) as (outputs, display):
        emit = None
        if outputs.has_changes:

            def emit(label: Any, delta: Delta) -> None:
                write_changes(outputs.files["changes_to"], label, _named(task, delta.columns), delta.diffs.tolist())

        outcome = JobRun(worker, task, display, emit)()
        if outcome is not None:
            _finish(task, outcome, outputs)


def _finish(task: Task, outcome: JobOutcome, outputs: Outputs) -> None:
    """Check the answer, describe it, and write it."""
    job, options, report, files = task.job, task.options, outcome.report, outputs.files
    names = task.graph.names
    name = str if names is None else lambda node: names.text(np.array([node]))[0]
    shown = Shown(outcome.answer, options, name)
    if options.check:
        check(task, outcome)
    title = f"{report.graph}: {counted(report.edges, 'edge')}"
    panels = answer_panels(job.picture, shown, report)
    table = partial(_table, task, outcome.answer)
    lines = [*job.summary(shown), *report.lines()]
    outputs.finish(Result(lines, report.as_json(), title=title, panels=panels, table=table))
    if "rejects" in files:
        files["rejects"].write("file\tline\treason\ttext\n")
        for fault in outcome.faults:
            files["rejects"].write(f"{fault.file}\t{fault.line}\t{fault.reason}\t{fault.text}\n")


def check(task: Task, outcome: JobOutcome) -> None:
    """Raise CheckError if the answer differs from the one computed from scratch."""
    assert task.job.check is not None
    # An answer that never had a record has no columns: how many it would have is not known.
    columns = outcome.edges.columns or (np.zeros(0, np.int64),) * 2
    every = [np.repeat(column, outcome.edges.counts) for column in columns]
    edges = Edges(every[0], every[1], every[2] if len(every) > 2 else None)
    found = tuple(np.asarray(column) for column in task.job.check(edges, outcome.nodes, task.options))
    counts = np.ones(len(found[0]), np.int64)
    wrong = [Delta(0, tuple(outcome.answer.columns), outcome.answer.counts), Delta(0, found, -counts)]
    # Empty ones may lack columns.
    wrong = [delta for delta in wrong if len(delta.diffs)]
    if wrong and len((difference := added_up(0, wrong)).diffs):
        record = tuple(column[0] for column in _named(task, tuple(column[:1] for column in difference.columns)))
        which = "should not be in the answer" if difference.diffs[0] > 0 else "is missing from the answer"
        raise CheckError(f"the answer is wrong: {len(difference.diffs):,} records differ; {record} {which}")


def _named(task: Task, columns: Sequence[Any]) -> list[list[Any]]:
    """Return the columns of an answer as lists, in which nodes have their names."""
    names, fields = task.graph.names, task.job.fields_for(task.options)
    return [
        names.text(column) if names is not None and field.is_node else column.tolist()
        for column, field in zip(columns, fields)
    ]


def _table(task: Task, answer: Answer) -> pa.Table:
    """Return an answer as a table in which nodes have their names."""
    names, fields = task.graph.names, task.job.fields_for(task.options)
    columns: dict[str, Any] = {}
    for index, field in enumerate(fields):
        column = answer.columns[index] if answer.columns else np.zeros(0, np.int64)
        columns[field.name] = (
            pa.array(names.text(column), pa.string()) if names is not None and field.is_node else column
        )
    if task.job.is_multiset:
        columns["occurrences"] = answer.counts
    return pa.table(columns)
