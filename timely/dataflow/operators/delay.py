"""Emit records at later times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timely.arguments import check_functions
from timely.data.container import Array, Batch, Columns, as_columns, records, take
from timely.data.user_functions import consult
from timely.dataflow.notificator import Notificator
from timely.dataflow.operators.generic import unary_notify
from timely.dataflow.pact import Pipeline
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.streams import S
from timely.errors import DataError
from timely.order import LIMIT, Time


def delay(stream: S, later: Callable[..., Any], *, name: str = "delay") -> S:
    """Return the records at times of their own, not before those at which they came, once these are complete.

    `later` receives the time and a batch's columns and returns the new times: an integer or a column of them for each
    coordinate (a tuple where there are several). For list batches it receives the time and one record.

    >>> example(lambda scope: scope.to_stream(range(3)).delay(lambda time, x: time[0] + 2 - x))
    [2, 1, 0]
    """
    check_functions(name, later=later)
    waiting: dict[Time, list[Batch]] = {}

    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for capability, batch in input.received():
            for time, part in _by_time(batch, later, capability.time, name):
                notificator.notify_at(capability.delayed(time))
                waiting.setdefault(time, []).append(part)
        for time, due in notificator:
            assert due is not None
            for batch in waiting.pop(time):
                output.give_owned(due, batch)

    return unary_notify(stream, Pipeline(), logic, name=name)


def _by_time(batch: Batch, later: Callable[..., Any], time: Time, name: str) -> list[tuple[Time, Batch]]:
    """Return the parts of a batch that go to the same time."""
    if isinstance(batch, Columns):
        times = as_columns(consult(later, batch.columns, time), len(batch))
    else:
        given = [later(time, record) for record in records(batch)]
        tuples = [each if isinstance(each, tuple) else (each,) for each in given]
        widths = sorted({len(each) for each in tuples})
        if len(widths) > 1:
            raise DataError(f"{name}: a time has as many integers as coordinates, got {widths[0]} and {widths[-1]}")
        times = as_columns(tuple(map(list, zip(*tuples))))
    if len(times) != len(time) or any(column.dtype.kind not in "iu" for column in times):
        kinds = ", ".join(str(column.dtype) for column in times)
        raise DataError(f"{name}: a time is integers, one for each coordinate, got {kinds}")
    coordinates = [_coordinate(column, name) for column in times]
    distinct, which = np.unique(np.stack(coordinates, axis=1), axis=0, return_inverse=True)
    which = which.reshape(-1)  # NumPy 2.0.0 returns it in two dimensions
    parts = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    return [(tuple(each), take(batch, rows)) for each, rows in zip(distinct.tolist(), parts, strict=True)]


def _coordinate(column: Array, name: str) -> Array:
    """Return a coordinate of all new times as int64; signed and unsigned ones together would be rounded to floats."""
    for each in (int(column.min()), int(column.max())):
        if not 0 <= each <= LIMIT:
            raise DataError(f"{name}: no coordinate of a time is below 0 or larger than 2 ** 62, got {each}")
    return column.astype(np.int64, copy=False)
