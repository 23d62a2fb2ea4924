"""Lines are read from any text, and followed, and named where something is wrong."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from differential.jobs.lines import TextLine, followed, lines
from timely.errors import DataError

TEXTS = st.lists(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n\r")), max_size=6)


def texts(path: Path) -> list[str]:
    return [line.text for line in lines(str(path))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(TEXTS, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from(["plain", "gzip", "zstd"]))
def test_every_line_is_read(tmp_path: Path, given: list[str], end: str, is_ended: bool, form: str) -> None:
    data = (end.join(given) + (end if is_ended and given else "")).encode()
    path = tmp_path / "text"
    if form == "zstd":
        pyarrow = pytest.importorskip("pyarrow")
        with pyarrow.output_stream(str(path), compression="zstd") as file:
            file.write(data)
    else:
        path.write_bytes(gzip.compress(data) if form == "gzip" else data)
    expected = [line.removesuffix("\r") for line in data.decode("utf-8-sig").split("\n")]
    assert texts(path) == (expected[:-1] if not expected[-1] else expected)


def test_a_line_has_its_file_and_number(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a\nb\n")
    assert list(lines(str(path))) == [TextLine(str(path), 1, "a"), TextLine(str(path), 2, "b")]
    assert str(TextLine("file", 7, "x" * 200).fault("is long")) == f"file, line 7: is long: '{'x' * 120}...'"


def test_a_text_begins_after_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbf1\tada\r\n\xef\xbb\xbf2\r\n")
    assert texts(path) == ["1\tada", "\ufeff2"]
    pytest.importorskip("pyarrow")
    following = followed([str(path)])
    assert [next(following) for _ in range(2)] == list(lines(str(path)))


def test_a_text_is_followed_as_whole_lines(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("a\n")
    second.write_text("1\n2")
    following = followed([str(first), str(second)])
    assert [next(following) for _ in range(3)] == [TextLine(str(first), 1, "a"), TextLine(str(second), 1, "1"), None]
    with open(second, "a") as file:
        file.write("2\n3\n")
    assert [next(following) for _ in range(3)] == [TextLine(str(second), 2, "22"), TextLine(str(second), 3, "3"), None]
    with open(first, "ab") as file:
        file.write(b"b\n\xff\n")
    assert next(following) == TextLine(str(first), 2, "b")
    with pytest.raises(DataError, match="first, line 3: not UTF-8 text"):
        next(following)


def test_a_pipe_ends_where_a_file_does_not(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    reading, writing = os.pipe()
    kept = os.dup(0)
    try:
        os.dup2(reading, 0)
        following = followed(["-"])
        assert next(following) is None
        os.write(writing, b"a\nb")
        assert next(following) == TextLine("standard input", 1, "a")
        assert next(following) is None
        os.close(writing)
        assert list(following) == [TextLine("standard input", 2, "b")]
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(reading)
