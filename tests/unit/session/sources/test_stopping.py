"""Which error a program sees if several sources stop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from differential import Session
from timely.errors import SessionError


@dataclass
class Tied:
    """Sources of one connection: all stop once one of them was closed, as tables of one slot of PostgreSQL do."""

    name: str
    closed: list[str]
    """The sources of the connection that were closed."""
    cause: str | None = None
    """Why this one stops by itself."""
    is_ended: bool = field(default=False, init=False)

    def open(self, target: Any, position: Any) -> Tied:
        return self

    def poll(self) -> None:
        if self.closed or self.cause is not None:
            raise SessionError(f"{self.closed[0]} is no longer read" if self.closed else self.cause)

    def confirm(self, position: Any) -> None:
        pass

    def close(self) -> None:
        self.closed.append(self.name)


@pytest.mark.parametrize("runs", [False, True])
def test_the_error_is_that_of_the_source_that_stopped_first(runs: bool) -> None:
    closed: list[str] = []
    with Session() as db:
        sources = [Tied("first", closed), Tied("second", closed)]
        for source in sources:
            db.table(source.name, {"x": int}).read_from(source)
        db.commit()
        sources[0].cause = "a column was dropped"
        with pytest.raises(SessionError, match=r"source 'first' .* has stopped: a column was dropped"):
            db.run() if runs else db.commit()
        states = [state for *_, state in db.status().sources.records()]
        assert "a column was dropped" in states[0]
