"""A store that does not answer is reported, once, to whoever waits for it; what waits goes on when it answers."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from differential.durable import Directory, LocalStore, State, durable_input, unanswered
from timely import Worker, execute_directly
from timely.observe.notices import on_notice


class Clock:
    """A clock that stands still but for what the test adds, so that no busy machine makes an operation late."""

    time = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, _: float) -> None:
        clock.sleep(0.001)


class Silent(Directory):
    """A place whose stores answer one operation only once they may; meanwhile half a minute passes."""

    def __init__(self, path: str, operation: str, watched: Clock) -> None:
        super().__init__(path)
        self.operation = operation
        self.watched = watched
        self.may_answer = Event()

    def store(self, name: str) -> LocalStore:
        store = super().store(name)
        whole: Callable[..., Any] = getattr(store, self.operation)

        def attempt(*arguments: Any) -> Any:
            if not self.may_answer.is_set():
                self.watched.time += unanswered.SECONDS
            assert self.may_answer.wait(20), "nobody has reported that the store does not answer"
            return whole(*arguments)

        setattr(store, self.operation, attempt)
        return store


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(unanswered, "watch", unanswered.OverdueWatch(unanswered.SECONDS, made.now, made.sleep))
    return made


@pytest.fixture
def notices() -> Iterator[list[str]]:
    found: list[str] = []
    stop = on_notice(found.append)
    yield found
    stop()


def program(worker: Worker, place: Directory) -> int:
    state = State.open(worker, place)
    with worker.dataflow() as scope:
        words, _ = durable_input(scope, state.shard("words"))
    first = words.epoch
    words.insert("to")
    words.close()
    worker.step_while(lambda: not words.committed.done())
    return first


@pytest.mark.parametrize("operation", ["put_new", "compare_and_set", "get_manifest"])
def test_an_operation_that_is_not_answered_is_reported_once(
    tmp_path: Path, watched: Clock, notices: list[str], operation: str
) -> None:
    assert execute_directly(lambda worker: program(worker, Directory(str(tmp_path)))) == 0
    place = Silent(str(tmp_path), operation, watched)
    stop = on_notice(lambda _: clock.sleep(0.2) or place.may_answer.set())  # type: ignore[func-returns-value]
    try:
        assert execute_directly(lambda worker: program(worker, place)) == 1
    finally:
        stop()
    (notice,) = notices
    assert f"'words' in LocalStore('{tmp_path}/words') has not answered for 30 s" in notice


def test_operations_that_are_answered_are_not_reported(tmp_path: Path, watched: Clock, notices: list[str]) -> None:
    for epoch in range(3):
        assert execute_directly(lambda worker: program(worker, Directory(str(tmp_path)))) == epoch
        watched.time += 2 * unanswered.SECONDS
        clock.sleep(0.02)
    assert notices == []
