"""A commit costs the same beside many other tables and views: nothing of the session goes through all of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from differential import Session
from differential.session.site import Site

FEW, MANY = 2, 40
SLACK = 2 * (MANY - FEW)
"""Fewer instructions than one for each of the other tables and views are not those of a loop over them.

How often a worker steps until a commit is complete differs from run to run.
"""


class Counting:
    """Counts the instructions that each call of a function of the session takes, on a thread."""

    def __init__(self) -> None:
        self.most: Counter[str] = Counter()
        """The instructions of the longest call, by function."""
        self._counts: Counter[FrameType] = Counter()

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if "/differential/session/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self._counts[frame] += 1
        elif event == "return":
            name = f"{frame.f_code.co_filename.rpartition('/')[2]}: {frame.f_code.co_name}"
            self.most[name] = max(self.most[name], self._counts.pop(frame, 0))
        return self.trace


here = Counting()
"""That of the worker of this process, which is in another one than the program's, perhaps."""


def begin(site: Site) -> None:
    site.compact()  # those that were made before, which is otherwise due at some commit
    here.most.clear()
    sys.settrace(here.trace)


def end(site: Site) -> dict[str, int]:
    sys.settrace(None)
    return dict(here.most)


@contextmanager
def counted(counting: Counting) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(counting.trace)
    try:
        yield
    finally:
        sys.settrace(before)


def instructions(others: int, processes: bool) -> list[dict[str, int]]:
    """Return the instructions of a commit of one row beside other tables and views of them, on each thread."""
    with Session(workers=1 + processes, processes=processes, progress=False) as db:
        table = db.table("t", {"k": int, "v": int}, key="k")
        view = db.view("count of t", lambda t: t.t.group_by("v").count())
        changes = view.changes()
        for number in range(others):
            db.table(f"t{number}", {"k": [number], "v": [1]}, key="k")
            db.view(f"v{number}", lambda t, number=number: t[f"t{number}"].group_by("v").count())
        for k in range(3):
            table.insert(k=k, v=k)
            db.commit()
        caller = Counting()
        db._catalog.engine.call(begin)
        with counted(caller):
            table.insert(k=7, v=7)
            db.commit()
            table.insert(k=8, v=7)
            db.commit()
        workers = db._catalog.engine.call(end)
        assert [change.time for change in changes.read_nowait()] == [1, 2, 3, 4, 5]
        assert len(view) == 4
        return [dict(caller.most), *workers]


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_commit_goes_through_nothing_that_it_does_not_concern(processes: bool) -> None:
    few, many = instructions(FEW, processes), instructions(MANY, processes)
    assert any("site.py: commit" in counts for counts in many)
    longer = [
        (name, one.get(name, 0), count)
        for one, other in zip(few, many, strict=True)
        for name, count in other.items()
        if name in one and count > one[name] + SLACK
    ]
    assert longer == []


def test_changes_that_the_program_has_forgotten_are_not_kept() -> None:
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        for _ in range(20):
            numbers.changes()
        assert len(db._catalog.items["numbers"].followers) == 1


def test_each_item_is_announced_once_and_what_is_dropped_is_not_kept() -> None:
    with Session(workers=2) as db:
        table = db.table("t", {"k": int}, key="k")
        db.commit()
        noted = db._catalog.engine.noted
        for _ in range(5):
            assert len(db.ask(lambda t: t.t)) == 0
            db.view("seen", lambda t: t.t.distinct())
        assert {item.name for item in noted} <= {"t", "seen"}
        table.insert(k=1)
        db.commit()
        assert not noted
        assert len(db["seen"]) == 1
