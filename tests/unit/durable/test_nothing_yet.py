"""A collection in which nothing is final yet states so; one that is empty is read as empty."""

from __future__ import annotations

from pathlib import Path

import pytest

import differential as dd
from differential.durable import Directory, Shard, State, durable_input, persist
from timely import Worker, execute_directly
from timely.errors import StateError


def shard(path: Path, name: str) -> Shard:
    return Shard(name, Directory(str(path)).store(name))


@pytest.mark.parametrize("as_of", [None, 0])
def test_a_collection_of_which_nothing_is_final_says_so(tmp_path: Path, as_of: int | None) -> None:
    def program(worker: Worker) -> None:
        state = State.open(worker, tmp_path)
        with worker.dataflow() as scope:
            words, collection = durable_input(scope, state.shard("words"))
            persist(collection.count(), state.shard("counts"))
        words.close()

    execute_directly(program)
    for name in ("words", "counts"):
        with pytest.raises(StateError, match=f"'{name}' in .* cannot be read yet, because nothing of it is final"):
            shard(tmp_path, name).read(as_of)
        assert len(shard(tmp_path, name).updates()) == 0


def test_a_table_without_rows_is_read_as_of_the_commit_that_made_it(tmp_path: Path) -> None:
    with dd.Session(state=tmp_path) as db:
        stock = db.table("stock", {"item": str, "pieces": int}, key="item")
        assert db.commit() == 1
        assert shard(tmp_path, "stock").read(1) == shard(tmp_path, "stock").read() == {}
        stock.insert(item="nut", pieces=3)
        db.commit()
    assert shard(tmp_path, "stock").read() == {("nut", 3): 1}
    with dd.Session(state=tmp_path) as db:
        assert db["stock"].records() == [("nut", 3)]
