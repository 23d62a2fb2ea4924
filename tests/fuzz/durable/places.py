"""Places whose stores fail as a seed decides: stores behind a network, and directories on a disk whose machine crashes.

A copy of a collection is taken at any moment, and put back later, as an operator does with a directory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from differential.durable.local import MANIFEST, LocalStore
from differential.durable.manifest import Manifest
from differential.durable.store import Store
from tests.simulation.stores import Seeded, SimulatedDisk, SimulatedStore

PATIENCE = 20.0
"""Seconds after which a run that does not end has failed."""


class Simulated(Protocol):
    """A place that fails, of which a test knows what is there."""

    seeded: Seeded

    def names(self) -> list[str]:
        """Return the names of the collections that exist."""

    def store(self, name: str) -> Store:
        """Return the store of a collection, whether it exists or not."""

    def present(self, name: str) -> bytes | None:
        """Return the manifest of a collection, None if there is none."""

    def settle(self) -> None:
        """Let all that is late take effect."""

    def crash(self) -> None:
        """Let the machine crash, once nothing runs."""

    def copied(self, name: str) -> tuple[bytes | None, Any]:
        """Return the manifest of a collection, and a copy of it as it is now, or would be after a crash."""

    def replace(self, name: str, copy: Any) -> None:
        """Let a collection be what a copy has, or remove it, if that is None."""


class Memory:
    """A place in memory, whose requests are lost or late."""

    def __init__(self, seeded: Seeded) -> None:
        self.seeded = seeded
        self.stores: dict[str, SimulatedStore] = {}

    def names(self) -> list[str]:
        return sorted(name for name in self.stores if self.present(name) is not None)

    def store(self, name: str) -> SimulatedStore:
        return self.stores.setdefault(name, SimulatedStore(self.seeded))

    def present(self, name: str) -> bytes | None:
        return self.stores[name].present() if name in self.stores else None

    def settle(self) -> None:
        for store in self.stores.values():
            store.settle()

    def crash(self) -> None:
        """A machine that is a client takes nothing with it."""

    def copied(self, name: str) -> tuple[bytes | None, SimulatedStore]:
        copy = self.stores[name].copied()
        return copy.present(), copy

    def replace(self, name: str, copy: SimulatedStore | None) -> None:
        if copy is None:
            del self.stores[name]
        else:
            self.stores[name] = copy.copied()


class Disk:
    """A directory on a simulated disk, which is full at times, and forgets what was not synced."""

    def __init__(self, seeded: Seeded) -> None:
        self.seeded = seeded
        self.disk = _SharedDisk(seeded)

    def names(self) -> list[str]:
        return sorted(self.disk.directories(MANIFEST))

    def store(self, name: str) -> LocalStore:
        return LocalStore(name, self.disk)

    def present(self, name: str) -> bytes | None:
        return self.disk.present(f"{name}/{MANIFEST}")

    def settle(self) -> None:
        """Nothing is late."""

    def crash(self) -> None:
        self.disk.crash_machine()

    def copied(self, name: str) -> tuple[bytes | None, dict[str, bytes]]:
        files = self.disk.copied(name)
        return files.get(f"{name}/{MANIFEST}"), files

    def replace(self, name: str, copy: dict[str, bytes] | None) -> None:
        self.disk.replace(name, copy or {})


class _SharedDisk(SimulatedDisk):
    """A disk that threads use at once."""

    def __init__(self, seeded: Seeded) -> None:
        super().__init__(seeded)
        self._held: dict[str, threading.Lock] = {}
        self._one = threading.Lock()

    def write(self, path: str, data: bytes) -> None:
        with self._one:
            super().write(path, data)

    def rename(self, old: str, new: str) -> None:
        with self._one:
            super().rename(old, new)

    def remove(self, path: str) -> None:
        with self._one:
            super().remove(path)

    def sync_directory(self, path: str) -> None:
        with self._one:
            super().sync_directory(path)

    def names(self, path: str) -> list[str]:
        with self._one:
            return super().names(path)

    def locked(self, path: str) -> AbstractContextManager[Any]:
        return self._held.setdefault(path, threading.Lock())


@contextmanager
def calm(place: Simulated) -> Iterator[None]:
    """Let all appends end and all late requests take effect, and nothing fail meanwhile."""
    seeded = place.seeded
    before, seeded.failing, seeded.crashing = (seeded.failing, seeded.crashing), 0.0, 0.0
    for thread in threading.enumerate():
        if thread.name.startswith(("append to", "snapshot of")):
            thread.join(PATIENCE)
    place.settle()
    yield
    seeded.failing, seeded.crashing = before


def manifest_of(place: Simulated, name: str) -> Manifest | None:
    """Return the manifest of a collection, None if there is none."""
    data = place.present(name)
    return None if data is None else Manifest.from_bytes(data, name)
