"""The random programs use every public operator, each often and with something to do, and undergo all events."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import differential
import differential.arrangement.reading
import differential.capture
import differential.delta
import differential.graphs
import tests.oracle
from differential import Collection
from tests.oracle.counts import OPERATORS, Counts, parts
from tests.oracle.drawing import Drawing
from tests.oracle.kinds import KINDS
from tests.oracle.part import CONSTANT
from tests.oracle.programs import LOOPS, Program, build
from tests.oracle.scenario import Scenario, check
from tests.soak import run
from timely import Worker, execute_directly

PACKAGES = (
    differential,
    differential.arrangement.reading,
    differential.capture,
    differential.delta,
    differential.graphs,
)
ORACLE = str(Path(tests.oracle.__file__).parent)

ELSEWHERE = {
    "Arrangement.arrange_by_key": "called by operators",
    "Arrangement.derived": "called by operators",
    "Arrangement.exported": "called by Arrangement.trace",
    "Arrangement.reader": "for operators, which keep the handle",
    "Arrangement.scope": "reports the scope",
    "Arrangement.with_updates": "called by operators",
    "CapturedUpdates.from_parts": "what is written in files: test_capture reads them",
    "CapturedUpdates.parts": "what is written in files: test_capture writes them",
    "CoGroups.keys": "for functions of several columns: test_operators_at_every_time",
    "Collection.arrange_by": "called by operators",
    "Collection.arranged": "made by operators",
    "Collection.entered": "made by operators",
    "Collection.indexed": "called by operators",
    "Collection.passed": "a watermark only grows: tests/property/session/test_event_time",
    "Collection.stream": "the stream beneath, for operators",
    "Collection.with_stream": "called by operators",
    "Cursor.key_types": "for sessions, which convert values to them: tests/unit/session/test_finding",
    "InputSession.epoch": "reports the epoch",
    "InputSession.is_congested": "for programs that wait, by the clock: tests/simulation/pressure",
    "Output.less_than": "the frontier itself is compared, for it may have two coordinates",
    "Output.records": "contents in their order: test_output",
    "Prefixes.count": "called by Extension.count",
    "CollectionIndex.by_both": "called by Extension.validate",
    "CollectionIndex.by_key": "called by Extension.propose",
    "Statement.from_parts": "what is written in files: test_capture reads them",
    "Statement.parts": "what is written in files: test_capture writes them",
    "Trace.consolidate": "leaves contents as they are: tests/property/trace/test_spine",
    "Trace.imported": "called by Trace.import_into",
    "UpsertSession.epoch": "reports the epoch",
    "UpsertSession.time": "reports the time",
    "example": "for docstrings",
    "stated": "for writers that are resumed: test_capture",
}
"""What the random programs do not use themselves, and why."""


APART = {"Session": "compared with a database that recomputes everything: tests/property/session"}
"""The classes that have random programs of their own."""


def public() -> dict[CodeType, str]:
    """Return everything that a program can call, by code, except the methods of batches between operators."""
    names = [(package, name) for package in PACKAGES for name in package.__all__ if name not in APART]
    owners = [getattr(package, name) for package, name in names]
    found = {}
    for owner in owners:
        members = {owner.__name__: owner}
        if inspect.isclass(owner):
            listed = {name: each for kind in _kinds(owner) for name, each in vars(kind).items()}
            members = {f"{owner.__name__}.{name}": each for name, each in listed.items() if name[0] != "_"}
        for name, member in members.items():
            function = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if inspect.isfunction(function) and not name.startswith("Updates."):
                found[function.__code__] = name
    return found


def _kinds(owner: type) -> Iterator[type]:
    """Yield a class and those of the package that it is made of, beginning with the most general."""
    return (kind for kind in reversed(owner.__mro__) if kind.__module__.startswith("differential."))


@contextmanager
def used(wanted: dict[CodeType, str], found: set[str]) -> Iterator[None]:
    """Find the names of what the oracle calls."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in wanted and frame.f_back is not None:
            caller = frame.f_back.f_code.co_filename
            found.update([wanted[frame.f_code]] if caller.startswith(ORACLE) else [])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


@pytest.mark.interpreted  # calls of compiled methods are not seen
def test_every_public_operator_is_used_by_the_random_programs_or_excepted_with_a_reason() -> None:
    wanted = public()
    assert len(wanted) > 120
    found = set[str]()
    drawing = Drawing(Random(0))
    whole = [part for _ in range(300) for part in _outside(drawing.program(4))]
    smallest = {_kind(part): part for part in sorted(whole, key=lambda part: -len(str(part)))}

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope, used(wanted, found):
            inputs = [Collection.of(scope, *map(np.array, CONSTANT)) for _ in range(4)]
            for part in smallest.values():
                build(part, inputs)
        worker.drop_dataflow(scope.dataflow)

    execute_directly(program)
    changes = [((1, 2), 1), ((1, 2), -1), ((3, 3), 2), ((2, 0), 1)]
    updates = [(record, (time,), diff) for time in range(3) for record, diff in changes]
    scenario = Scenario([("cogroup", ("input", 0), ("input", 1))], [updates, updates], guest=True, readers=1)
    statements = [((1, 2), (0,)), ((1, None), (1,)), ((2, 2), (2,))]
    with used(wanted, found):
        for seed in range(3):
            check(scenario._replace(seed=seed, upserts=statements))
    assert {name for name in wanted.values() if name not in found} == ELSEWHERE.keys()


def test_every_operator_is_drawn_often() -> None:
    drawn = Counter(part[0] for part in _drawn(500))
    assert {name: drawn[name] for name in OPERATORS if drawn[name] < 10} == {}
    assert set(drawn) == {*OPERATORS, "variable", "bound"}


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_every_operator_has_something_to_do_and_everything_happens_in_seven_hundred_programs() -> None:
    counts, seed = Counts(), 0
    while counts.programs < 700:
        run(seed, counts)
        seed += 1
    assert counts.rare(10) == {}


def _outside(program: Program) -> list[Program]:
    """Return the parts of a program that are in no loop, and loops as a whole."""
    operands = [operand for operand in program if isinstance(operand, tuple)]
    outside = operands[: len(operands) // 2] if program[0] in LOOPS else operands
    return [program, *(part for operand in outside for part in _outside(operand))]


def _kind(program: Program) -> tuple[str, ...]:
    return ("dressed", program[3]) if program[0] == "dressed" else (program[0],)


def _drawn(number: int) -> list[Program]:
    """Return the parts of this many programs."""
    drawing = Drawing(Random(0))
    return [part for _ in range(number) for part in parts(drawing.program(4))]


@pytest.mark.parametrize("name", KINDS)
def test_columns_that_are_dressed_as_another_kind_keep_their_order(name: str) -> None:
    numbers = np.arange(-20, 21)
    columns = KINDS[name].dress(numbers)
    rows = list(zip(*[column.tolist() for column in columns]))
    assert rows == sorted(set(rows))
    assert KINDS[name].undress(*columns).tolist() == numbers.tolist()
