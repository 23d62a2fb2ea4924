"""The word count names a text that it cannot read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.examples_loading import example_module


def test_an_unreadable_file_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rubbish").write_bytes(b"words\n\n\xff\xfe words\n")
    (tmp_path / "directory").mkdir()
    for name, message in (
        ("rubbish", "{}, line 3: not UTF-8 text"),
        ("directory", "cannot read {}: Is a directory"),
        ("missing", "cannot read {}: No such file or directory"),
    ):
        path = str(tmp_path / name)
        monkeypatch.setattr(sys, "argv", ["wordcount.py", path])
        assert example_module("wordcount").main() == 1
        assert capsys.readouterr().err == f"wordcount: {message.format(path)}\n"


def test_words_of_a_utf_8_text_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text"
    path.write_bytes("größe größe\r\nund\n".encode())
    monkeypatch.setattr(sys, "argv", ["wordcount.py", str(path), "--lines", "1"])
    assert example_module("wordcount").main() == 0
    assert capsys.readouterr().out.split() == ["2", "größe", "1", "und"]
