"""Run small dataflows on one or several workers in this process, and collect their output with its times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from timely import Config, Scope, Stream, Time, Worker, execute
from timely.data.container import records

Record = tuple[Time, Any]

on_workers = pytest.mark.parametrize("workers", [1, 3])
"""The same test with one worker and with three threads."""


def collect(program: Callable[[Scope], Stream], workers: int = 1) -> list[list[Record]]:
    """Return, for each worker, (time, record) of the stream that `program(scope)` makes, sorted."""

    def run(worker: Worker) -> list[Record]:
        found: list[Record] = []
        with worker.dataflow() as scope:
            program(scope).inspect_batch(lambda time, batch: found.extend((time, each) for each in records(batch)))
        while worker.step_or_park():
            pass
        return sorted(found)

    return execute(run, Config(workers=workers))


def collected(program: Callable[[Scope], Stream], workers: int = 1) -> list[Any]:
    """Return the records of all workers, sorted."""
    return sorted(record for found in collect(program, workers) for _, record in found)


def only_on_the_first(scope: Scope, data: range) -> Stream:
    """Return a stream of data that only worker 0 sends."""
    return scope.to_stream(data if scope.index == 0 else range(0))
