"""Columns of every type are the same on another process."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.integration.launcher.launching import Run

PROGRAM = """
import datetime as dt
from decimal import Decimal

import numpy as np

from differential import new_input
from differential.frames import read
from timely import execute

frame = read({
    "integers": [1, None],
    "unsigned": np.array([2**64 - 1, 1], np.uint64),
    "floats": [float("nan"), -float("nan")],
    "text": ["né", None],
    "bytes": [b"", None],
    "moments": [dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc), None],
    "decimals": [Decimal("1.50"), None],
    "wide": [Decimal(10**30), None],
    "values": [[1, {"a": None}], None],
})


def program(worker):
    with worker.dataflow() as scope:
        session, rows = new_input(scope)
        counted = [
            rows.map(lambda *columns, place=place: columns[place]).count().output() for place in range(len(frame.names))
        ]
    session.insert(*frame.columns)
    session.close()
    worker.step_while(lambda: not all(output.done() for output in counted))
    if worker.index == 0:
        for name, output in zip(frame.names, counted):
            print(name, *[record for record, _ in output.records()])


execute(program)
"""
ANSWERS = """
integers (1, 2) (None, 2)
unsigned (1, 2) (18446744073709551615, 2)
floats (nan, 4)
text ('né', 2) (None, 2)
bytes (b'', 2) (None, 2)
moments (datetime.datetime(2024, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), 2) (None, 2)
decimals (Decimal('1.50'), 2) (None, 2)
wide (Decimal('1000000000000000000000000000000'), 2) (None, 2)
values ((1, (('a', None),)), 2) (None, 2)
"""


def test_both_processes_count_the_same_values(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with closing(Run("run", "-n", "2", str(script))) as run:
        assert run.end() == 0, run.error
        assert [line.partition("] ")[2] for line in run.output.splitlines()] == ANSWERS.split("\n")[1:-1]
