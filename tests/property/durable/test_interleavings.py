"""Appends to a store that fails in all ways are linearizable: whoever writes, crashes, is late or is replaced."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from differential.durable import compaction
from differential.durable.local import LocalStore
from differential.durable.shard import Shard
from tests.property.durable.interleaving import History, Turns, check, reading, writing
from tests.simulation.stores import Seeded, SimulatedDisk, SimulatedStore

QUICK = 1000
MANIFEST = "edges/manifest.json"
INTERLEAVINGS = int(os.environ.get("DURABLE_INTERLEAVINGS", "100000"))
"""How many interleavings the slow test tries."""


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "RUN", 2)


def interleave_on_a_store(seed: int) -> None:
    """Run two or three clients, and perhaps a reader, on one simulated store."""
    random = Random(seed)
    turns = Turns(random)
    seeded = Seeded(seed, turn=turns, failing=random.choice([0, 0.05, 0.2]), crashing=random.choice([0, 0.03, 0.1]))
    store, history = SimulatedStore(seeded), History()
    shard = Shard("edges", store)
    clients = [partial(writing, shard, random, history, turns, 2) for _ in range(random.randrange(1, 4))]
    if random.random() < 0.5:
        clients.append(partial(reading, shard, random, history, lambda: store.committed))
    turns.run(clients)
    seeded.failing = seeded.crashing = 0
    store.settle()
    check(store.committed, history, shard)


def interleave_on_a_disk(seed: int) -> None:
    """Run one or two clients in a directory, three times; between them the machine crashes."""
    random = Random(seed)
    turns = Turns(random)
    seeded = Seeded(seed, turn=turns, failing=random.choice([0, 0.05]), crashing=random.choice([0, 0.03, 0.1]))
    disk, history = RecordingDisk(seeded), History()
    shard = Shard("edges", LocalStore("edges", disk))
    for _ in range(3):
        turns.run([partial(writing, shard, random, history, turns, 1) for _ in range(random.randrange(1, 3))])
        disk.crash_machine()
    seeded.failing = seeded.crashing = 0
    check(disk.committed, history, shard)


class RecordingDisk(SimulatedDisk):
    """A simulated disk that records the manifests that took effect, and survived."""

    def __init__(self, seeded: Seeded) -> None:
        super().__init__(seeded)
        self.committed: list[bytes] = []

    def rename(self, old: str, new: str) -> None:
        data = self._files.get(old, b"")
        try:
            super().rename(old, new)
        finally:  # it may have happened before a crash
            if new == MANIFEST and self._files.get(new) == data:
                self.committed.append(data)

    def crash_machine(self) -> None:
        super().crash_machine()
        survived = self._files.get(MANIFEST)
        while self.committed and self.committed[-1] != survived:
            self.committed.pop()
        assert survived is None or self.committed


def run(interleave: Callable[[int], None], seed: int) -> None:
    """Run one interleaving; an error names its seed."""
    try:
        interleave(seed)
    except Exception as error:
        error.add_note(f"{interleave.__name__}({seed})")
        raise


@pytest.mark.lengthy
@pytest.mark.parametrize("interleave", [interleave_on_a_store, interleave_on_a_disk])
def test_appends_are_linearizable_whatever_fails(interleave: Callable[[int], None]) -> None:
    for seed in range(QUICK // 2):
        run(interleave, seed)


@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
@pytest.mark.parametrize("interleave", [interleave_on_a_store, interleave_on_a_disk])
def test_appends_are_linearizable_in_many_interleavings(interleave: Callable[[int], None]) -> None:
    for seed in range(QUICK, QUICK + INTERLEAVINGS // 2):
        run(interleave, seed)
        if (seed + 1) % 5000 == 0:
            print(f"{interleave.__name__}: {seed + 1 - QUICK} interleavings are linearizable", flush=True)
