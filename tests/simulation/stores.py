"""A store and a file system that fail in all the ways that real ones may, decided by a seed.

For tests: the same seed gives the same failures. A `Seeded` source decides, and hands the turn to other clients between
any two operations, so that a test can interleave them.

`SimulatedStore` is a store behind a network. A request may take effect before its answer is lost, may not take effect,
or may take effect later, when its sender has given it up; a client may crash before or after any request.

`SimulatedDisk` is the file system under a `LocalStore`. When the machine crashes, the contents of a file that were not
synced are torn, and of the entries of each directory that were not synced only the first few survive.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import TypeVar

from timely.errors import StoreError

T = TypeVar("T")


class Crash(BaseException):
    """The process ends here. Not an Exception, so that nothing but the test catches it."""


class Seeded:
    """Decides what fails. `turn` is called between operations; `failing` and `crashing` are the chances of each.

    >>> seeded = Seeded(7, failing=0.5)
    >>> [seeded.fails() for _ in range(6)]
    [True, True, False, True, False, True]
    """

    def __init__(
        self, seed: int, *, failing: float = 0.0, crashing: float = 0.0, turn: Callable[[], None] = lambda: None
    ) -> None:
        self.random = Random(seed)
        self.failing = failing
        self.crashing = crashing
        self.turn = turn

    def fails(self) -> bool:
        """Return whether a request fails."""
        return self.random.random() < self.failing

    def step(self) -> None:
        """Let others take turns; then perhaps crash."""
        self.turn()
        if self.random.random() < self.crashing:
            raise Crash


class SimulatedStore:
    """A store in memory, whose clients see delays, lost answers and late effects (see the module).

    `committed` are all manifests in the order in which they took effect.

    >>> store = SimulatedStore(Seeded(1))
    >>> store.put_new("part", b"1"), store.compare_and_set(None, b"a"), store.compare_and_set(None, b"b")
    (None, True, False)
    >>> store.get("part"), store.names(), store.get_manifest(), store.committed
    (b'1', ['part'], b'a', [b'a'])
    """

    def __init__(self, seeded: Seeded) -> None:
        self._seeded = seeded
        self._parts: dict[str, bytes] = {}
        self._late: list[Callable[[], object]] = []
        self.committed: list[bytes] = []

    def put_new(self, name: str, data: bytes) -> None:
        self._change(lambda: self._parts.__setitem__(name, data))

    def get(self, name: str) -> bytes | None:
        self._ask()
        return self._parts.get(name)

    def get_manifest(self) -> bytes | None:
        self._ask()
        return self.present()

    def compare_and_set(self, expected: bytes | None, manifest: bytes) -> bool:
        return self._change(lambda: self._set(expected, manifest))

    def names(self) -> list[str]:
        self._ask()
        return sorted(self._parts)

    def delete(self, name: str) -> None:
        self._change(lambda: self._parts.pop(name, None))

    def present(self) -> bytes | None:
        """Return the manifest that took effect last."""
        return self.committed[-1] if self.committed else None

    def settle(self) -> None:
        """Let all that is late take effect."""
        while self._late:
            self._late.pop()()

    def copied(self) -> SimulatedStore:
        """Return a store with what this one has now."""
        other = SimulatedStore(self._seeded)
        other.committed = self.committed[-1:]
        other._parts = dict(self._parts)
        return other

    def _set(self, expected: bytes | None, manifest: bytes) -> bool:
        if self.present() != expected:
            return False
        self.committed.append(manifest)
        return True

    def _ask(self) -> None:
        self._seeded.step()
        self._take_late_effect()
        if self._seeded.fails():
            raise StoreError("the answer was lost")

    def _change(self, effect: Callable[[], T]) -> T:
        self._seeded.step()
        self._take_late_effect()
        if self._seeded.fails():
            fate = self._seeded.random.randrange(3)
            if fate == 0:
                effect()
            elif fate == 1:
                self._late.append(effect)
            raise StoreError("the answer was lost")
        result = effect()
        self._seeded.step()
        return result

    def _take_late_effect(self) -> None:
        if self._late and self._seeded.random.random() < 0.5:
            self._late.pop(self._seeded.random.randrange(len(self._late)))()

    def __str__(self) -> str:
        return "a simulated store"


class SimulatedDisk:
    """A file system in memory, which may be full, and forgets what was not synced when the machine crashes.

    >>> disk = SimulatedDisk(Seeded(3))
    >>> disk.write("d/part.tmp", b"1"), disk.rename("d/part.tmp", "d/part"), disk.names("d")
    (None, None, ['part'])
    >>> disk.crash_machine()
    >>> disk.names("d")
    []
    >>> disk.write("d/part", b"1"), disk.sync_directory("d"), disk.crash_machine(), disk.read("d/part")
    (None, None, None, b'1')
    """

    def __init__(self, seeded: Seeded) -> None:
        self._seeded = seeded
        self._files: dict[str, bytes] = {}
        self._synced: dict[str, bytes] = {}
        self._unsynced: dict[str, list[tuple[str, str, bytes]]] = {}
        self._locks: set[str] = set()

    def make_directory(self, path: str) -> None:
        self._seeded.step()

    def write(self, path: str, data: bytes) -> None:
        try:
            self._seeded.step()
        except Crash:
            self._put(path, data[: self._seeded.random.randrange(len(data) + 1)])
            raise
        if self._seeded.fails():
            self._put(path, data[: self._seeded.random.randrange(len(data) + 1)])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._put(path, data)
        self._seeded.step()

    def read(self, path: str) -> bytes:
        self._seeded.step()
        if path not in self._files:
            raise FileNotFoundError(path)
        return self._files[path]

    def rename(self, old: str, new: str) -> None:
        self._seeded.step()
        if old not in self._files:
            raise FileNotFoundError(old)
        self._files[new] = self._files.pop(old)
        self._unsynced.setdefault(os.path.dirname(new), []).append((old, new, b""))
        self._seeded.step()

    def remove(self, path: str) -> None:
        self._seeded.step()
        if self._files.pop(path, None) is None:
            raise FileNotFoundError(path)
        self._unsynced.setdefault(os.path.dirname(path), []).append((path, "", b""))

    def sync_directory(self, path: str) -> None:
        self._seeded.step()
        if self._seeded.fails():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._sync(self._unsynced.pop(path, []))
        self._seeded.step()

    def names(self, path: str) -> list[str]:
        self._seeded.step()
        return sorted(os.path.basename(each) for each in self._files if os.path.dirname(each) == path)

    @contextmanager
    def locked(self, path: str) -> Iterator[None]:
        while path in self._locks:
            self._seeded.turn()
        self._locks.add(path)
        try:
            yield
        finally:
            self._locks.discard(path)

    def present(self, path: str) -> bytes | None:
        """Return the contents of a file, None if there is none."""
        return self._files.get(path)

    def directories(self, name: str) -> list[str]:
        """Return the directories that have a file of that name."""
        return [os.path.dirname(path) for path in [*self._files] if os.path.basename(path) == name]

    def copied(self, directory: str) -> dict[str, bytes]:
        """Return the files below a directory, by their paths, that would survive a crash."""
        return {path: data for path, data in [*self._synced.items()] if path.startswith(f"{directory}/")}

    def replace(self, directory: str, files: dict[str, bytes]) -> None:
        """Let these files, synced, be all that are below a directory."""
        for kept in (self._files, self._synced):
            for path in [path for path in kept if path.startswith(f"{directory}/")]:
                del kept[path]
            kept.update(files)
        for path in [path for path in self._unsynced if f"{path}/".startswith(f"{directory}/")]:
            del self._unsynced[path]

    def crash_machine(self) -> None:
        """Forget what was not synced: of each directory, all changes after some point."""
        for entries in self._unsynced.values():
            self._sync(entries[: self._seeded.random.randrange(len(entries) + 1)])
        self._unsynced.clear()
        self._files = dict(self._synced)

    def _put(self, path: str, data: bytes) -> None:
        self._files[path] = data
        self._unsynced.setdefault(os.path.dirname(path), []).append(("", path, data))

    def _sync(self, entries: list[tuple[str, str, bytes]]) -> None:
        """Make changes of entries survive: (old name, new name, contents), without a new name a removal."""
        for old, new, data in entries:
            if not old:
                self._synced[new] = data
            elif new:
                self._synced[new] = self._synced.pop(old)  # entries survive in order, so it is there
            else:
                self._synced.pop(old, None)
