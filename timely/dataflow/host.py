"""What a dataflow asks of the worker that runs it."""

from __future__ import annotations

from typing import Any, Protocol


class Host(Protocol):
    index: int
    peers: int
    config: Any
    log: Any
    allocator: Any
    outstanding: Any
    explainer: Any
    thread: int
    step_began: float

    def activator(self, o: Any) -> Any: ...
    def when_idle(self, c: Any) -> None: ...
    def call(self, f: Any) -> None: ...
    def call_after(self, s: float, f: Any) -> None: ...
    @property
    def is_congested(self) -> bool: ...
