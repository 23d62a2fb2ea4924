"""A file system that is full or cannot be written ends a program with an error, and what was durable stays."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from differential.durable import Directory, Shard, State, durable_input, persist
from timely import Worker, execute_directly
from timely.errors import OperatorError, StoreError

EACH = 2000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a directory on a file system of 512 KiB in memory."""
    path = tmp_path / "disk"
    path.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(path)], capture_output=True, text=True, timeout=20
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True, timeout=20)


def run(state: Path, last: int, ahead: bool, before_last: Callable[[], None] = lambda: None) -> int:
    """Make the epochs that are not durable, and call `before_last` before the last one; return the first of them."""

    def program(worker: Worker) -> int:
        opened = State.open(worker, str(state))
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, opened.shard("numbers"), ahead=ahead)
            answer = persist(numbers.map(lambda x: x % 7).count(), opened.shard("answer"))
        first = session.epoch
        for epoch in range(first, last):
            if epoch == last - 1:
                before_last()
            session.insert([(epoch * EACH + x) * 0x9E3779B97F4A7C15 % (1 << 62) for x in range(EACH)])
            session.advance_to(epoch + 1)
            worker.step_while(lambda: not answer.is_durable(session.epoch))
        session.close()
        worker.step_while(lambda: not answer.done())
        return first

    return execute_directly(program)


def whole(state: Path) -> tuple[int, int]:
    """Return how far the collections are final, after comparing the answer with what the input adds up to."""
    numbers, answer = (Shard(name, Directory(str(state)).store(name)) for name in ("numbers", "answer"))
    numbers.verify()
    answer.verify()
    upper = answer.manifest().upper
    counts: dict[int, int] = {}
    for (number,), times in numbers.read(upper - 1).items():
        counts[number % 7] = counts.get(number % 7, 0) + times
    assert answer.read() == dict.fromkeys(counts.items(), 1)
    assert upper <= numbers.manifest().upper
    return upper, numbers.manifest().upper


@pytest.mark.parametrize("ahead", [False, True])
def test_a_disk_that_is_full_is_named_and_what_was_durable_stays(
    disk: Path, ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("differential.durable.writer._FIRST_PAUSE", 0.0)
    filler = disk / "filler"
    filler.write_bytes(bytes(200 << 10))
    with pytest.raises(OperatorError, match=f"cannot write {disk}/state/.*No space left on device"):
        run(disk / "state", 100, ahead)
    upper, durable = whole(disk / "state")
    assert 0 < upper <= durable < 100
    filler.unlink()
    assert run(disk / "state", durable + 2, ahead) == durable
    assert whole(disk / "state") == (durable + 2, durable + 2)


def test_a_disk_that_cannot_be_written_is_named(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("differential.durable.writer._FIRST_PAUSE", 0.0)
    run(disk / "state", 2, False)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True, timeout=20)
    with pytest.raises(StoreError, match=f"cannot write {disk}/state/.*Read-only file system"):
        run(disk / "state", 4, False)
    assert whole(disk / "state") == (2, 2)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_disk_that_cannot_be_written_any_more_is_named(
    disk: Path, ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("differential.durable.writer._FIRST_PAUSE", 0.0)

    def remount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True, timeout=20)

    with pytest.raises(OperatorError, match=f"cannot write {disk}/state/.*Read-only file system"):
        run(disk / "state", 4, ahead, before_last=lambda: remount("ro"))
    assert whole(disk / "state")[0] == 3
    remount("rw")
    assert run(disk / "state", 4, ahead) == 3
    assert whole(disk / "state") == (4, 4)
