"""What the thread of an append leaves to the worker's thread."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from queue import Queue
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from differential import Updates
from differential.durable.committing import Appender, in_thread
from timely.errors import StoreError


def appender(append: Callable[..., None], activate: Callable[[], None], flush: float = 0.0) -> Appender:
    writer = SimpleNamespace(append=append, compact=lambda: False, manifest=SimpleNamespace(upper=0))
    shard = SimpleNamespace(writer=writer, name="x", state=SimpleNamespace(limit=lambda _: None, made_of=lambda *_: {}))
    return Appender(cast(Any, shard), flush, cast(Any, activate), lambda: True)


def wait_for(condition: Callable[[], bool]) -> None:
    end = clock.monotonic() + 10
    while not condition():
        assert clock.monotonic() < end, "the append did not end within ten seconds"
        clock.sleep(0.001)


def test_an_append_is_over_when_it_activates_the_operator() -> None:
    """Nobody would activate the operator again."""
    busy: list[bool] = []
    is_begun = Event()  # an operator is activated when it has returned

    def activated() -> None:
        is_begun.wait(10)
        busy.append(tested.is_busy)

    tested = appender(lambda *_, **__: None, activated)
    tested.append(1)
    is_begun.set()
    wait_for(lambda: len(busy) == 2)
    assert busy == [True, False], "busy while it may compact, not at the end"


def test_an_error_in_an_append_is_raised_where_the_operator_asks() -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError("full")

    activated: list[None] = []
    tested = appender(fail, lambda: activated.append(None))
    tested.append(1)
    wait_for(lambda: len(activated) == 1)
    for _ in range(2):
        with pytest.raises(StoreError, match="full"):
            _ = tested.is_busy


class Activations(list[float]):
    """Notes after how many seconds the operator is to be activated: at once, or later."""

    def __call__(self) -> None:
        self.append(0.0)

    def activate_after(self, seconds: float) -> None:
        self.append(seconds)


def test_between_two_appends_is_the_time_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that does not jump."""
    now = [1000.0]
    jumps = iter([1e9, 2e9, 0.0] * 9)
    activated = Activations()
    simulated = SimpleNamespace(monotonic=lambda: now[0], time=lambda: next(jumps))
    monkeypatch.setattr("differential.durable.committing.clock", simulated)
    tested = appender(lambda *_, **__: None, activated, flush=20.0)
    assert tested.is_due()
    tested.append(1)
    wait_for(lambda: len(activated) == 2)
    now[0] += 15.0
    assert (tested.is_due(), tested.is_due(), activated) == (False, False, [0.0, 0.0, 5.0])
    now[0] += 5.0
    assert tested.is_due()


@pytest.mark.parametrize(("seconds", "rests"), [(0.0625, 0.5625), (10.0, 1.0)])
def test_after_an_append_that_the_program_did_not_wait_for_there_is_a_rest(
    monkeypatch: pytest.MonkeyPatch, seconds: float, rests: float
) -> None:
    now = [1000.0]
    activated = Activations()
    monkeypatch.setattr("differential.durable.committing.clock", SimpleNamespace(monotonic=lambda: now[0]))

    def append(*_: object, **__: object) -> None:
        now[0] += seconds

    tested = appender(append, activated)
    for further in (0, 1):
        activated.clear()
        tested.append(1)
        wait_for(lambda: len(activated) == 2)
        tested.rest(0, bool(further))  # changes that have arrived may be of later times that are over
        tested.rest(further, False)
        assert tested.is_due() == (not further)
    assert activated == [0.0, 0.0, rests]


def test_a_call_in_a_thread_that_fails_is_over_with_its_error_when_the_operator_is_activated() -> None:
    begin, is_over = Event(), Queue[bool]()

    def fail() -> None:
        begin.wait(10)
        raise StoreError("no")

    failing = in_thread("fails", fail, lambda: is_over.put(failing.done()))
    assert not failing.done()
    begin.set()
    assert is_over.get(timeout=10)
    with pytest.raises(StoreError, match="no"):
        failing.result()


def test_an_append_has_what_is_staged_before_its_end_and_the_next_one_has_the_rest() -> None:
    """Another worker may have sent what belongs to later epochs already."""
    appended: list[tuple[int, list[Any], dict[str, Any]]] = []

    def append(upper: int, batches: list[Updates], offsets: dict[str, Any], **_: object) -> None:
        appended.append((upper, [row for batch in batches for row in batch.rows()], offsets))

    activated: list[None] = []
    tested = appender(append, lambda: activated.append(None))
    tested.stage(Updates((np.array([7, 8, 9]),), np.array([[0], [1], [2]]), np.array([0, 1, 2])))
    for epoch in range(3):
        tested.offsets.append((epoch, "file", 10 + epoch))
    assert tested.staged_upper() == 3
    for upper in (1, 3):
        tested.append(upper)
        wait_for(lambda: len(activated) >= 2)
        activated.clear()
    assert appended == [
        (1, [((7,), (0,), 1)], {"file": 10}),
        (3, [((8,), (1,), 1), ((9,), (2,), 1)], {"file": 12}),
    ]
