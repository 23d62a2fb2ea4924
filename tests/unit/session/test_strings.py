"""Text and bytes that NumPy would change: members of enumerations, and strings that end in NUL."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pytest

from differential import Session
from differential.graphs import bfs, reachability


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


def _ids(db: Session, condition: Any) -> list[int]:
    return [number for (number,) in db.ask(lambda t: t.t.filter(condition).select("id")).records()]


@pytest.mark.parametrize("of", [str, str | None, bytes, bytes | None])
def test_nuls_at_the_end_of_text_and_bytes_distinguish_them(of: Any) -> None:
    def string(text: str) -> Any:
        return text if of in (str, str | None) else text.encode()

    with Session() as db:
        table = db.table("t", {"id": int, "s": of}, key="id")
        table.insert({"id": [1, 2, 3], "s": [string("a"), string("a\0"), string("a\1")]})
        db.commit()
        nul, end = string("a\0"), string("\0")
        assert _ids(db, lambda r: r.s == nul) == _ids(db, lambda r: nul == r.s) == [2]
        assert _ids(db, lambda r: r.s != nul) == [1, 3]
        assert _ids(db, lambda r: r.s < nul) == _ids(db, lambda r: nul > r.s) == [1]
        assert _ids(db, lambda r: r.s == [nul] * len(r.s)) == [2]
        assert _ids(db, lambda r: np.where(r.id > 1, r.s, nul) == np.where(r.id > 2, r.s, nul)) == [1, 2, 3]
        if of in (bytes, bytes | None):
            assert _ids(db, lambda r: np.isin(r.s, [nul, string("b")])) == [2]
        if of in (str, bytes):
            longer = db.ask(lambda t: t.t.select("id", s=lambda r: r.s + end)).records()
            assert longer == [(1, string("a\0")), (2, string("a\0\0")), (3, string("a\1\0"))]


@pytest.mark.parametrize("root", ["x\0", b"x\0"])
def test_nodes_that_an_algorithm_begins_with_keep_nuls_at_the_end(root: Any) -> None:
    with Session() as db:
        db.table("edges", {"start": [root, root[:1]], "end": [root[:1] * 2, root[:1] * 3]})
        db.commit()
        for roots in (root, [root], (root,)):
            assert db.ask(lambda t, roots=roots: reachability(t.edges, roots)).records() == [
                (root, root),
                (root[:1] * 2, root),
            ]
            assert db.ask(lambda t, roots=roots: bfs(t.edges, roots)).records() == [(root, 0), (root[:1] * 2, 1)]
