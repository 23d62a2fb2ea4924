"""Every store keeps the same promises; one that fails names the place, and changes nothing that was there."""

from __future__ import annotations

import doctest
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import obstore.store
import pytest

from differential.data.disk import OsDisk, replace_file
from differential.durable.local import LocalStore
from differential.durable.objects import Objects, ObjectStore
from differential.durable.store import Directory, Store, check_name, place_of
from tests.simulation import stores
from tests.simulation.stores import Seeded, SimulatedDisk, SimulatedStore
from timely.errors import ConfigError, StoreError


@pytest.fixture(params=["directory", "simulated disk", "simulated store", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "directory":
        return LocalStore(str(tmp_path / "state" / "words"))
    if request.param == "simulated disk":
        return LocalStore("words", SimulatedDisk(Seeded(1)))
    if request.param == "simulated store":
        return SimulatedStore(Seeded(1))
    return ObjectStore(obstore.store.MemoryStore(), "state/words")


def test_the_examples_of_simulated_stores_and_disks_hold() -> None:
    assert doctest.testmod(stores).failed == 0


def test_what_was_put_is_there_until_it_is_deleted(store: Store) -> None:
    assert (store.get("a"), store.names()) == (None, [])
    store.put_new("a", b"1")
    store.put_new("b", b"")
    store.put_new("a", b"12")
    assert (store.get("a"), store.get("b"), store.names()) == (b"12", b"", ["a", "b"])
    store.delete("a")
    store.delete("a")
    assert (store.get("a"), store.names()) == (None, ["b"])


def test_a_manifest_is_replaced_by_who_knows_it(store: Store) -> None:
    assert store.get_manifest() is None
    assert not store.compare_and_set(b"0", b"1")
    assert store.compare_and_set(None, b"1")
    assert not store.compare_and_set(None, b"2")
    assert store.compare_and_set(b"1", b"2")
    assert not store.compare_and_set(b"1", b"3")
    assert (store.get_manifest(), store.names()) == (b"2", [])


class Failing(OsDisk):
    """A file system of which one operation fails."""

    def __init__(self, operation: str, number: int) -> None:
        self.operation = operation
        self.number = number

    def fail(self, operation: str) -> None:
        if operation == self.operation:
            raise OSError(self.number, os.strerror(self.number))

    def write(self, path: str, data: bytes) -> None:
        if self.operation == "write":
            super().write(path, data[: len(data) // 2])
        self.fail("write")
        super().write(path, data)

    def rename(self, old: str, new: str) -> None:
        self.fail("rename")
        super().rename(old, new)

    def sync_directory(self, path: str) -> None:
        self.fail("sync")
        super().sync_directory(path)

    def make_directory(self, path: str) -> None:
        self.fail("make")
        super().make_directory(path)

    def read(self, path: str) -> bytes:
        self.fail("read")
        return super().read(path)

    def names(self, path: str) -> list[str]:
        self.fail("names")
        return super().names(path)


@pytest.mark.parametrize("operation", ["write", "rename"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_failed_write_changes_nothing_and_names_the_file(tmp_path: Path, operation: str, number: int) -> None:
    directory = str(tmp_path)
    whole = LocalStore(directory)
    whole.put_new("a", b"1")
    assert whole.compare_and_set(None, b"1")
    failing = LocalStore(directory, Failing(operation, number))
    with pytest.raises(StoreError, match=f"cannot write {directory}/parts/b: {os.strerror(number)}"):
        failing.put_new("b", b"1234")
    with pytest.raises(StoreError, match=f"cannot write {directory}/manifest.json: {os.strerror(number)}"):
        failing.compare_and_set(b"1", b"2")
    assert (whole.get("a"), whole.get("b"), whole.get_manifest()) == (b"1", None, b"1")


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_what_cannot_be_read_is_not_taken_for_missing(tmp_path: Path, number: int) -> None:
    """Otherwise a collection that cannot be read would be begun again."""
    disk = Failing("", number)
    store = LocalStore(str(tmp_path), disk)
    store.put_new("a", b"1")
    assert store.compare_and_set(None, b"1")
    disk.operation = "read"
    for read in (lambda: store.get("a"), store.get_manifest, lambda: store.compare_and_set(None, b"2")):
        with pytest.raises(StoreError, match=os.strerror(number)):
            read()
    disk.operation = "names"
    with pytest.raises(StoreError, match=f"cannot list {tmp_path}/parts: {os.strerror(number)}"):
        store.names()


def test_remains_of_a_longer_write_are_no_part_of_a_shorter_one(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put_new("a", b"1")
    (tmp_path / "parts" / "b.tmp").write_bytes(b"torn by a crash")
    (tmp_path / "manifest.json.tmp").write_bytes(b"torn by a crash")
    store.put_new("b", b"2")
    assert store.compare_and_set(None, b"3")
    assert (store.get("b"), store.get_manifest()) == (b"2", b"3")


def test_a_write_of_which_the_system_takes_a_part_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr("differential.data.disk.os.write", lambda file, data: write(file, data[:3]))
    store = LocalStore(str(tmp_path))
    store.put_new("a", b"12345678")
    assert store.get("a") == b"12345678"


def test_one_at_a_time_holds_a_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    other = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        with OsDisk().locked(path), pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    finally:
        os.close(other)


def test_a_lock_that_is_removed_and_made_again_is_held_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waited for the file that was removed waits for the other one, too."""
    path = tmp_path / "lock"
    waits, holds = Event(), Event()
    flock = fcntl.flock

    def noted(descriptor: int, operation: int) -> None:
        waits.set()
        flock(descriptor, operation)

    def wait() -> None:
        with OsDisk().locked(str(path)):
            holds.set()

    other = os.open(path, os.O_RDWR | os.O_CREAT)
    flock(other, fcntl.LOCK_EX)
    monkeypatch.setattr(fcntl, "flock", noted)
    waiting = Thread(target=wait)
    waiting.start()
    assert waits.wait(10)
    path.unlink()
    with OsDisk().locked(str(path)):
        os.close(other)
        assert not holds.wait(0.05), "two hold the lock"
    waiting.join(10)
    assert holds.is_set()


class Watching(OsDisk):
    """A file system that notes what is read and replaced while the lock is not held."""

    def __init__(self) -> None:
        self.is_locked = False
        self.unlocked: list[str] = []

    @contextmanager
    def locked(self, path: str) -> Iterator[None]:
        with super().locked(path):
            self.is_locked = True
            yield
        self.is_locked = False

    def read(self, path: str) -> bytes:
        if not self.is_locked:
            self.unlocked.append(path)
        return super().read(path)

    def rename(self, old: str, new: str) -> None:
        if not self.is_locked:
            self.unlocked.append(new)
        super().rename(old, new)


def test_a_manifest_is_compared_and_replaced_under_the_lock(tmp_path: Path) -> None:
    disk = Watching()
    store = LocalStore(str(tmp_path), disk)
    assert store.compare_and_set(None, b"1")
    assert store.compare_and_set(b"1", b"2")
    assert not store.compare_and_set(b"1", b"3")
    assert disk.unlocked == []


def test_a_manifest_that_could_not_be_synced_is_synced_by_the_next_attempt(tmp_path: Path) -> None:
    disk = Failing("sync", errno.EIO)
    store = LocalStore(str(tmp_path), disk)
    for _ in range(2):
        with pytest.raises(StoreError, match="Input/output error"):
            store.compare_and_set(None, b"1")
    disk.operation = ""
    assert store.compare_and_set(None, b"1"), "it is there, so the attempt was that of this writer"


class Survivors:
    """What a crash of the machine would leave below a directory: what `os.fsync` has been called for, and no more."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._contents: dict[int, bytes] = {}
        self._entries: dict[int, dict[str, int]] = {root.stat().st_ino: {}}
        self._root = root
        monkeypatch.setattr("differential.data.disk.os.fsync", self._sync)

    def _sync(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            self._entries[path.stat().st_ino] = {each.name: each.stat().st_ino for each in path.iterdir()}
        else:
            self._contents[path.stat().st_ino] = path.read_bytes()

    def read(self, path: Path) -> bytes | None:
        """Return the contents of a file after a crash, None if there is none."""
        at: int | None = self._root.stat().st_ino
        for name in path.relative_to(self._root).parts:
            at = None if at is None else self._entries.get(at, {}).get(name)
        return None if at is None else self._contents.get(at, b"")


def test_what_returns_from_a_directory_has_been_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    survivors = Survivors(tmp_path, monkeypatch)
    directory = tmp_path / "state" / "words"
    store = LocalStore(str(directory))
    store.put_new("a", b"1234")
    assert survivors.read(directory / "parts" / "a") == b"1234"
    assert store.compare_and_set(None, b"one")
    assert survivors.read(directory / "manifest.json") == b"one"
    assert store.compare_and_set(b"one", b"two")
    assert survivors.read(directory / "manifest.json") == b"two"


def test_the_first_part_finds_its_directory_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(str(tmp_path / "state" / "words"))
    assert store.compare_and_set(None, b"one")
    synced: list[str] = []
    monkeypatch.setattr(OsDisk, "sync_directory", lambda _, path: synced.append(path))
    store.put_new("a", b"1")
    assert synced == [str(tmp_path / "state" / "words" / "parts")]


def test_a_change_that_has_happened_is_no_change_of_another_writer(tmp_path: Path) -> None:
    """The answer to the first attempt may have been lost."""
    for store in (LocalStore(str(tmp_path)), ObjectStore(obstore.store.MemoryStore(), "words")):
        assert store.compare_and_set(None, b"1")
        assert store.compare_and_set(None, b"1")
        assert store.compare_and_set(b"1", b"2")
        assert store.compare_and_set(b"1", b"2")


@pytest.mark.parametrize("before", [None, b"1"])
def test_an_object_that_is_replaced_after_it_was_compared_stays(
    before: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = obstore.store.MemoryStore()
    one, other = ObjectStore(objects, "words"), ObjectStore(objects, "words")
    if before is not None:
        assert one.compare_and_set(None, before)
    get = one._get

    def late(path: str) -> tuple[bytes, str | None] | None:
        found = get(path)
        assert other.compare_and_set(before, b"2")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(one, "_get", late)
        assert not one.compare_and_set(before, b"3")
    assert one.get_manifest() == b"2"


def test_a_directory_lists_the_collections_in_it(tmp_path: Path) -> None:
    place = Directory(str(tmp_path / "state"))
    assert place.names() == []
    for name in ("words", "counts"):
        assert place.store(name).compare_and_set(None, b"{}")
    (tmp_path / "state" / "notes").mkdir()
    assert place.names() == ["counts", "words"]
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot list .*file: Not a directory"):
        Directory(str(tmp_path / "file")).names()


def test_a_directory_is_where_it_was_when_the_program_named_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program, or somebody in a notebook, that changes to another directory has not moved the state."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    place = Directory("state")
    store = place.store("words")
    assert store.compare_and_set(None, b"1")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert store.compare_and_set(b"1", b"2")
    store.put_new("part", b"")
    assert (place.names(), place.store("words").get_manifest(), store.names()) == (["words"], b"2", ["part"])
    assert (list((tmp_path / "elsewhere").iterdir()), str(place)) == ([], "state")


def test_objects_list_the_collections_below_a_prefix() -> None:
    objects = obstore.store.MemoryStore()
    place = Objects(objects, "a/state/")
    assert place.names() == []
    assert place.store("words").compare_and_set(None, b"{}")
    place.store("left").put_new("part", b"")
    assert (place.names(), str(place), str(place.store("words"))) == (
        ["words"],
        "a/state",
        "a/state/words in MemoryStore",
    )


def test_an_object_store_without_conditional_puts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot replace an object conditionally"):
        ObjectStore(obstore.store.LocalStore(tmp_path), "words")


def test_an_object_store_that_cannot_be_reached_fails() -> None:
    nobody = obstore.store.HTTPStore.from_url(
        "http://127.0.0.1:9/", client_options={"allow_http": True, "timeout": "1s"}, retry_config={"max_retries": 0}
    )
    with pytest.raises(StoreError, match="words in HTTPStore"):
        ObjectStore(nobody, "words").get("part")


def test_the_place_is_that_of_the_program_or_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIMELY_STATE_DIR", raising=False)
    with pytest.raises(ConfigError, match="timely run --state DIR"):
        place_of(None)
    monkeypatch.setenv("TIMELY_STATE_DIR", "here")
    assert (str(place_of(None)), str(place_of("there"))) == ("here", "there")


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a b", "x" * 101])
def test_a_name_that_is_no_directory_is_refused(name: str) -> None:
    check_name("edges-2.0_x")
    with pytest.raises(ConfigError, match="cannot name a durable collection"):
        check_name(name)


def test_a_file_that_does_not_fit_on_a_disk_leaves_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def full(descriptor: int, data: memoryview) -> int:
        if len(data) < 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:60])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(OsDisk(), str(tmp_path / "part"), bytes(150))
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
