"""Text and bytes that NumPy would change: members of enumerations, and strings that end in NUL."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pytest

from differential import Session


class State(str, Enum):  # noqa: UP042 - its `__str__` differs from that of a `StrEnum`
    OPEN = "open"
    DONE = "done"


class Token(bytes):
    def __bytes__(self) -> bytes:
        return b"another"

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = bytes.__hash__


@pytest.mark.parametrize("of", [str, str | None])
def test_a_member_of_an_enumeration_is_the_text_that_it_is_equal_to(of: Any) -> None:
    with Session() as db:
        table = db.table("t", {"id": int, "state": of}, key="state")
        table.insert(id=1, state=State.OPEN)
        table.insert({"id": [2, 3], "state": [State.DONE, "open"]})
        table.insert([{"id": 4, "state": State.DONE}, {"id": 5, "state": State.OPEN}])
        table.insert([(6, State.OPEN)])
        table.insert({"id": 7, "state": np.array([State.OPEN], object)})
        table.delete(state=State.DONE)
        db.commit()
        assert table.records() == [(n, "open") for n in (1, 3, 5, 6, 7)]
        assert len(db.ask(lambda t: t.t.filter(lambda r: r.state == State.OPEN))) == 5
        assert len(db.ask(lambda t: t.t.filter(lambda r: State.OPEN != r.state))) == 0
        assert len(db.ask(lambda t: t.t.filter(lambda r: r.state < State.OPEN))) == 0
        chosen = db.ask(lambda t: t.t.select(state=lambda r: np.where(r.id > 1, r.state, State.DONE))).records()
        assert chosen == [("done",), *[("open",)] * 4]


@pytest.mark.parametrize("of", [bytes, bytes | None])
def test_bytes_of_a_subclass_are_what_they_contain(of: Any) -> None:
    with Session() as db:
        table = db.table("t", {"id": int, "token": of}, key="id")
        table.insert(id=1, token=Token(b"x"))
        table.insert({"id": [2, 3], "token": [Token(b"x"), b"y"]})
        db.commit()
        assert table.records() == [(1, b"x"), (2, b"x"), (3, b"y")]
        assert len(db.ask(lambda t: t.t.filter(lambda r: r.token == Token(b"x")))) == 2
