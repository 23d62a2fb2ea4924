"""What `timely top` shows where a terminal is narrow."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest

from timely.live.client import JobView
from timely.live.state import encoded
from timely.live.top import parts

pytest.importorskip("rich")


def test_numbers_keep_their_width_and_texts_are_cut_off() -> None:
    from rich.console import Console

    view = JobView()
    where = "/home/somebody/" + "directory/" * 20 + "program.py:12"
    view.workers = [[0, 0, 4194303, 0.25, 1234.0, 7, "waits for messages", where, 0.0]]
    console = Console(file=StringIO(), width=100)
    for part in parts(view):
        console.print(part)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert [line.split() for line in lines if line.lstrip().startswith("worker")] == [
        ["worker", "process", "pid", "busy", "records/s", "queued", "does"]
    ]
    (row,) = [line for line in lines if "waits for" in line]
    assert row.split()[:3] == ["0", "0", "4194303"]
    assert " 1.2k " in row
    assert row.rstrip().endswith("…")
    assert len(row) <= 100


def test_the_line_of_an_operator_is_seen_in_a_narrow_terminal() -> None:
    from rich.console import Console

    view = JobView()
    node = {
        "name": "join_map",
        "scope": 0,
        "origin": "/home/somebody/a/long/directory/program.py:12",
        "kind": "operator",
    }
    view.take("shape", {"dataflow": 0, "name": "graph", "nodes": [node], "scopes": [], "edges": []})
    row = [0, 833, 10_000_000, 274_000, 201_000, 0, 4900, 155_000]
    tick = {"rows": encoded(np.array(row[1:]).tobytes(), bytes(56)), "frontiers": [["(312, 4) (313, 0)", 0]]}
    rest = {"workers": [], "notes": [], "over": [], "gone": []}
    view.take("tick", {"seconds": 1.0, "is_first": True, "dataflows": {"0": tick}, **rest})
    console = Console(file=StringIO(), width=80)
    for part in parts(view):
        console.print(part)
    (line,) = [line for line in console.file.getvalue().splitlines() if "join_map" in line]  # type: ignore[attr-defined]
    assert "program.py:12" in line
