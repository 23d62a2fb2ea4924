"""The key of a cluster: written once, for its owner only, and refused if others can read it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import zmq

from timely.communication.curve import KEY_FILE, load_keys, make_keys
from timely.errors import ConfigError

PUBLIC, SECRET = b"p" * 40, b"s" * 40


def test_keys_are_a_pair_in_a_directory_that_only_its_owner_can_read(tmp_path: Path) -> None:
    directory = tmp_path / "made" / "for them"
    path = make_keys(str(directory))
    assert path == directory / KEY_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    public, secret = load_keys(str(directory))
    assert zmq.curve_public(secret) == public
    assert path.read_bytes() == public + b"\n" + secret + b"\n"


def test_keys_are_not_overwritten(tmp_path: Path) -> None:
    path = make_keys(str(tmp_path))  # which exists
    keys = path.read_bytes()
    with pytest.raises(ConfigError, match="exists"):
        make_keys(str(tmp_path))
    assert path.read_bytes() == keys


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot write .*file.*Not a directory"):
        make_keys(str(tmp_path / "file" / "keys"))


@pytest.mark.parametrize("mode", [0o601, 0o602, 0o604, 0o610, 0o620, 0o640, 0o644])
def test_keys_that_others_can_read_are_refused(mode: int, tmp_path: Path) -> None:
    make_keys(str(tmp_path)).chmod(mode)
    with pytest.raises(ConfigError, match="read by others"):
        load_keys(str(tmp_path))


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o700])
def test_other_permissions_of_the_owner_do_not_matter(mode: int, tmp_path: Path) -> None:
    path = make_keys(str(tmp_path))
    path.chmod(mode)
    assert load_keys(str(tmp_path)) == tuple(path.read_bytes().split())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        PUBLIC,
        PUBLIC + SECRET,
        PUBLIC + b"\n" + SECRET[1:],
        PUBLIC + b"s\n" + SECRET,
        PUBLIC + b"\n" + SECRET + b"\n" + SECRET,
    ],
    ids=len,
)
def test_a_file_without_two_keys_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / KEY_FILE
    path.write_bytes(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="does not hold two keys of 40 characters"):
        load_keys(str(tmp_path))


@pytest.mark.parametrize("damage", ["swapped", "of two pairs", "one character", "no key characters"])
def test_two_keys_that_are_not_a_pair_are_refused(damage: str, tmp_path: Path) -> None:
    path = make_keys(str(tmp_path))
    public, secret = load_keys(str(tmp_path))
    if damage == "swapped":
        public, secret = secret, public
    elif damage == "of two pairs":
        public, _ = zmq.curve_keypair()
    elif damage == "one character":
        secret = (b"1" if secret[:1] == b"0" else b"0") + secret[1:]
    else:
        secret = b'"' + secret[1:]
    path.write_bytes(public + b"\n" + secret + b"\n")
    with pytest.raises(ConfigError, match=rf"{KEY_FILE} is damaged: its keys are not a pair; remove it and make new"):
        load_keys(str(tmp_path))


def test_missing_keys_are_reported_with_the_command_that_makes_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"cannot read .*{KEY_FILE}: No such file.*'timely keys {tmp_path}'"):
        load_keys(str(tmp_path))


def test_a_file_in_the_place_of_the_directory_is_not_taken_for_a_key(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match=rf"cannot write {file}/{KEY_FILE}: {file} is not a directory"):
        make_keys(str(file))


def test_an_empty_directory_name_is_not_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="the directory for the keys has an empty name"):
        make_keys("")
    assert not list(tmp_path.iterdir())
