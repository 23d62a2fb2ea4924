"""`timely state DIR`: what it prints, and what it finds."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from differential.durable import LocalStore
from differential.durable.shard import Shard
from differential.durable.writer import Writer
from tests.unit.durable.golden import write
from timely.errors import StoreError
from timely.run.cli import main


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write(str(tmp_path / "state"))
    return tmp_path / "state"


def test_the_collections_are_listed(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", str(directory)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:7] == ["collection", "role", "since", "upper", "rows", "bytes", "parts"]
    assert [line.split()[:5] for line in lines[1:]] == [
        ["counts", "output", "1", "3", "5"],
        ["state", "snapshot", "5", "6", "0"],
        ["typed", "input", "0", "1", "2"],
        ["words", "input", "0", "4", "4"],
    ]
    assert "word string, count int64" in lines[1]
    assert "process" in lines[4]


def test_collections_that_are_whole_are_verified(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", "--verify", str(directory)]) == 0
    assert capsys.readouterr().out.endswith("4 collection(s) are whole\n")


def test_damage_is_found_and_named(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = next((directory / "words" / "parts").iterdir())
    part.write_bytes(part.read_bytes()[:-1])
    (directory / "counts" / "manifest.json").write_text("{")
    assert main(["state", str(directory)]) == 1
    assert main(["state", "--verify", str(directory)]) == 1
    printed = capsys.readouterr()
    assert "whole" not in printed.out
    assert f"{part.name} is damaged" in printed.err
    assert "the manifest of 'counts' in" in printed.err


@pytest.mark.parametrize(("name", "complaint"), [("nowhere", "there is no directory"), ("", "no durable collections")])
def test_what_is_no_state_is_refused(
    tmp_path: Path, name: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["state", str(tmp_path / name)]) == 2
    assert complaint in capsys.readouterr().err


def test_an_output_that_cannot_be_written_is_one_line(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["state", str(directory)]) == 1
        assert capsys.readouterr().err == "timely: cannot write to standard output: No space left on device\n"
        monkeypatch.setattr(sys, "stdout", None)
        assert main(["state", str(directory)]) == 1
        assert capsys.readouterr().err == "timely: standard output is closed\n"


def test_a_name_that_the_locale_cannot_write_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Writer.claim(Shard("größe", LocalStore(str(tmp_path / "größe"))), "input")
    output = io.BytesIO()
    with io.TextIOWrapper(output, encoding="ascii") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["state", str(tmp_path)]) == 0
        assert b"\ngr\\xf6\\xdfe " in output.getvalue()


def test_a_collection_that_cannot_be_read_hides_no_other(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = LocalStore.get_manifest

    def refuse(store: LocalStore) -> bytes | None:
        if "counts" in str(store):
            raise StoreError("cannot read counts: Permission denied")
        return read(store)

    monkeypatch.setattr(LocalStore, "get_manifest", refuse)
    assert main(["state", str(directory)]) == 1
    printed = capsys.readouterr()
    assert "cannot read counts: Permission denied" in printed.err
    assert "words" in printed.out
