"""Merging needs room. If there is none, parts stay as they are, and what was appended is appended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import differential as dd
from differential import Updates
from differential.durable import Directory, LocalStore, Shard
from differential.durable.compaction import RUN
from differential.durable.writer import Writer
from timely.errors import StoreError


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list: if its last item is true, no part of a merge can be written."""
    full, whole = [False], LocalStore.put_new
    compact = Writer.compact

    def merging(writer: Writer) -> bool:
        with monkeypatch.context() as patched:
            if full[-1]:
                patched.setattr(LocalStore, "put_new", lambda *_: (_ for _ in ()).throw(StoreError("it is full")))
            return compact(writer)

    assert LocalStore.put_new is whole
    monkeypatch.setattr("differential.durable.writer._FIRST_PAUSE", 0.0)
    monkeypatch.setattr(Writer, "compact", merging)
    return full


def test_parts_that_cannot_be_merged_are_merged_later(tmp_path: Path, full: list[bool]) -> None:
    shard = Shard("numbers", LocalStore(str(tmp_path)))
    writer = Writer.claim(shard, "output")
    for epoch in range(2 * RUN):
        full.append(epoch < 2 * RUN - 1)
        writer.append(epoch + 1, [Updates.at((epoch,), (np.array([epoch]),))])
        assert writer.compact() == (not full[-1])
        assert shard.read() == {(number,): 1 for number in range(epoch + 1)}
    assert len(shard.paths()) == 1


def test_a_commit_is_made_though_the_parts_before_it_cannot_be_merged(tmp_path: Path, full: list[bool]) -> None:
    """Otherwise the program takes the commit for one that has failed, and makes it again."""
    full.append(True)
    with dd.Session(state=tmp_path) as db:
        table: Any = db.table("numbers", {"x": [0]})
        for number in range(1, 2 * RUN):
            assert db.commit() == number
            table.insert(x=number)
        db.commit()
        records = table.records()
    assert len(Shard("numbers", Directory(str(tmp_path)).store("numbers")).paths()) == 2 * RUN
    with dd.Session(state=tmp_path) as db:
        assert db["numbers"].records() == records == [(number,) for number in range(2 * RUN)]
