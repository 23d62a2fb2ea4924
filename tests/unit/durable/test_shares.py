"""`in_share` finds the keys that a worker receives, so that state goes where the changes go."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from differential.durable import State, durable_input, in_share, stateful
from timely import Config, Worker, execute
from timely.lowlevel import typed

KEYS: dict[str, tuple[Any, ...]] = {
    "integers": (np.arange(-20, 20),),
    "floats": (np.array([0.0, -0.0, 0.5, np.inf, np.nan, *range(9)]),),
    "booleans": (np.array([True, False]),),
    "text": (np.array(["", "a", "\u00fc" * 40, *map(str, range(20))]),),
    "bytes": (np.array([b"", b"\xff", *(b"%d" % number for number in range(20))], np.object_),),
    "dates": (typed([None, *(dt.date(2026, 3, day) for day in range(1, 25))], "date"),),
    "decimals": (typed([None, *(Decimal(number) / 100 for number in range(20))], "decimal(9, 2)"),),
    "two columns": (np.arange(30) % 7, np.array([str(number) for number in range(30)])),
}


class Mine:
    """Counts the records that are of another worker."""

    def __init__(self, worker: Worker, keys: int) -> None:
        self.worker, self.keys = worker, keys
        self.received = self.others = 0

    def update(self, time: int, columns: tuple[Any, ...], diffs: Any) -> None:
        mine = in_share(columns[: self.keys], self.worker.index, self.worker.peers)
        self.received += len(mine)
        self.others += int((~mine).sum())

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, states: Sequence[Any], index: int, peers: int) -> None:
        return None


@pytest.mark.parametrize("kind", KEYS)
def test_the_keys_that_a_worker_receives_are_in_its_share(tmp_path: Path, kind: str) -> None:
    keys = KEYS[kind]

    def program(worker: Worker) -> tuple[int, int]:
        mine = Mine(worker, len(keys))
        state = State.open(worker, tmp_path)
        with worker.dataflow() as scope:
            session, collection = durable_input(scope, state.shard("keys"), keys=len(keys))
            output = stateful(collection, lambda: mine, state.shard("state"), every=1).output()
        if worker.index == 0:
            session.insert(*keys)
        session.close()
        worker.step_while(lambda: not output.done())
        return mine.received, mine.others

    found = execute(program, Config(workers=3))
    assert sum(received for received, _ in found) == len(keys[0])
    assert [others for _, others in found] == [0, 0, 0]
    shares = [in_share(keys, index, 3) for index in range(3)]
    assert np.array_equal(np.sum(shares, axis=0), np.ones(len(keys[0])))
