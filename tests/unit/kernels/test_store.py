"""The files of compiled kernels: whole, safe, and of the right key, or not read at all."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import tempfile
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from differential.kernels import store as stores
from differential.kernels.store import KernelStore

NAME = "tiny.kernel"
KEY = "a kernel, for a processor"
PAYLOAD = bytes(range(256)) * 40
STRANGER = 65534
"""A user that owns nothing, `nobody` on Linux."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_reported", set())


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A directory that every user may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


@pytest.fixture
def store(open_path: Path) -> KernelStore:
    """A store that holds one entry."""
    made = KernelStore(open_path / "cache", open_path / "cache" / "timely-dataflow" / "kernels")
    made.write(NAME, KEY, PAYLOAD)
    return made


@contextmanager
def another_user() -> Iterator[None]:
    """Run as a user to whom permissions apply, unlike root."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(STRANGER)
    try:
        yield
    finally:
        if before == 0:
            os.seteuid(before)


def own(store: KernelStore) -> None:
    """Give a store to the user of `another_user`."""
    if os.geteuid() == 0:
        for path in (store.root, *store.root.rglob("*")):
            os.chown(path, STRANGER, -1, follow_symlinks=False)


def test_a_written_entry_is_read(store: KernelStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert store.has(NAME)
    assert store.read(NAME, KEY) == PAYLOAD
    assert not store.has("other.kernel")
    assert store.read("other.kernel", KEY) is None
    assert capsys.readouterr().err == ""


def test_directories_and_entries_are_for_this_user_alone(store: KernelStore) -> None:
    assert [stat.S_IMODE(path.stat().st_mode) for path in (store.root, store.directory.parent, store.directory)] == [
        0o700
    ] * 3
    assert stat.S_IMODE((store.directory / NAME).stat().st_mode) == 0o600


def test_an_entry_is_replaced_as_a_whole(store: KernelStore) -> None:
    store.write(NAME, KEY, b"renewed")
    assert store.read(NAME, KEY) == b"renewed"
    assert [path.name for path in store.directory.iterdir()] == [NAME]


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def cut_within_the_digest(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def of_another_format(path: Path) -> None:
    path.write_bytes(b"\x80\x04K\x01.")


def made_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def made_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def made_a_link(path: Path) -> None:
    target = path.parent.parent / "elsewhere"
    path.rename(target)
    path.symlink_to(target)


def of_its_group(path: Path) -> None:
    path.chmod(0o660)


def of_all_users(path: Path) -> None:
    path.chmod(0o606)


DAMAGES: list[tuple[Callable[[Path], None], str]] = [
    (emptied, "is damaged"),
    (cut, "is damaged"),
    (cut_within_the_digest, "is damaged"),
    (of_another_format, "is damaged"),
    (made_a_directory, "is not a regular file"),
    (made_a_pipe, "is not a regular file"),
    (made_a_link, "is a link"),
    (of_its_group, "can be written by its group"),
    (of_all_users, "can be written by all users"),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGES, ids=[damage.__name__ for damage, _ in DAMAGES])
def test_a_damaged_entry_is_reported_once_and_removed(
    damage: Callable[[Path], None], reason: str, store: KernelStore, capsys: pytest.CaptureFixture[str]
) -> None:
    path = store.directory / NAME
    damage(path)
    assert store.read(NAME, KEY) is None
    assert store.read(NAME, KEY) is None
    assert capsys.readouterr().err == f"differential: {path} {reason}; this kernel is compiled again\n"
    assert not os.path.lexists(path)
    store.write(NAME, KEY, PAYLOAD)
    assert store.read(NAME, KEY) == PAYLOAD


@pytest.mark.parametrize("part", ["mark", "digest", "key", "payload", "end"])
@pytest.mark.parametrize("bit", [0, 7])
def test_one_flipped_bit_is_noticed_wherever_it_is(part: str, bit: int, store: KernelStore) -> None:
    path = store.directory / NAME
    content = bytearray(path.read_bytes())
    places = {"mark": 3, "digest": 30, "key": content.index(KEY.encode()), "payload": -300, "end": -1}
    content[places[part]] ^= 1 << bit
    path.write_bytes(content)
    assert store.read(NAME, KEY) is None
    assert not path.exists()


def test_an_entry_of_another_key_is_not_read(store: KernelStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert store.read(NAME, KEY + " of another kind") is None
    assert "is of another kernel" in capsys.readouterr().err


def test_a_key_that_continues_another_one_is_another(store: KernelStore) -> None:
    store.write(NAME, KEY, b"")
    assert store.read(NAME, KEY[:-1]) is None


def test_an_entry_that_another_process_has_renewed_is_not_removed(
    store: KernelStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store.directory / NAME
    cut(path)
    unwrapped = stores._payload

    def renewed_meanwhile(content: bytes, key: str) -> bytes:
        store.write(NAME, KEY, b"renewed")
        return unwrapped(content, key)

    monkeypatch.setattr(stores, "_payload", renewed_meanwhile)
    assert store.read(NAME, KEY) is None
    monkeypatch.undo()
    assert store.read(NAME, KEY) == b"renewed"
    assert capsys.readouterr().err == ""


def test_an_entry_that_another_process_has_removed_is_reported_by_that_one(
    store: KernelStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store.directory / NAME
    cut(path)
    unwrapped = stores._payload

    def removed_meanwhile(content: bytes, key: str) -> bytes:
        path.unlink()
        return unwrapped(content, key)

    monkeypatch.setattr(stores, "_payload", removed_meanwhile)
    assert store.read(NAME, KEY) is None
    assert capsys.readouterr().err == ""


def test_a_directory_with_files_in_place_of_an_entry_stays(
    store: KernelStore, capsys: pytest.CaptureFixture[str]
) -> None:
    path = store.directory / NAME
    made_a_directory(path)
    (path / "somebody's").write_text("text")
    assert store.read(NAME, KEY) is None
    store.write(NAME, KEY, PAYLOAD)
    assert (path / "somebody's").exists()
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"differential: {path} is not a regular file; this kernel is compiled again"
    assert f"{store.directory}: Is a directory" in second
    assert [path.name for path in store.directory.iterdir()] == [NAME]


def test_an_entry_without_permission_to_read_it_is_reported_and_removed(
    store: KernelStore, capsys: pytest.CaptureFixture[str]
) -> None:
    path = store.directory / NAME
    path.chmod(0)
    own(store)
    with another_user():
        assert store.read(NAME, KEY) is None
        assert not path.exists()
    assert "cannot be read (Permission denied); this kernel is compiled again" in capsys.readouterr().err


@needs_root
def test_an_entry_of_another_user_is_not_read(store: KernelStore, capsys: pytest.CaptureFixture[str]) -> None:
    os.chown(store.directory / NAME, STRANGER, -1)
    assert store.read(NAME, KEY) is None
    assert f"belongs to another user ({STRANGER}); this kernel is compiled again" in capsys.readouterr().err


@needs_root
def test_an_entry_that_belongs_to_root_is_read(store: KernelStore, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (store.root, *store.root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    long_ago = clock.time() - 50 * 86_400
    os.utime(store.directory / NAME, (long_ago, long_ago))
    with another_user():
        assert store.read(NAME, KEY) == PAYLOAD
    assert capsys.readouterr().err == ""


UNSAFE = [
    ("", 0o770, "its group"),
    ("", 0o707, "all users"),
    ("timely-dataflow", 0o720, "its group"),
    ("timely-dataflow/kernels", 0o702, "all users"),
    ("timely-dataflow/kernels", 0o1777, "all users"),
]


@pytest.mark.parametrize(("part", "mode", "whose"), UNSAFE)
def test_a_directory_to_which_others_can_write_is_not_used(
    part: str, mode: int, whose: str, store: KernelStore, capsys: pytest.CaptureFixture[str]
) -> None:
    path = store.root / part
    path.chmod(mode)
    assert not store.is_usable()
    assert not store.has(NAME)
    assert store.read(NAME, KEY) is None
    store.write("other.kernel", KEY, PAYLOAD)
    assert [each.name for each in store.directory.iterdir()] == [NAME]
    remedy = "" if mode & stat.S_ISVTX else f" ('chmod go-w {path}' changes that)"
    assert capsys.readouterr().err == (
        f"differential: kernels that this process compiles are not kept for others: {path} can be written by {whose}"
        f"{remedy}; DIFFERENTIAL_CACHE_DIR can name another directory\n"
    )
    path.chmod(0o700)
    assert store.read(NAME, KEY) == PAYLOAD


@needs_root
@pytest.mark.parametrize("part", ["", "timely-dataflow", "timely-dataflow/kernels"])
def test_a_directory_of_another_user_is_not_used(
    part: str, store: KernelStore, capsys: pytest.CaptureFixture[str]
) -> None:
    os.chown(store.root / part, STRANGER, -1)
    assert store.read(NAME, KEY) is None
    assert f"{store.root / part} belongs to another user ({STRANGER}); " in capsys.readouterr().err


def test_the_directory_may_be_in_a_shared_one_in_which_no_other_user_can_rename_it(store: KernelStore) -> None:
    store.root.chmod(0o1777)
    assert store.read(NAME, KEY) == PAYLOAD


def test_the_users_cache_directory_may_be_a_link(store: KernelStore) -> None:
    elsewhere = store.root.parent / "elsewhere"
    store.root.rename(elsewhere)
    store.root.symlink_to(elsewhere)
    assert store.read(NAME, KEY) == PAYLOAD


@needs_root
def test_no_link_of_another_user_is_followed(store: KernelStore, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = store.root.parent / "elsewhere"
    store.root.rename(elsewhere)
    store.root.symlink_to(elsewhere)
    os.chown(store.root, STRANGER, -1, follow_symlinks=False)
    assert store.read(NAME, KEY) is None
    assert "belongs to another user" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["timely-dataflow", "timely-dataflow/kernels"])
def test_no_link_below_the_users_cache_directory_is_followed(
    part: str, store: KernelStore, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = store.root / "elsewhere"
    (store.root / part).rename(elsewhere)
    (store.root / part).symlink_to(elsewhere)
    assert store.read(NAME, KEY) is None
    assert "are not kept for others" in capsys.readouterr().err


def test_a_file_in_place_of_the_directory_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    store = KernelStore(tmp_path / "file", tmp_path / "file")
    store.write(NAME, KEY, PAYLOAD)
    assert store.read(NAME, KEY) is None
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_read_only_directory_is_read_and_reported_once(
    store: KernelStore, capsys: pytest.CaptureFixture[str]
) -> None:
    own(store)
    store.directory.chmod(0o555)
    with another_user():
        assert store.read(NAME, KEY) == PAYLOAD
        assert capsys.readouterr().err == ""
        store.write("one.kernel", KEY, PAYLOAD)
        store.write("two.kernel", KEY, PAYLOAD)
    assert capsys.readouterr().err == (
        f"differential: kernels that this process compiles are not kept for others: {store.directory}: Permission "
        "denied; DIFFERENTIAL_CACHE_DIR can name another directory\n"
    )


def test_a_directory_that_cannot_be_made_is_reported(open_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_path.chmod(0o555)
    with another_user():
        assert not KernelStore(open_path / "cache", open_path / "cache").is_usable()
    open_path.chmod(0o755)
    assert f"{open_path / 'cache'}: Permission denied" in capsys.readouterr().err


def test_a_full_disk_is_reported_once_and_holds_no_partial_entry(
    store: KernelStore, capsys: pytest.CaptureFixture[str]
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        store.write("one.kernel", KEY, PAYLOAD)
        store.write("two.kernel", KEY, PAYLOAD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in store.directory.iterdir()] == [NAME]
    line = capsys.readouterr().err
    assert f"{store.directory}: File too large" in line
    assert line.count("\n") == 1


@needs_root
def test_a_file_system_without_room_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["mount", "-t", "tmpfs", "-o", "size=8k,mode=700", "tmpfs", str(tmp_path)]
    if subprocess.run(command, capture_output=True, timeout=30, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        store = KernelStore(tmp_path, tmp_path)
        store.write(NAME, KEY, PAYLOAD)
        assert list(tmp_path.iterdir()) == []
        assert f"{tmp_path}: No space left on device" in capsys.readouterr().err
    finally:
        subprocess.run(["umount", str(tmp_path)], timeout=30, check=True)


def age(path: Path, days: float) -> None:
    moment = clock.time() - days * 86_400
    os.utime(path, (moment, moment))


def test_entries_that_have_long_been_unused_are_removed_when_another_is_written(store: KernelStore) -> None:
    names = {"unused.kernel": 91, "used.kernel": 89, "cut-off.partial": 2, "half.partial": 0.5, "another's.txt": 900}
    for name, days in names.items():
        (store.directory / name).write_bytes(b"")
        age(store.directory / name, days)
    store.read(NAME, KEY)
    assert len(list(store.directory.iterdir())) == 6
    store.write("new.kernel", KEY, PAYLOAD)
    left = {path.name for path in store.directory.iterdir()}
    assert left == {NAME, "used.kernel", "half.partial", "another's.txt", "new.kernel"}


def test_an_entry_that_is_read_counts_as_used(store: KernelStore) -> None:
    age(store.directory / NAME, 100)
    assert store.read(NAME, KEY) == PAYLOAD
    store.write("new.kernel", KEY, PAYLOAD)
    assert store.read(NAME, KEY) == PAYLOAD


def test_reading_writes_nothing_more_often_than_daily(store: KernelStore) -> None:
    age(store.directory / NAME, 0.5)
    before = (store.directory / NAME).stat().st_mtime_ns
    store.read(NAME, KEY)
    assert (store.directory / NAME).stat().st_mtime_ns == before


def test_a_relative_cache_home_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    expected = Path("/home/ada/.cache/timely-dataflow/kernels")
    assert KernelStore.of_user({"XDG_CACHE_HOME": "here"}).directory == expected
    assert KernelStore.of_user({"DIFFERENTIAL_CACHE_DIR": "", "NUMBA_CACHE_DIR": ""}).directory == expected


def test_our_variable_precedes_numbas_and_numbas_precedes_the_users() -> None:
    environ = {"XDG_CACHE_HOME": "/x", "NUMBA_CACHE_DIR": "/n", "DIFFERENTIAL_CACHE_DIR": "/d"}
    assert KernelStore.of_user(environ).directory == Path("/d")
    del environ["DIFFERENTIAL_CACHE_DIR"]
    assert KernelStore.of_user(environ).directory == Path("/n/timely-dataflow")


def test_without_a_home_directory_nothing_is_cached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    assert not KernelStore.of_user({}).is_usable()
    assert list(tmp_path.iterdir()) == []
    assert "no home directory is known" in capsys.readouterr().err
