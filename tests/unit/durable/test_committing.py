"""What the thread of an append leaves to the worker's thread."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from differential.durable.committing import Appender
from timely.errors import StoreError


def appender(append: Callable[..., None], activate: Callable[[], None]) -> Appender:
    writer = SimpleNamespace(append=append, compact=lambda: False, manifest=SimpleNamespace(upper=0))
    shard = SimpleNamespace(writer=writer, name="x", state=SimpleNamespace(limit=lambda _: None))
    return Appender(cast(Any, shard), 0.0, cast(Any, activate), lambda: True)


def wait_for(condition: Callable[[], bool]) -> None:
    end = clock.monotonic() + 10
    while not condition():
        assert clock.monotonic() < end, "the append did not end within ten seconds"
        clock.sleep(0.001)


def test_an_append_is_over_when_it_activates_the_operator() -> None:
    """Nobody would activate the operator again."""
    busy: list[bool] = []
    tested = appender(lambda *_, **__: None, lambda: busy.append(tested.is_busy))
    tested.append(1)
    wait_for(lambda: len(busy) == 2)
    assert busy == [True, False], "busy while it may compact, and not at the end"


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
