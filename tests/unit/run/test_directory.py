"""Which directories of earlier runs are removed, and which never are."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from timely.run import directory as module
from timely.run.directory import PREFIX, remove_left_directories, run_directory


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of temporary files, short enough for sockets whatever the name of the test."""
    place = tmp_path / "t"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    monkeypatch.setattr(module, "check_address", lambda *_, **__: None)
    return place


def left(place: Path, name: str = f"{PREFIX}abcdefgh") -> Path:
    """Make what a killed run leaves behind."""
    directory = place / name
    directory.mkdir(mode=0o700)
    (directory / "0.0").touch()
    return directory


def test_an_unlocked_directory_is_removed_by_the_next_run(place: Path) -> None:
    stale = left(place)
    with run_directory(1) as directory:
        assert not stale.exists()
        assert list(place.iterdir()) == [directory]
        assert directory.stat().st_mode & 0o777 == 0o700
    assert list(place.iterdir()) == []


def test_the_directory_of_a_run_in_progress_stays(place: Path) -> None:
    with run_directory(1) as first, run_directory(1) as second:
        remove_left_directories(str(place))
        assert first.exists()
        assert second.exists()


@pytest.mark.parametrize("name", ["timely-compile-abcdefgh", f"{PREFIX}abcdefg", f"{PREFIX}abcdefgh.bak", "other"])
def test_a_directory_with_another_name_stays(place: Path, name: str) -> None:
    stays = left(place, name)
    remove_left_directories(str(place))
    assert stays.exists()


def test_a_symbolic_link_and_its_target_stay(place: Path, tmp_path: Path) -> None:
    target = left(tmp_path, "target")
    link = place / f"{PREFIX}abcdefgh"
    link.symlink_to(target)
    remove_left_directories(str(place))
    assert link.is_symlink()
    assert (target / "0.0").exists()


def test_a_link_inside_is_removed_and_its_target_stays(place: Path, tmp_path: Path) -> None:
    target = left(tmp_path, "target")
    stale = left(place)
    (stale / "link").symlink_to(target)
    remove_left_directories(str(place))
    assert not stale.exists()
    assert (target / "0.0").exists()


def test_a_directory_that_others_may_enter_stays(place: Path) -> None:
    stays = left(place)
    stays.chmod(0o755)
    remove_left_directories(str(place))
    assert stays.exists()


def test_files_of_another_user_stay(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stays = left(place)
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    remove_left_directories(str(place))
    assert stays.exists()


def test_a_directory_that_is_removed_before_it_is_locked_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    really_open = module._open

    def open_late(path: str) -> int:
        opened.append(path)
        if len(opened) == 1:
            remove_left_directories(str(place))  # which opens it, too, and removes it
        return really_open(path)

    monkeypatch.setattr(module, "_open", open_late)
    with run_directory(1) as directory:
        assert directory.exists()
        assert str(directory) != opened[0]
        assert list(place.iterdir()) == [directory]


def test_runs_that_start_and_clean_up_at_once_keep_their_directories(place: Path) -> None:
    lost: list[Path] = []

    def run() -> None:
        for _ in range(50):
            with run_directory(1) as directory:
                remove_left_directories(str(place))
                if not directory.exists():
                    lost.append(directory)

    threads = [Thread(target=run, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
        assert not thread.is_alive(), "a thread has not ended after 40 s"
    assert lost == []
    assert list(place.iterdir()) == []
